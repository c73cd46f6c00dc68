"""Putting posts into the index: state, text and postings in one transaction, no older state over a newer one."""

from collections.abc import Collection, Sequence
from datetime import datetime

from service.domain import PostId, TopicId
from service.ingest.ports import IndexedPost, Refusal
from service.store.alerts import MOVED, flag_citing
from service.store.passages import drop_passages
from service.store.pool import Connection
from service.store.postings import put_postings, terms_of
from service.store.topics import refresh_topics
from service.store.values import storable
from service.store.withdrawn import forget_beside

_GIVEN = """
WITH given AS (SELECT * FROM unnest(
    %s::bigint[], %s::bigint[], %s::integer[], %s::smallint[], %s::bigint[], %s::text[],
    %s::timestamptz[], %s::timestamptz[], %s::integer[], %s::text[], %s::text[], %s::integer[], %s::timestamptz[]
) AS post (post_id, topic_id, post_number, post_type, user_id, username, created_at, updated_at, reply_to_post_number,
           refusal, body, length, read_at))
"""

_ADD_POSTS = (
    _GIVEN
    + """
INSERT INTO posts (post_id, topic_id, post_number, post_type, user_id, username, created_at, updated_at,
                   reply_to_post_number, refusal, body, length, read_at)
SELECT * FROM given ORDER BY post_id ON CONFLICT (post_id) DO NOTHING RETURNING post_id
"""
)

# Its lock on the table keeps anyone from opting out meanwhile, so that no post of his is put after his posts left.
_OPTED_OUT = """
SELECT user_id, username FROM opt_outs WHERE user_id = ANY(%s::bigint[]) OR username = ANY(%s::text[]) FOR KEY SHARE
"""

# A statement of its own: it sees, and keeps from moving, what others put while the one above waited for them.
_LOCK_POSTS = """
SELECT post_id, topic_id, post_number FROM posts WHERE post_id = ANY(%s) ORDER BY post_id FOR NO KEY UPDATE
"""

# A snapshot is ordered by its own date, and never brings back what was removed; a reading also by when it began.
_CHANGE_POSTS = (
    _GIVEN
    + """
UPDATE posts AS stored SET
    topic_id = given.topic_id, post_number = given.post_number, post_type = given.post_type,
    user_id = given.user_id, username = given.username, created_at = given.created_at,
    updated_at = given.updated_at, reply_to_post_number = given.reply_to_post_number,
    refusal = given.refusal, body = given.body, length = given.length, read_at = given.read_at
FROM given
WHERE stored.post_id = given.post_id AND stored.post_id = ANY(%s) AND (
    stored.refusal IS DISTINCT FROM 'deleted' AND (
        stored.updated_at < given.updated_at
        OR stored.updated_at = given.updated_at
           AND (stored.read_at IS NULL OR stored.read_at <= given.read_at)
    )
    OR stored.refusal = 'deleted' AND (stored.read_at IS NULL AND given.read_at IS NOT NULL
                                       OR stored.read_at <= given.read_at)
) RETURNING stored.post_id
"""
)


async def put_posts(conn: Connection, indexed: Sequence[IndexedPost], *, read_at: datetime | None) -> int:
    """Store posts whose topics are stored; how many were not stale. In a transaction of its own.

    Which is stale, CorpusStore.put_posts tells.
    """
    wanted = await _without_opted_out(conn, indexed)
    newest = {one.post.id: one for one in sorted(wanted, key=lambda one: one.post.updated_at)}
    if not newest:
        return 0
    rows = [(*_post_row(one), read_at) for one in newest.values()]
    columns = [list(column) for column in zip(*rows, strict=True)]
    new = {row[0] async for row in await conn.execute(_ADD_POSTS, columns)}
    earlier = await _places(conn, newest.keys() - new)
    cursor = await conn.execute(_CHANGE_POSTS, (*columns, list(earlier)))
    changed = {row[0] async for row in cursor}
    terms = {post_id: terms_of(newest[post_id]) for post_id in (*new, *changed)}
    await put_postings(conn, terms, new=new)
    refused = [post_id for post_id in changed if newest[post_id].body is None]
    await drop_passages(conn, refused)
    posts = {post_id: newest[post_id].post for post_id in terms}
    moved = {one for one in changed if earlier[one] != (posts[one].topic_id, posts[one].post_number)}
    left = {topic_id for one in moved if (topic_id := earlier[one][0]) is not None}
    await refresh_topics(
        conn,
        lengths=left | {post.topic_id for post in posts.values()},
        vectors=left | {posts[one].topic_id for one in moved.union(refused)},
    )
    gone = [one for one in terms if newest[one].refusal not in (None, Refusal.BOT_AUTHOR)]
    await forget_beside(conn, gone, readable=[one for one in gone if newest[one].refusal is Refusal.OPTED_OUT])
    elsewhere = [one for one in moved if newest[one].refusal is None and earlier[one][0] is not None]
    await flag_citing(conn, elsewhere, kind=MOVED)
    return len(terms)


async def _without_opted_out(conn: Connection, indexed: Sequence[IndexedPost]) -> list[IndexedPost]:
    """The same, none of a member who opted out since they were decided on; nobody does until the transaction ends."""
    accounts = [one.post.user_id for one in indexed], [storable(one.post.username) for one in indexed]
    rows = await (await conn.execute(_OPTED_OUT, accounts)).fetchall()
    ids, names = {row[0] for row in rows if row[0] is not None}, {row[1] for row in rows if row[1] is not None}
    return [
        IndexedPost(one.post, Refusal.OPTED_OUT, None, {}, 0)
        if one.refusal is None and (one.post.user_id in ids or storable(one.post.username) in names)
        else one
        for one in indexed
    ]


async def _places(conn: Connection, post_ids: Collection[PostId]) -> dict[PostId, tuple[TopicId | None, int]]:
    """The topic and the number of these posts as stored, which they keep until the transaction ends."""
    if not post_ids:
        return {}
    cursor = await conn.execute(_LOCK_POSTS, (list(post_ids),))
    return {post_id: (topic_id, number) async for post_id, topic_id, number in cursor}


def _post_row(indexed: IndexedPost) -> tuple[object, ...]:
    post, body = indexed.post, indexed.body
    who = (post.user_id, storable(post.username), post.created_at, post.updated_at, post.reply_to_post_number)
    text = (indexed.refusal, None if body is None else storable(body), indexed.length)
    return post.id, post.topic_id, post.post_number, post.post_type, *who, *text
