"""Copy the vectors that a forum keeps of its posts, as far as they are what we would make: compared, or tested."""

import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeGuard

import numpy as np

from service.discourse.cooked import plain_text
from service.discourse.embeddings import EmbeddedText, EmbeddingDefinition, has_digest, surely_fits, whole_texts
from service.domain import EmbeddingProfile, PostId, TextFailure, TruncatedVector, Vector
from service.errors import Rejected
from service.ingest.archive import UNIT_TOLERANCE
from service.ingest.backfill import Backfill
from service.ingest.ports import EmbeddedPassage, PassageEmbedder, TopicPost
from service.ingest.text import DISCOURSE, digest, passage_texts
from service.telemetry import log

TEXT_VERSION = 1
"""Of our strategy 1: its text is discourse-ai's strategy 1 version 1."""
CHECKED_OF = 100
"""Of the vectors whose text can't be compared, one in so many is embedded anew to see whether it is the same."""
CHECKED_AT_LEAST = 5
"""Vectors that are embedded anew at least, and of the compared texts too: another model may have the same name."""
LEAST_COSINE = 0.999
BATCH = 500


@dataclass(slots=True)
class Copied:
    """What became of the forum's vectors; `note` says why some or all were left to be embedded."""

    verified: int = 0
    unverified: int = 0
    other_text: int = 0
    older: int = 0
    malformed: int = 0
    checked: int = 0
    note: str = ""


class ForumVectors(Protocol):
    """The vectors that a forum keeps, of posts that the public sees."""

    async def definitions(self) -> list[EmbeddingDefinition]: ...
    def embedded_texts(self, model: EmbeddingDefinition) -> AsyncIterator[list[EmbeddedText]]: ...
    async def vectors(
        self, model: EmbeddingDefinition, post_ids: Sequence[PostId]
    ) -> Mapping[PostId, Vector | None]: ...


class StoredTexts(Protocol):
    async def texts_stored(self, post_ids: Collection[PostId]) -> dict[PostId, TopicPost]: ...


@dataclass(slots=True)
class _Chosen:
    """Posts whose vectors may be copied, with our texts' digests; `sample` has what the forum embedded of some."""

    digests: dict[PostId, bytes] = field(default_factory=dict)
    sample: dict[PostId, str] = field(default_factory=dict)

    def add(self, post_id: PostId, ours: bytes, text: str, *, one_in: int | None) -> None:
        count = len(self.digests)
        self.digests[post_id] = ours
        if count < CHECKED_AT_LEAST or (one_in is not None and count % one_in == 0):
            self.sample[post_id] = text


async def copy_vectors(forum: ForumVectors, stored: StoredTexts, at: Backfill, *, model_id: int | None) -> Copied:
    """Copy the vectors of posts that have none yet, and are stored as the forum has them.

    A text that surely fits the model's window is compared by its digest. One that may not is copied where model,
    strategy, version and date fit, unless a share of such vectors, embedded anew, shows another one. Raises Rejected
    for a `model_id` that the forum doesn't have or that doesn't fit.
    """
    copied = Copied()
    model = _model(await forum.definitions(), at.embedder.profile, model_id, copied)
    if model is None:
        return copied
    verified, unverified = _Chosen(), _Chosen()
    async for batch in forum.embedded_texts(model):
        await _choose(batch, model, stored, at, verified, unverified, copied)
    if not await _same_vectors(forum, model, verified, at.embedder, copied):
        copied.note = f"{model.name} is not our model, though it is named so: texts embedded anew have other vectors"
        return copied
    copied.verified = await _put(forum, model, verified, stored, at, copied)
    if await _same_vectors(forum, model, unverified, at.embedder, copied):
        copied.unverified = await _put(forum, model, unverified, stored, at, copied)
    else:
        copied.note = f"{len(unverified.digests)} vectors of long texts were left: some, embedded anew, are others"
    return copied


def _model(
    known: Sequence[EmbeddingDefinition], profile: EmbeddingProfile, model_id: int | None, copied: Copied
) -> EmbeddingDefinition | None:
    """The forum's model that is ours: the one of this id, or the only one of our name and dimensions."""
    names = "; ".join(f"{one.id}: {one.name}, {one.dimensions} dimensions" for one in known) or "none"
    chosen = [one for one in known if one.id == model_id or (model_id is None and _is_named(one, profile))]
    if model_id is not None and not chosen:
        raise Rejected(f"the forum has no embedding model {model_id}, it has {names}")
    if model_id is not None and chosen[0].dimensions not in (None, profile.dimensions):
        raise Rejected(f"embedding model {model_id} has {chosen[0].dimensions} dimensions, ours {profile.dimensions}")
    if (profile.strategy, profile.version) != (DISCOURSE, TEXT_VERSION):
        copied.note = f"no vectors copied: {profile.name} embeds another text than the forum does"
    elif len(chosen) != 1:
        copied.note = f"which of the forum's embedding models is {profile.model}? name it by its id; it has {names}"
    elif chosen[0].prompt:
        copied.note = f"{chosen[0].name} puts a prompt before every text, which our profile doesn't"
    else:
        return chosen[0]
    return None


