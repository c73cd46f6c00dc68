"""Proves that a model server runs the model that the index, or the thresholds, were made with (spec A2, P8)."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

import numpy as np

from service.domain import Candidate, Embedded, PostId, ReferenceVector, TextFailure, TopicId, TruncatedVector, Vector
from service.errors import ArianeError, Busy, Transient

MIN_COSINE = 0.999
LOGIT_TOLERANCE = 0.1
"""Half precision and another runtime move a logit by some hundredths; another model by whole units."""


@dataclass(frozen=True, slots=True)
class ReferencePair:
    """A question, a post, and the logit that the thresholds were measured with."""

    question: str
    title: str
    excerpt: str
    logit: float


class Proof(StrEnum):
    PROVED = "proved"
    DIFFERENT = "different"
    UNREACHABLE = "unreachable"
    BUSY = "busy"
    NO_REFERENCES = "no-references"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the server may be used; `worst` is the lowest cosine, or the largest difference of logits."""

    proof: Proof
    detail: str
    worst: float | None = None


class _Embedder(Protocol):
    def embed_passages(self, texts: Sequence[str]) -> Awaitable[Sequence[Embedded]]: ...
    def embed_query(self, text: str) -> Awaitable[Vector]: ...


class _Reranker(Protocol):
    def rerank(self, question: str, candidates: Sequence[Candidate]) -> Awaitable[list[float]]: ...


async def check_embedder(embedder: _Embedder, references: Sequence[ReferenceVector]) -> Verdict:
    """Embed the references anew, passages in one batch so that a wrong order shows, and compare; never raises."""
    passages = [one for one in references if not one.query]
    try:
        made = list(await embedder.embed_passages([one.text for one in passages])) if passages else []
        made += [await embedder.embed_query(one.text) for one in references if one.query]
    except ArianeError as exc:
        return failed(exc)
    if not made:
        return Verdict(Proof.NO_REFERENCES, "no reference vectors are stored for this profile")
    worst, text = min(
        (cosine(vector, one.vector), one.text)
        for vector, one in zip(made, passages + [one for one in references if one.query], strict=True)
    )
    proof = Proof.PROVED if worst >= MIN_COSINE else Proof.DIFFERENT
    return Verdict(proof, f"lowest cosine {worst:.4f} of {len(made)} references, at {text[:60]!r}", worst)


async def check_reranker(reranker: _Reranker, references: Sequence[ReferencePair]) -> Verdict:
    """Score the reference pairs anew, those of one question together, and compare their logits; never raises."""
    if not references:
        return Verdict(Proof.NO_REFERENCES, "no reference pairs are stored for this profile")
    logits: list[tuple[ReferencePair, float]] = []
    try:
        for question in dict.fromkeys(one.question for one in references):
            group = [one for one in references if one.question == question]
            logits += zip(group, await reranker.rerank(question, [candidate_of(one) for one in group]), strict=True)
    except ArianeError as exc:
        return failed(exc)
    pair, logit = max(logits, key=lambda scored: abs(scored[1] - scored[0].logit))
    worst = abs(logit - pair.logit)
    detail = f"largest difference {worst:.4f} of {len(logits)} logits: {logit:.3f} for {pair.logit:.3f}"
    if worst <= LOGIT_TOLERANCE:
        return Verdict(Proof.PROVED, detail, worst)
    if all(0.0 <= logit <= 1.0 for _, logit in logits):
        detail += "; every score lies between 0 and 1: set this reranker's scores to sigmoid"
    return Verdict(Proof.DIFFERENT, detail, worst)


def failed(exc: ArianeError) -> Verdict:
    """What it means that a proof ended in this error: a server that is gone or full is not another one."""
    if isinstance(exc, Busy):
        return Verdict(Proof.BUSY, str(exc))
    return Verdict(Proof.UNREACHABLE if isinstance(exc, Transient) else Proof.DIFFERENT, str(exc))


def cosine(made: Embedded, stored: Sequence[float]) -> float:
    """Of what became of a text and its stored vector; -1 when there is none or it has other dimensions."""
    if isinstance(made, TextFailure):
        return -1.0
    vector = made.vector if isinstance(made, TruncatedVector) else made
    other = np.asarray(stored, dtype=np.float32)
    return float(vector @ other / np.linalg.norm(other)) if other.shape == vector.shape else -1.0


def candidate_of(pair: ReferencePair) -> Candidate:
    """The pair's post as a reranker gets it."""
    return Candidate(PostId(0), TopicId(0), 1, pair.title, "", pair.excerpt, "", datetime(2000, 1, 1, tzinfo=UTC))
