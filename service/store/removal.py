"""What leaves the index: posts that were removed, or that the public no longer sees, with all that is kept of them."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import LiteralString

from service.domain import PostId, TopicId, UserId
from service.store.passages import drop_passages
from service.store.pool import Connection
from service.store.postings import NO_TERMS, put_postings
from service.store.topics import refresh_topics, topics_of
from service.store.withdrawn import forget_beside

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

_REFUSE_TOPIC = """
UPDATE posts SET refusal = 'topic_deleted', body = NULL, length = 0 WHERE post_id IN (
    SELECT post_id FROM posts WHERE topic_id = %s AND (refusal IS NULL OR refusal = 'opted_out')
    ORDER BY post_id FOR UPDATE
) RETURNING post_id
"""

_NOT_PUBLIC = """
SELECT topic_id, CASE
    WHEN topics.deleted THEN 'topic_deleted' WHEN NOT visible THEN 'topic_unlisted'
    WHEN read_restricted IS NOT FALSE THEN 'category_private' ELSE 'archetype'
END AS refusal, topics.title <> '' AS titled
FROM topics LEFT JOIN categories USING (category_id)
WHERE NOT EXISTS (SELECT FROM public_topics WHERE public_topics.topic_id = topics.topic_id)
"""

_REFUSE_PRIVATE = """
UPDATE posts SET refusal = private.refusal, body = NULL, length = 0
FROM unnest(%s::bigint[], %s::text[]) AS private (topic_id, refusal)
WHERE posts.topic_id = private.topic_id AND posts.post_id IN (
    SELECT post_id FROM posts WHERE (refusal IS NULL OR refusal = 'opted_out') AND topic_id = ANY(%s)
    ORDER BY post_id FOR UPDATE
) RETURNING posts.post_id
"""

_OPT_OUT = """
UPDATE posts SET refusal = 'opted_out', body = NULL, length = 0 WHERE post_id IN (
    SELECT post_id FROM posts WHERE refusal IS NULL AND (user_id = ANY(%s) OR username = ANY(%s))
    ORDER BY post_id FOR UPDATE
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


async def remove_topic(conn: Connection, topic_id: TopicId, *, read_at: datetime | None) -> int:
    """Drop the words of a topic, and its posts, unless it was stored after `read_at`; how many posts were dropped.

    In a transaction.
    """
    if read_at is not None:
        newer = "SELECT FROM topics WHERE topic_id = %s AND synced_at > %s"
        if (await conn.execute(newer, (topic_id, read_at))).rowcount:
            return 0
    dropped = await _refuse(conn, _REFUSE_TOPIC, topic_id)
    await conn.execute(
        "UPDATE topics SET deleted = true, title = '', slug = '', tags = '{}' WHERE topic_id = %s", (topic_id,)
    )
    return dropped


async def withdraw_private(conn: Connection) -> int:
    """Drop what is kept of every topic that the public doesn't see now; how many posts. In a transaction."""
    private = await (await conn.execute(_NOT_PUBLIC)).fetchall()
    titled = [topic_id for topic_id, _, has_title in private if has_title]
    topics, refusals = [row[0] for row in private], [row[1] for row in private]
    dropped = await _refuse(conn, _REFUSE_PRIVATE, topics, refusals, topics, also=titled)
    await conn.execute(_FORGET_TITLES, (titled,))
    return dropped


async def opt_out_posts(conn: Connection, user_ids: Sequence[UserId], usernames: Sequence[str]) -> int:
    """Take what these accounts wrote out of the index; how many posts. In a transaction."""
    cursor = await conn.execute(_OPT_OUT, (list(user_ids), list(usernames)))
    refused = [PostId(row[0]) async for row in cursor]
    await _drop(conn, refused, readable=refused)
    return len(refused)


async def _refuse(conn: Connection, query: LiteralString, *values: object, also: Sequence[TopicId] = ()) -> int:
    refused = [PostId(row[0]) async for row in await conn.execute(query, values)]
    await _drop(conn, refused, also=also)
    return len(refused)


async def _drop(
    conn: Connection,
    post_ids: Sequence[PostId],
    *,
    also: Sequence[TopicId] = (),
    readable: Collection[PostId] = (),
) -> None:
    """Drop what is kept of these posts; `also` are topics that the transaction is going to change, to be locked too.

    `readable` are those that everyone can still read on the forum.
    """
    await put_postings(conn, dict.fromkeys(post_ids, NO_TERMS))
    await drop_passages(conn, post_ids)
    topics = await topics_of(conn, post_ids)
    await refresh_topics(conn, lengths={*topics, *also}, vectors=topics)
    await forget_beside(conn, post_ids, readable=readable)
