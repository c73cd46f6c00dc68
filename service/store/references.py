"""Reference vectors: what a profile's embedder must reproduce, and posts of the index to check it with instead."""

from collections.abc import Sequence
from dataclasses import dataclass

from pgvector import HalfVector

from service.domain import EmbeddingProfile, PostId, ReferenceVector
from service.ingest.ports import TopicPost
from service.store.pool import Pool, connection, transaction
from service.store.profiles import ensure_profile, find_profile

_SAMPLES = """
SELECT posts.post_id, topics.title, coalesce(categories.name, ''), topics.tags, posts.body, digest, embedding
FROM embeddings JOIN posts USING (post_id) JOIN topics USING (topic_id) LEFT JOIN categories USING (category_id)
WHERE profile_id = %s AND passage = 0 AND posts.refusal IS NULL
ORDER BY posts.post_id LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class StoredSample:
    """A post of the index, its vector, and the digest of the text that it was made of."""

    post: TopicPost
    digest: bytes
    vector: tuple[float, ...]


class ReferenceStore:
    """The stored proof of each embedding profile."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def references(self, profile: EmbeddingProfile) -> list[ReferenceVector]:
        """The profile's reference texts with their vectors, always in the same order; none before they are made."""
        async with connection(self._pool) as conn:
            cursor = await conn.execute(
                "SELECT text, embedding, query FROM embedding_references WHERE profile_id = %s ORDER BY query, text",
                (await find_profile(conn, profile),),
            )
            return [ReferenceVector(text, _numbers(vector), query) async for text, vector, query in cursor]

    async def put_references(self, profile: EmbeddingProfile, references: Sequence[ReferenceVector]) -> None:
        """Store the profile's references unless it has some already: the first ones count, whoever made them."""
        async with transaction(self._pool) as conn:
            profile_id = await ensure_profile(conn, profile)
            await conn.execute("SELECT FROM embedding_profiles WHERE profile_id = %s FOR UPDATE", (profile_id,))
            known = await conn.execute("SELECT FROM embedding_references WHERE profile_id = %s LIMIT 1", (profile_id,))
            if known.rowcount:
                return
            async with conn.cursor() as cursor:
                await cursor.executemany(
                    "INSERT INTO embedding_references (profile_id, text, query, embedding) VALUES (%s, %s, %s, %s)",
                    [(profile_id, one.text, one.query, HalfVector(list(one.vector))) for one in references],
                )

    async def has_vectors(self, profile: EmbeddingProfile) -> bool:
        """Whether any post has a vector under this profile."""
        async with connection(self._pool) as conn:
            cursor = await conn.execute(
                "SELECT FROM embeddings WHERE profile_id = %s LIMIT 1", (await find_profile(conn, profile),)
            )
            return cursor.rowcount > 0

    async def samples(self, profile: EmbeddingProfile, limit: int) -> list[StoredSample]:
        """Up to `limit` posts that have a vector under this profile, lowest ids first."""
        async with connection(self._pool) as conn:
            cursor = await conn.execute(_SAMPLES, (await find_profile(conn, profile), limit))
            return [
                StoredSample(
                    TopicPost(PostId(post_id), title, category, tuple(tags), body), bytes(digest), _numbers(vector)
                )
                async for post_id, title, category, tags, body, digest, vector in cursor
            ]


def _numbers(vector: HalfVector) -> tuple[float, ...]:
    return tuple(vector.to_list())
