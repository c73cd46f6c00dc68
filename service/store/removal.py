"""What leaves the index: posts that were removed, or that the public no longer sees, with all that is kept of them."""

from collections.abc import Collection, Sequence
from datetime import datetime

from service.domain import PostId, TopicId, UserId
from service.store.passages import drop_passages
from service.store.pool import Connection, Pool, transaction
from service.store.postings import NO_TERMS, put_postings
from service.store.topics import refresh_topics, topics_of
from service.store.withdrawn import forget_beside

PART = 500
"""Posts that leave the index in one transaction. Each has some hundred postings: 40,000 at once took longer than any
transaction may, so that a big category that was closed never lost its text."""

_REMOVE_POST = """
INSERT INTO posts AS stored (post_id, post_number, post_type, username, created_at, updated_at, read_at, refusal)
VALUES (%(post_id)s, 0, 1, '', %(updated_at)s, %(updated_at)s, clock_timestamp(), 'deleted')
ON CONFLICT (post_id) DO UPDATE SET
    updated_at = excluded.updated_at, read_at = excluded.read_at, refusal = 'deleted', body = NULL, length = 0
WHERE stored.updated_at <= excluded.updated_at
RETURNING post_id
"""

_WITHDRAW_POSTS = """
INSERT INTO posts AS stored (post_id, post_number, post_type, username, created_at, updated_at, read_at, refusal)
SELECT post_id, 0, 1, '', %(read_at)s, %(read_at)s, %(read_at)s, 'deleted'
FROM unnest(%(post_ids)s::bigint[]) AS gone (post_id) ORDER BY post_id
ON CONFLICT (post_id) DO UPDATE SET read_at = excluded.read_at, refusal = 'deleted', body = NULL, length = 0
WHERE stored.refusal IS DISTINCT FROM 'deleted' AND (stored.read_at IS NULL OR stored.read_at <= excluded.read_at)
RETURNING post_id
"""

_WORDS = "(posts.refusal IS NULL OR posts.refusal = 'opted_out')"

_NOT_PUBLIC = """
FROM topics LEFT JOIN categories USING (category_id)
WHERE (%(topic_id)s::bigint IS NULL OR topics.topic_id = %(topic_id)s)
  AND NOT EXISTS (SELECT FROM public_topics WHERE public_topics.topic_id = topics.topic_id)
"""

_REFUSE_PRIVATE = f"""
WITH private AS MATERIALIZED (
    SELECT topics.topic_id, CASE
        WHEN topics.deleted THEN 'topic_deleted' WHEN NOT visible THEN 'topic_unlisted'
        WHEN read_restricted IS NOT FALSE THEN 'category_private' ELSE 'archetype'
    END AS refusal {_NOT_PUBLIC}
    AND EXISTS (SELECT FROM posts WHERE posts.topic_id = topics.topic_id AND {_WORDS}) LIMIT %(part)s
)
UPDATE posts SET refusal = private.refusal, body = NULL, length = 0 FROM private
WHERE posts.topic_id = private.topic_id AND posts.post_id IN (
    SELECT post_id FROM posts WHERE topic_id IN (SELECT topic_id FROM private) AND {_WORDS}
    ORDER BY post_id LIMIT %(part)s FOR UPDATE
) RETURNING posts.post_id
"""  # noqa: S608 - both parts are constants of this module

_TITLED = f"SELECT topic_id {_NOT_PUBLIC} AND title <> '' ORDER BY topic_id"

_OPT_OUT = """
UPDATE posts SET refusal = 'opted_out', body = NULL, length = 0 WHERE post_id IN (
    SELECT post_id FROM posts WHERE refusal IS NULL AND (user_id = ANY(%s) OR username = ANY(%s))
    ORDER BY post_id LIMIT %s FOR UPDATE
) RETURNING post_id
"""

_FORGET_TITLES = "UPDATE topics SET title = '', slug = '', tags = '{}' WHERE topic_id = ANY(%s)"


async def remove_post(conn: Connection, post_id: PostId, *, updated_at: datetime) -> bool:
    """Mark the post deleted and drop what is kept of it, unless a newer state is there; in a transaction."""
    cursor = await conn.execute(_REMOVE_POST, {"post_id": post_id, "updated_at": updated_at})
    removed = [row[0] async for row in cursor]
    await _drop(conn, removed)
    return bool(removed)


async def withdraw_posts(conn: Connection, post_ids: Sequence[PostId], *, read_at: datetime) -> int:
    """Drop what is kept of posts that a reading which began at `read_at` didn't show; in a transaction.

    What was read or removed since stays. How many were not removed before.
    """
    cursor = await conn.execute(_WITHDRAW_POSTS, {"post_ids": list(post_ids), "read_at": read_at})
    gone = [PostId(row[0]) async for row in cursor]
    await _drop(conn, gone)
    return len(gone)


async def withdraw_in_parts(pool: Pool, post_ids: Sequence[PostId], *, read_at: datetime) -> int:
    """`withdraw_posts`, PART of them in a transaction."""
    withdrawn = 0
    for start in range(0, len(post_ids), PART):
        async with transaction(pool) as conn:
            withdrawn += await withdraw_posts(conn, post_ids[start : start + PART], read_at=read_at)
    return withdrawn


async def remove_topic(conn: Connection, topic_id: TopicId, *, read_at: datetime | None) -> bool:
    """Drop the words of a topic unless it was stored after `read_at`; those of its posts go with `withdraw_private`."""
    newer = "SELECT FROM topics WHERE topic_id = %s AND synced_at > %s"
    if read_at is not None and (await conn.execute(newer, (topic_id, read_at))).rowcount:
        return False
    await conn.execute(
        "UPDATE topics SET deleted = true, title = '', slug = '', tags = '{}' WHERE topic_id = %s", (topic_id,)
    )
    return True


async def forget_titles(conn: Connection) -> None:
    """Drop the words of every topic that the public doesn't see now; in a transaction."""
    titled = [TopicId(row[0]) async for row in await conn.execute(_TITLED, {"topic_id": None})]
    await refresh_topics(conn, lengths=titled)  # it locks them in their order
    await conn.execute(_FORGET_TITLES, (titled,))


async def withdraw_private(conn: Connection, topic_id: TopicId | None = None) -> int:
    """Drop what is kept of the next PART posts, at most, of topics, or this one, that the public doesn't see now.

    In a transaction; how many posts, 0 where none is left.
    """
    cursor = await conn.execute(_REFUSE_PRIVATE, {"topic_id": topic_id, "part": PART})
    refused = [PostId(row[0]) async for row in cursor]
    await _drop(conn, refused)
    return len(refused)


async def opt_out_posts(conn: Connection, user_ids: Sequence[UserId], usernames: Sequence[str]) -> int:
    """Take the next PART posts of these accounts out of the index; how many, 0 where none is left. In a transaction."""
    cursor = await conn.execute(_OPT_OUT, (list(user_ids), list(usernames), PART))
    refused = [PostId(row[0]) async for row in cursor]
    await _drop(conn, refused, readable=refused)
    return len(refused)


async def _drop(conn: Connection, post_ids: Sequence[PostId], *, readable: Collection[PostId] = ()) -> None:
    """Drop what is kept of these posts; `readable` are those that everyone can still read on the forum."""
    await put_postings(conn, dict.fromkeys(post_ids, NO_TERMS))
    await drop_passages(conn, post_ids)
    topics = await topics_of(conn, post_ids)
    await refresh_topics(conn, lengths=topics, vectors=topics)
    await forget_beside(conn, post_ids, readable=readable)
