"""The stored vectors: what still lacks one, what each was made of, and putting them."""

from collections.abc import Collection, Sequence
from typing import LiteralString

from pgvector import HalfVector

from service.domain import EmbeddingProfile, PostId, ProfileId
from service.errors import Transient
from service.ingest.ports import EmbeddedPassage, KeptPassage, TopicPost
from service.store.pool import Connection
from service.store.profiles import ensure_profile, find_profile
from service.store.topics import refresh_topics, topics_of
from service.store.values import storable

# What is quarantined is found first: it is little, and the planner would else hash the text of every waiting post.
_WAITING = """
WITH quarantined AS MATERIALIZED (
    SELECT post_id FROM embedding_failures JOIN posts USING (post_id) JOIN topics USING (topic_id)
    LEFT JOIN categories USING (category_id)
    WHERE profile_id = %(profile_id)s
    AND source = embedding_source(topics.title, coalesce(categories.name, ''), topics.tags, posts.body)
), waiting AS (
    SELECT post_id, topic_id, body FROM posts WHERE refusal IS NULL
    AND NOT EXISTS (
        SELECT FROM embeddings WHERE embeddings.post_id = posts.post_id AND profile_id = %(profile_id)s
    ) AND NOT EXISTS (SELECT FROM quarantined WHERE quarantined.post_id = posts.post_id)
)
"""

_PENDING = (
    _WAITING
    + """
SELECT post_id, topics.title, coalesce(categories.name, ''), topics.tags, body
FROM waiting JOIN topics USING (topic_id) LEFT JOIN categories USING (category_id) ORDER BY post_id LIMIT %(limit)s
"""
)

_LEFT = (
    _WAITING
    + """
SELECT count(*) FROM waiting
"""
)

_QUARANTINED = (
    _WAITING
    + """
SELECT count(*) FROM quarantined
"""
)

_DIGESTS = """
SELECT post_id, array_agg(digest ORDER BY passage) FROM embeddings
WHERE profile_id = %(profile_id)s AND post_id = ANY(%(post_ids)s) GROUP BY post_id
UNION ALL
SELECT post_id, ARRAY[digest] FROM embedding_failures
WHERE profile_id = %(profile_id)s AND post_id = ANY(%(post_ids)s)
"""

# Who writes vectors of the same posts waits here, and then sees what was written.
_LOCK = """
SELECT post_id FROM posts WHERE post_id = ANY(%s) AND refusal IS NULL ORDER BY post_id FOR NO KEY UPDATE
"""

_READ = """
SELECT post_id, topics.title, coalesce(categories.name, ''), body, topics.tags
FROM posts JOIN topics USING (topic_id) LEFT JOIN categories USING (category_id) WHERE post_id = ANY(%s)
"""

_STORED = "SELECT post_id, digest, embedding FROM embeddings WHERE profile_id = %s AND post_id = ANY(%s)"

_FORGET = (
    "DELETE FROM embeddings WHERE profile_id = %s AND post_id = ANY(%s)",
    "DELETE FROM embedding_failures WHERE profile_id = %s AND post_id = ANY(%s)",
)


async def pending(conn: Connection, profile: EmbeddingProfile, limit: int) -> list[TopicPost]:
    """Eligible posts that have no vector under this profile, lowest ids first, save those in quarantine."""
    cursor = await conn.execute(_PENDING, {"profile_id": await find_profile(conn, profile), "limit": limit})
    return [
        TopicPost(post_id, title, category, tuple(tags), body) async for post_id, title, category, tags, body in cursor
    ]


async def left_to_embed(conn: Connection, profile: EmbeddingProfile) -> int:
    """How many posts `pending` could give."""
    return await _count(conn, _LEFT, profile)


async def quarantined(conn: Connection, profile: EmbeddingProfile) -> int:
    """How many posts are as they were when the profile's model failed on them."""
    return await _count(conn, _QUARANTINED, profile)


async def digests(
    conn: Connection, profile: EmbeddingProfile, post_ids: Sequence[PostId]
) -> dict[PostId, tuple[bytes, ...]]:
    """The digests of the passages of each of these posts under this profile, in order, or the one that failed."""
    parameters = {"profile_id": await find_profile(conn, profile), "post_ids": list(post_ids)}
    cursor = await conn.execute(_DIGESTS, parameters)
    return {post_id: tuple(map(bytes, made_of)) async for post_id, made_of in cursor}


