"""Give posts their vectors: nothing is embedded twice, and what is digested is what is embedded."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.domain import Embedded, TextFailure, TruncatedVector
from service.ingest.ports import Corpus, EmbeddedPassage, EmbeddingFailure, PassageEmbedder, TopicPost
from service.ingest.text import digest, embedded_text
from service.telemetry import EMBEDDED, TRUNCATED, UNEMBEDDABLE, log

BATCH = 16
"""Texts of one call to the embedder: small enough that a member's question never waits long behind it."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A post's text as the model gets it; `cut` when the model's window took the beginning only."""

    post: TopicPost
    text: str
    cut: bool


async def embed_posts(posts: Sequence[TopicPost], corpus: Corpus, embedder: PassageEmbedder) -> int:
    """Embed those posts whose text changed since it was embedded, or failed; how many were dealt with.

    A post that the model fails on is quarantined with its error; the others of its batch get their vectors.
    """
    known = await corpus.digests(embedder.profile, [post.post_id for post in posts])
    texts = [_text(post, embedder) for post in posts]
    return await _embed([one for one in texts if known.get(one.post.post_id) != digest(one.text)], corpus, embedder)


async def embed_pending(corpus: Corpus, embedder: PassageEmbedder, *, limit: int = 256) -> int:
    """Embed up to `limit` eligible posts that have no vector yet; how many were dealt with (0: none is left)."""
    return await embed_anew(await corpus.pending(embedder.profile, limit), corpus, embedder)


async def embed_anew(posts: Sequence[TopicPost], corpus: Corpus, embedder: PassageEmbedder) -> int:
    """Embed these posts whatever is known of them; how many were dealt with."""
    return await _embed([_text(post, embedder) for post in posts], corpus, embedder)


def _text(post: TopicPost, embedder: PassageEmbedder) -> _Text:
    whole = embedded_text(post, embedder.profile.strategy)
    text = embedder.truncate(whole)
    return _Text(post, text, len(text) < len(whole.rstrip()))


async def _embed(texts: Sequence[_Text], corpus: Corpus, embedder: PassageEmbedder) -> int:
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        await _store(batch, await embedder.embed_passages([one.text for one in batch]), corpus, embedder)
    return len(texts)


async def _store(batch: Sequence[_Text], made: Sequence[Embedded], corpus: Corpus, embedder: PassageEmbedder) -> None:
    passages: list[EmbeddedPassage] = []
    failures: list[EmbeddingFailure] = []
    for one, became in zip(batch, made, strict=True):
        if isinstance(became, TextFailure):
            failures.append(EmbeddingFailure(one.post, digest(one.text), became.error))
            log.warning("post_not_embedded", post_id=one.post.post_id, error=became.error)
            continue
        if one.cut or isinstance(became, TruncatedVector):
            TRUNCATED.inc()
        vector = became.vector if isinstance(became, TruncatedVector) else became
        passages.append(EmbeddedPassage(one.post.post_id, 0, digest(one.text), vector))
    if passages:
        await corpus.put_passages(embedder.profile, passages)
        EMBEDDED.inc(len(passages))
    if failures:
        await corpus.put_failures(embedder.profile, failures)
        UNEMBEDDABLE.inc(len(failures))
