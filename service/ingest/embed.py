"""Give posts their vectors: nothing is embedded twice, and what is digested is what is embedded."""

from collections.abc import Sequence

from service.domain import TextFailure, TruncatedVector
from service.ingest.ports import Corpus, EmbeddedPassage, PassageEmbedder, TopicPost
from service.ingest.text import digest, embedded_text
from service.telemetry import EMBEDDED, TRUNCATED, UNEMBEDDABLE, log

BATCH = 16
"""Texts of one call to the embedder: small enough that a member's question never waits long behind it."""


async def embed_posts(posts: Sequence[TopicPost], corpus: Corpus, embedder: PassageEmbedder) -> int:
    """Embed those posts whose text changed since their vector was made; how many got a vector.

    A post that the model fails on is left without one, logged and counted; the others of its batch are stored.
    """
    profile = embedder.profile
    known = await corpus.digests(profile, [post.post_id for post in posts])
    whole = {post.post_id: embedded_text(post, profile.strategy) for post in posts}
    texts = {post_id: embedder.truncate(text) for post_id, text in whole.items()}
    changed = [(post_id, text) for post_id, text in texts.items() if known.get(post_id) != digest(text)]
    stored = 0
    for start in range(0, len(changed), BATCH):
        batch = changed[start : start + BATCH]
        passages = []
        for (post_id, text), made in zip(
            batch, await embedder.embed_passages([text for _, text in batch]), strict=True
        ):
            if isinstance(made, TextFailure):
                log.warning("post_not_embedded", post_id=post_id, profile=profile.name, error=made.error)
                UNEMBEDDABLE.inc()
                continue
            if isinstance(made, TruncatedVector) or len(text) < len(whole[post_id].rstrip()):
                TRUNCATED.inc()
            vector = made.vector if isinstance(made, TruncatedVector) else made
            passages.append(EmbeddedPassage(post_id, 0, digest(text), vector))
        await corpus.put_passages(profile, passages)
        EMBEDDED.inc(len(passages))
        stored += len(passages)
    return stored


async def embed_pending(corpus: Corpus, embedder: PassageEmbedder, *, limit: int = 256) -> int:
    """Embed up to `limit` eligible posts that have no vector yet; how many got one."""
    return await embed_posts(await corpus.pending(embedder.profile, limit), corpus, embedder)
