"""Give posts their vectors: nothing is embedded twice, and what is digested is what is embedded."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from service.domain import Embedded, PostId, TextFailure, TruncatedVector
from service.errors import ArianeError
from service.ingest.ports import Corpus, EmbeddedPassage, EmbeddingFailure, KeptPassage, PassageEmbedder, TopicPost
from service.ingest.text import PassageText, digest, passage_texts, whole_digest
from service.telemetry import EMBEDDED, TRUNCATED, UNEMBEDDABLE, log

BATCH = 16
"""Texts of one call to the embedder: small enough that a member's question never waits long behind it."""

Known = Mapping[PostId, tuple[bytes, ...]]
"""The digests of what is stored of each post."""


@dataclass(frozen=True, slots=True)
class _Texts:
    """A post's texts with their digests, and which of them (by ordinal) have to be embedded."""

    post: TopicPost
    texts: list[PassageText]
    digests: tuple[bytes, ...]
    wanted: list[int]


async def embed_posts(posts: Sequence[TopicPost], corpus: Corpus, embedder: PassageEmbedder) -> int:
    """Embed those passages whose text changed since it was embedded, or failed; how many posts were dealt with.

    A post that the model fails on is quarantined with its error; the others of its batch get their vectors, and so do
    those passages of a post that it doesn't fail on.
    """
    known = await corpus.digests(embedder.profile, [post.post_id for post in posts])
    return await _embed(posts, known, corpus, embedder)


async def embed_under_each(posts: Sequence[TopicPost], corpus: Corpus, embedders: Sequence[PassageEmbedder]) -> None:
    """Embed what changed under the profile of each; one that fails keeps no other from it, and is raised at the end."""
    failed: ArianeError | None = None
    for embedder in embedders:
        try:
            await embed_posts(posts, corpus, embedder)
        except ArianeError as exc:
            failed = failed or exc
    if failed is not None:
        raise failed


async def embed_anew(posts: Sequence[TopicPost], corpus: Corpus, embedder: PassageEmbedder) -> int:
    """Embed these posts whatever is known of them; how many were dealt with."""
    return await _embed(posts, {}, corpus, embedder)


async def _embed(posts: Sequence[TopicPost], known: Known, corpus: Corpus, embedder: PassageEmbedder) -> int:
    changed = await asyncio.to_thread(lambda: [one for post in posts if (one := _texts(post, known, embedder))])
    for batch in _batches(changed):
        texts = [one.texts[n].text for one in batch for n in one.wanted]
        made: list[Embedded] = []
        for start in range(0, len(texts), BATCH):
            made.extend(await embedder.embed_passages(texts[start : start + BATCH]))
        await _store(batch, made, corpus, embedder)
    return len(changed)


def _texts(post: TopicPost, known: Known, embedder: PassageEmbedder) -> _Texts | None:
    """What is to be done for a post, None where all is as it was."""
    texts = passage_texts(post, embedder)
    digests, before = tuple(digest(one.text) for one in texts), known.get(post.post_id, ())
    if before in (digests, (whole_digest(texts),)):
        return None
    return _Texts(post, texts, digests, [n for n, made_of in enumerate(digests) if made_of not in before])


def _batches(changed: Sequence[_Texts]) -> Iterator[list[_Texts]]:
    """Posts whose texts make one call of the embedder, or some more: a post's are stored together."""
    batch: list[_Texts] = []
    for one in changed:
        batch.append(one)
        if sum(len(each.wanted) for each in batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


async def _store(batch: Sequence[_Texts], made: Sequence[Embedded], corpus: Corpus, embedder: PassageEmbedder) -> None:
    passages: list[EmbeddedPassage] = []
    kept: list[KeptPassage] = []
    failures: list[EmbeddingFailure] = []
    became = iter(made)
    for one in batch:
        vectors, failed = _read(one, {n: next(became) for n in one.wanted})
        unchanged = [n for n in range(len(one.digests)) if n not in one.wanted]
        if failed and not (vectors or unchanged):
            failures.append(EmbeddingFailure(one.post, whole_digest(one.texts), failed))
        passages.extend(vectors)
        kept.extend(KeptPassage(one.post.post_id, n, one.digests[n]) for n in unchanged)
    if passages or kept:
        await corpus.put_passages(embedder.profile, passages, kept, read=[one.post for one in batch])
        EMBEDDED.inc(len(passages))
    if failures:
        await corpus.put_failures(embedder.profile, failures)


def _read(one: _Texts, made: Mapping[int, Embedded]) -> tuple[list[EmbeddedPassage], str]:
    """The vectors of a post's texts, and why the last of those failed that have none: it is found by the others."""
    vectors, failed = [], ""
    for n, became in made.items():
        if isinstance(became, TextFailure):
            failed = became.error
            UNEMBEDDABLE.inc()
            log.warning("post_not_embedded", post_id=one.post.post_id, passage=n, error=failed)
            continue
        if one.texts[n].cut or isinstance(became, TruncatedVector):
            TRUNCATED.inc()
        vector = became.vector if isinstance(became, TruncatedVector) else became
        vectors.append(EmbeddedPassage(one.post.post_id, n, one.digests[n], vector))
    return vectors, failed
