"""What proves a model: reference vectors, made with the index's first vector, and reference pairs for a reranker."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Protocol

from service.domain import EmbeddingProfile, ReferenceVector, TextFailure, TruncatedVector
from service.errors import ArianeError, Transient
from service.inference.proved import Embedder, Reranker
from service.inference.references import (
    MIN_COSINE,
    Proof,
    ReferencePair,
    Verdict,
    candidate_of,
    check_embedder,
    cosine,
    failed,
)
from service.ingest.text import digest, passage_texts
from service.store.references import StoredSample

QUERIES = (
    "How often should I water tomatoes in pots?",
    "comment purger un radiateur qui glougloute ?",
    "error 0x80070057 after update",
    "merci",
)
PASSAGES = (
    "Watering tomatoes\n\nEvery morning, and twice when it is hot; never on the leaves.",
    "Purger un radiateur\n\nFermez la vanne, ouvrez le purgeur d'un quart de tour, attendez que l'eau coule.",
    "Build fails on Windows\n\nDelete the cache folder, then run `make clean && make -j4` (version 1.7).",
    "Bienvenue à tous\n\nBonjour, je m'appelle Zoé.",
    "Which soil for a balcony?\n\n"
    + "A light mix: two parts of compost, one of sand, one of perlite. Drainage matters more than anything else, "
    "since a pot that stays wet rots the roots long before the plant lacks food. Renew a third each spring. " * 2,
)
"""French and English, short and long, code and accents: what a forum's texts are like. Changing them changes nothing
for a profile that has its references."""

PAIRS = (
    ("How often should I water tomatoes in pots?", "Watering tomatoes", "Every morning, and twice when it is hot."),
    (
        "How often should I water tomatoes in pots?",
        "Arroser les tomates",
        "Chaque matin, deux fois s'il fait chaud.",
    ),
    ("How often should I water tomatoes in pots?", "Purger un radiateur", "Ouvrez le purgeur d'un quart de tour."),
    ("comment purger un radiateur ?", "Purger un radiateur", "Fermez la vanne, ouvrez le purgeur d'un quart de tour."),
    ("comment purger un radiateur ?", "Radiator gurgles", "Bleed it: open the valve with a key until water comes."),
    ("comment purger un radiateur ?", "Build fails on Windows", "Delete the cache folder, then build again."),
)
"""Question, title and excerpt: answers in the same and in the other language, and posts about something else."""

SAMPLES = 32
MAX_CHECKED = 8


class References(Protocol):
    """The stored proof of each profile, as `service.store.references.ReferenceStore` keeps it."""

    async def references(self, profile: EmbeddingProfile) -> list[ReferenceVector]: ...
    async def put_references(self, profile: EmbeddingProfile, references: Sequence[ReferenceVector]) -> None: ...
    async def has_vectors(self, profile: EmbeddingProfile) -> bool: ...
    async def samples(self, profile: EmbeddingProfile, limit: int) -> list[StoredSample]: ...


async def examine(embedder: Embedder, stored: References) -> Verdict:
    """Whether this is the embedder that made the profile's vectors; nothing is written; never raises.

    Without references, as after a backfill with vectors made elsewhere, posts of the index are embedded anew. No
    vector at all is no proof either, and there is nothing to prove.
    """
    try:
        references = await stored.references(embedder.profile)
        if references:
            return await check_embedder(embedder, references)
        return await _check_samples(embedder, await stored.samples(embedder.profile, SAMPLES))
    except ArianeError as exc:
        return failed(exc)


async def prove(embedder: Embedder, stored: References) -> Verdict:
    """As `examine`; makes the references of a profile that has none, if its first vector is to come or posts prove it.

    Never raises.
    """
    try:
        if await stored.references(embedder.profile):
            return await examine(embedder, stored)
        if await stored.has_vectors(embedder.profile):
            verdict = await examine(embedder, stored)
            if verdict.proof is not Proof.PROVED:
                return verdict
        await stored.put_references(embedder.profile, await _made_by(embedder))
    except ArianeError as exc:
        return failed(exc)
    return await examine(embedder, stored)


async def scored_pairs(reranker: Reranker) -> list[ReferencePair]:
    """Our pairs with the logits that this reranker gives them now; raises as the port says."""
    scored = []
    for question, title, excerpt in PAIRS:
        pair = ReferencePair(question, title, excerpt, 0.0)
        [logit] = await reranker.rerank(question, [candidate_of(pair)])
        scored.append(replace(pair, logit=logit))
    return scored


async def _check_samples(embedder: Embedder, samples: Sequence[StoredSample]) -> Verdict:
    """By posts whose text is still what their vector was made of. The median counts: who made vectors elsewhere may
    have cleaned some texts a little differently, but another model's vectors all point elsewhere.
    """
    texts = {passage_texts(one.post, embedder)[0].text: one for one in samples}
    same = [(text, one.vector) for text, one in texts.items() if digest(text) == one.digest][:MAX_CHECKED]
    if not same:
        return Verdict(Proof.NO_REFERENCES, "no reference vectors are stored for this profile")
    made = await embedder.embed_passages([text for text, _ in same])
    middle = median(cosine(became, vector) for became, (_, vector) in zip(made, same, strict=True))
    proof = Proof.PROVED if middle >= MIN_COSINE else Proof.DIFFERENT
    return Verdict(proof, f"median cosine {middle:.4f} of {len(same)} posts of the index, embedded anew", middle)


async def _made_by(embedder: Embedder) -> list[ReferenceVector]:
    made: list[ReferenceVector] = []
    for text, became in zip(PASSAGES, await embedder.embed_passages(PASSAGES), strict=True):
        if isinstance(became, TextFailure):
            raise Transient(f"{embedder.profile.name} fails on a reference text: {became.error}")
        vector = became.vector if isinstance(became, TruncatedVector) else became
        made.append(ReferenceVector(text, tuple(vector.tolist())))
    asked = [(text, await embedder.embed_query(text)) for text in QUERIES]
    return made + [ReferenceVector(text, tuple(vector.tolist()), query=True) for text, vector in asked]
