"""Give posts their vectors: nothing is embedded twice, and what is digested is what is embedded."""

from collections.abc import Sequence

from service.ingest.ports import Corpus, EmbeddedPassage, PassageEmbedder, TopicPost
from service.ingest.text import digest, embedded_text
from service.telemetry import EMBEDDED

BATCH = 16
"""Texts of one call to the embedder: small enough that a member's question never waits long behind it."""


async def embed_posts(posts: Sequence[TopicPost], corpus: Corpus, embedder: PassageEmbedder) -> int:
    """Embed those posts whose text changed since their vector was made; how many were embedded."""
    profile = embedder.profile
    known = await corpus.digests(profile, [post.post_id for post in posts])
    texts = {post.post_id: embedder.truncate(embedded_text(post, profile.strategy)) for post in posts}
    changed = [(post_id, text) for post_id, text in texts.items() if known.get(post_id) != digest(text)]
    for start in range(0, len(changed), BATCH):
        batch = changed[start : start + BATCH]
        vectors = await embedder.embed_passages([text for _, text in batch])
        passages = [
            EmbeddedPassage(post_id, 0, digest(text), vector)
            for (post_id, text), vector in zip(batch, vectors, strict=True)
        ]
        await corpus.put_passages(profile, passages)
        EMBEDDED.inc(len(passages))
    return len(changed)


async def embed_pending(corpus: Corpus, embedder: PassageEmbedder, *, limit: int = 256) -> int:
    """Embed up to `limit` eligible posts that have no vector yet; how many were embedded."""
    return await embed_posts(await corpus.pending(embedder.profile, limit), corpus, embedder)