def _is_named(one: EmbeddingDefinition, profile: EmbeddingProfile) -> bool:
    theirs, ours = (re.sub(r"[\W_]", "", name).casefold() for name in (one.name, profile.model))
    return one.dimensions == profile.dimensions and bool(theirs) and (ours in theirs or theirs in ours)


async def _choose(
    batch: Sequence[EmbeddedText],
    model: EmbeddingDefinition,
    stored: StoredTexts,
    at: Backfill,
    verified: _Chosen,
    unverified: _Chosen,
    copied: Copied,
) -> None:
    profile = at.embedder.profile
    window = min(profile.window_tokens, model.window_tokens or profile.window_tokens)
    ids = [one.post_id for one in batch]
    texts, done = await stored.texts_stored(ids), await at.corpus.digests(profile, ids)
    for one in batch:
        ours = texts.get(one.post_id)
        if ours is None or one.post_id in done:
            continue
        if ours != TopicPost(one.post_id, one.title, one.category, one.tags, plain_text(one.cooked)):
            copied.other_text += 1  # changed on one side since
            continue
        whole = list(dict.fromkeys(whole_texts(one)))
        if has_digest(one, whole):
            verified.add(one.post_id, _digest(ours, at.embedder), whole[0], one_in=None)
        elif all(surely_fits(text, window) for text in whole):
            copied.other_text += 1
        elif one.made_at <= max(one.post_updated_at, one.topic_updated_at):
            copied.older += 1
        else:
            unverified.add(one.post_id, _digest(ours, at.embedder), whole[0], one_in=CHECKED_OF)


async def _same_vectors(
    forum: ForumVectors, model: EmbeddingDefinition, chosen: _Chosen, embedder: PassageEmbedder, copied: Copied
) -> bool:
    """Whether the sample's vectors are what our embedder makes of the same texts."""
    theirs = await forum.vectors(model, list(chosen.sample))
    for post_id, text in chosen.sample.items():
        [made] = await embedder.embed_passages([embedder.truncate(text)])
        vector = theirs.get(post_id)
        if isinstance(made, TextFailure) or not is_unit(vector, embedder.profile):
            continue
        copied.checked += 1
        cosine = float(np.dot(made.vector if isinstance(made, TruncatedVector) else made, vector))
        if cosine < LEAST_COSINE:
            log.warning("copied_vector_differs", post_id=post_id, cosine=round(cosine, 4))
            return False
    return True


async def _put(
    forum: ForumVectors, model: EmbeddingDefinition, chosen: _Chosen, stored: StoredTexts, at: Backfill, copied: Copied
) -> int:
    """Store the chosen vectors, but of posts that changed since they were chosen; how many."""
    profile, count = at.embedder.profile, 0
    ids = list(chosen.digests)
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        vectors = await forum.vectors(model, part)
        texts, done = await stored.texts_stored(part), await at.corpus.digests(profile, part)
        passages = []
        for post_id, vector in vectors.items():
            if not is_unit(vector, profile):
                copied.malformed += 1
            elif post_id in texts and post_id not in done:
                ours = _digest(texts[post_id], at.embedder)
                if ours == chosen.digests[post_id]:
                    passages.append(EmbeddedPassage(post_id, 0, ours, vector))
        if passages:
            await at.corpus.put_passages(profile, passages)
        count += len(passages)
        at.progress("copied vectors", start + len(part), len(ids))
    return count


def is_unit(vector: Vector | None, profile: EmbeddingProfile) -> TypeGuard[Vector]:
    """Whether this is a vector of the profile: of its dimensions, finite and of unit length."""
    if vector is None or vector.shape != (profile.dimensions,):
        return False
    return bool(abs(float(np.linalg.norm(vector.astype(np.float64))) - 1) <= UNIT_TOLERANCE)


def _digest(post: TopicPost, embedder: PassageEmbedder) -> bytes:
    return digest(passage_texts(post, embedder)[0].text)
