"""What leaves the index: posts that were removed, or that the public no longer sees, with all that is kept of them."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString

from service.domain import PostId, TopicId
from service.store.passages import drop_passages
from service.store.pool import Connection
from service.store.postings import NO_TERMS, put_postings
from service.store.topics import refresh_topics, topics_of

_REMOVE_POST = """
INSERT INTO posts AS stored (post_id, post_number, post_type, username, created_at, updated_at, refusal)
VALUES (%(post_id)s, 0, 1, '', %(updated_at)s, %(updated_at)s, 'deleted')
ON CONFLICT (post_id) DO UPDATE SET updated_at = excluded.updated_at, refusal = 'deleted', body = NULL, length = 0
WHERE stored.updated_at <= excluded.updated_at
RETURNING post_id
"""

_WITHDRAW_POST = """
UPDATE posts SET refusal = 'deleted', body = NULL, length = 0 WHERE post_id = %s AND refusal IS NULL RETURNING post_id
"""

_REFUSE_TOPIC = """
UPDATE posts SET refusal = 'topic_deleted', body = NULL, length = 0 WHERE post_id IN (
    SELECT post_id FROM posts WHERE topic_id = %s AND refusal IS NULL ORDER BY post_id FOR UPDATE
) RETURNING post_id
"""

_REFUSE_PRIVATE = """
UPDATE posts SET refusal = 'category_private', body = NULL, length = 0 WHERE post_id IN (
    SELECT post_id FROM posts WHERE refusal IS NULL AND topic_id IN (
        SELECT topic_id FROM topics LEFT JOIN categories USING (category_id) WHERE read_restricted IS NOT FALSE
    ) ORDER BY post_id FOR UPDATE
) RETURNING post_id
"""

_PRIVATE_TOPICS = """
SELECT topic_id FROM topics LEFT JOIN categories USING (category_id) WHERE read_restricted IS NOT FALSE AND title <> ''
"""

_FORGET_TITLES = "UPDATE topics SET title = '', slug = '', tags = '{}' WHERE topic_id = ANY(%s)"


async def remove_post(conn: Connection, post_id: PostId, *, updated_at: datetime) -> bool:
    """Mark the post deleted and drop what is kept of it, unless a newer state is there; in a transaction."""
    cursor = await conn.execute(_REMOVE_POST, {"post_id": post_id, "updated_at": updated_at})
    removed = [row[0] async for row in cursor]
    await _drop(conn, removed)
    return bool(removed)


async def withdraw_post(conn: Connection, post_id: PostId) -> bool:
    """Drop what is kept of a post, whatever its age; False when nothing was. In a transaction."""
    return bool(await _refuse(conn, _WITHDRAW_POST, post_id))


async def remove_topic(conn: Connection, topic_id: TopicId) -> int:
    """Drop the words of a topic, and its posts; how many posts were dropped. In a transaction."""
    dropped = await _refuse(conn, _REFUSE_TOPIC, topic_id)
    await conn.execute(
        "UPDATE topics SET deleted = true, title = '', slug = '', tags = '{}' WHERE topic_id = %s", (topic_id,)
    )
    return dropped


async def withdraw_private(conn: Connection) -> int:
    """Drop what is kept of every topic whose category is private or unknown now; how many posts. In a transaction."""
    private = [row[0] async for row in await conn.execute(_PRIVATE_TOPICS)]
    dropped = await _refuse(conn, _REFUSE_PRIVATE, also=private)
    await conn.execute(_FORGET_TITLES, (private,))
    return dropped


async def _refuse(conn: Connection, query: LiteralString, *values: object, also: Sequence[TopicId] = ()) -> int:
    refused = [PostId(row[0]) async for row in await conn.execute(query, values)]
    await _drop(conn, refused, also=also)
    return len(refused)


async def _drop(conn: Connection, post_ids: Sequence[PostId], *, also: Sequence[TopicId] = ()) -> None:
    """Drop what is kept of these posts; `also` are topics that the transaction is going to change, to be locked too."""
    await put_postings(conn, dict.fromkeys(post_ids, NO_TERMS))
    await drop_passages(conn, post_ids)
    topics = await topics_of(conn, post_ids)
    await refresh_topics(conn, lengths={*topics, *also}, vectors=topics)
