"""The stored vectors: what still lacks one, what each was made of, and putting them."""

from collections.abc import Sequence

from pgvector import HalfVector

from service.domain import EmbeddingProfile, PostId
from service.ingest.ports import EmbeddedPassage, TopicPost
from service.store.pool import Connection
from service.store.profiles import ensure_profile, find_profile

_PENDING = """
SELECT posts.post_id, topics.title, coalesce(categories.name, ''), topics.tags, posts.body
FROM posts JOIN topics USING (topic_id) LEFT JOIN categories USING (category_id)
WHERE posts.refusal IS NULL AND NOT EXISTS (
    SELECT FROM embeddings WHERE embeddings.post_id = posts.post_id AND profile_id = %s
)
ORDER BY posts.post_id LIMIT %s
"""

_LEFT = """
SELECT count(*) FROM posts WHERE refusal IS NULL AND NOT EXISTS (
    SELECT FROM embeddings WHERE embeddings.post_id = posts.post_id AND profile_id = %s
)
"""


async def pending(conn: Connection, profile: EmbeddingProfile, limit: int) -> list[TopicPost]:
    """Eligible posts that have no vector under this profile, lowest ids first."""
    cursor = await conn.execute(_PENDING, (await find_profile(conn, profile), limit))
    return [
        TopicPost(post_id, title, category, tuple(tags), body) async for post_id, title, category, tags, body in cursor
    ]


async def left_to_embed(conn: Connection, profile: EmbeddingProfile) -> int:
    """How many eligible posts have no vector under this profile."""
    row = await (await conn.execute(_LEFT, (await find_profile(conn, profile),))).fetchone()
    return int(row[0]) if row else 0


async def digests(conn: Connection, profile: EmbeddingProfile, post_ids: Sequence[PostId]) -> dict[PostId, bytes]:
    """The digest of passage 0 of each of these posts that has a vector under this profile."""
    cursor = await conn.execute(
        "SELECT post_id, digest FROM embeddings WHERE passage = 0 AND profile_id = %s AND post_id = ANY(%s)",
        (await find_profile(conn, profile), list(post_ids)),
    )
    return {post_id: bytes(digest) async for post_id, digest in cursor}


async def put_passages(conn: Connection, profile: EmbeddingProfile, passages: Sequence[EmbeddedPassage]) -> None:
    """Replace the vectors of these posts under this profile; in a transaction.

    A post that left the index while it was being embedded gets none. Raises psycopg's CheckViolation for a vector that
    isn't of unit length, ForeignKeyViolation for one of other dimensions than the profile's.
    """
    profile_id = await ensure_profile(conn, profile)
    post_ids = sorted({passage.post_id for passage in passages})
    cursor = await conn.execute(
        "SELECT post_id FROM posts WHERE post_id = ANY(%s) AND refusal IS NULL ORDER BY post_id FOR SHARE", (post_ids,)
    )
    eligible = {row[0] async for row in cursor}
    await conn.execute("DELETE FROM embeddings WHERE profile_id = %s AND post_id = ANY(%s)", (profile_id, post_ids))
    columns = "COPY embeddings (profile_id, post_id, passage, digest, embedding) FROM STDIN (FORMAT BINARY)"
    async with conn.cursor() as writer, writer.copy(columns) as copy:
        copy.set_types(["int2", "int8", "int2", "bytea", "halfvec"])
        for passage in passages:
            if passage.post_id in eligible:
                vector = HalfVector(passage.vector)
                await copy.write_row((profile_id, passage.post_id, passage.passage, passage.digest, vector))


async def drop_passages(conn: Connection, post_ids: Sequence[PostId]) -> None:
    """Delete the vectors of these posts under every profile."""
    await conn.execute("DELETE FROM embeddings WHERE post_id = ANY(%s)", (list(post_ids),))