async def put_passages(
    conn: Connection,
    profile: EmbeddingProfile,
    passages: Sequence[EmbeddedPassage],
    kept: Sequence[KeptPassage] = (),
    *,
    read: Sequence[TopicPost] = (),
) -> None:
    """Replace the vectors of these posts under this profile by those given and `kept`; in a transaction.

    A post that left the index while it was being embedded gets none. One of which something else was `read` than what
    is stored now isn't touched: it was changed meanwhile, and may have its vectors already.

    Raises Transient where a kept passage was replaced meanwhile, psycopg's CheckViolation for a vector that isn't of
    unit length, ForeignKeyViolation for one of other dimensions than the profile's.
    """
    profile_id = await ensure_profile(conn, profile)
    given = {one.post_id for one in passages} | {one.post_id for one in kept}
    eligible = await lock_eligible(conn, given)
    stale = await changed_since(conn, [one for one in read if one.post_id in eligible])
    eligible -= stale
    post_ids = sorted(given - stale)
    vectors: list[tuple[EmbeddedPassage | KeptPassage, HalfVector]] = [
        (one, HalfVector(one.vector)) for one in passages if one.post_id in eligible
    ]
    vectors += await _stored(conn, profile_id, [one for one in kept if one.post_id in eligible])
    for statement in _FORGET:
        await conn.execute(statement, (profile_id, post_ids))
    columns = "COPY embeddings (profile_id, post_id, passage, digest, embedding) FROM STDIN (FORMAT BINARY)"
    async with conn.cursor() as writer, writer.copy(columns) as copy:
        copy.set_types(["int2", "int8", "int2", "bytea", "halfvec"])
        for one, vector in vectors:
            await copy.write_row((profile_id, one.post_id, one.passage, one.digest, vector))
    await refresh_topics(conn, vectors=await topics_of(conn, post_ids))


async def lock_eligible(conn: Connection, post_ids: Collection[PostId]) -> set[PostId]:
    """Those of these posts that are in the index; they stay as they are until the transaction ends."""
    return {row[0] async for row in await conn.execute(_LOCK, (sorted(post_ids),))}


async def changed_since(conn: Connection, read: Sequence[TopicPost]) -> set[PostId]:
    """Those of these posts, which are locked, that aren't any more what was read of them."""
    if not read:
        return set()
    cursor = await conn.execute(_READ, ([one.post_id for one in read],))
    now = {post_id: words async for post_id, *words in cursor}
    return {one.post_id for one in read if now.get(one.post_id) != _as_stored(one)}


def _as_stored(post: TopicPost) -> list[object]:
    words = (post.title, post.category, post.body)
    return [*map(storable, words), list(map(storable, post.tags))]


async def _stored(
    conn: Connection, profile_id: ProfileId, kept: Sequence[KeptPassage]
) -> list[tuple[EmbeddedPassage | KeptPassage, HalfVector]]:
    """The kept passages with the vectors that are stored of their digests; raises Transient for one without."""
    if not kept:
        return []
    cursor = await conn.execute(_STORED, (profile_id, sorted({one.post_id for one in kept})))
    known = {(post_id, bytes(made_of)): vector async for post_id, made_of, vector in cursor}
    if gone := {one.post_id for one in kept if (one.post_id, one.digest) not in known}:
        raise Transient(f"passages of {len(gone)} posts, {min(gone)} first, were replaced while others were embedded")
    return [(one, known[one.post_id, one.digest]) for one in kept]


async def drop_passages(conn: Connection, post_ids: Sequence[PostId]) -> None:
    """Delete the vectors of these posts under every profile, and their failures; their topics are to be refreshed."""
    await conn.execute("DELETE FROM embeddings WHERE post_id = ANY(%s)", (list(post_ids),))
    await conn.execute("DELETE FROM embedding_failures WHERE post_id = ANY(%s)", (list(post_ids),))


async def _count(conn: Connection, query: LiteralString, profile: EmbeddingProfile) -> int:
    row = await (await conn.execute(query, {"profile_id": await find_profile(conn, profile)})).fetchone()
    return int(row[0]) if row else 0
