"""The corpus: topics, posts and their text, each write one transaction, no older snapshot over a newer state."""

from collections.abc import Collection, Sequence
from datetime import datetime

from psycopg.rows import class_row, dict_row

from service.domain import Category, CategoryId, EmbeddingProfile, PostId, Topic, TopicId
from service.ingest.ports import Census, EmbeddedPassage, EmbeddingFailure, IndexedPost, TopicPost
from service.store import passages as vectors
from service.store import removal
from service.store.pool import Connection, Pool, connection, transaction
from service.store.postings import put_postings, terms_of
from service.store.quarantine import put_failures
from service.store.topics import refresh_topics
from service.store.values import storable

_PUT_TOPICS = """
INSERT INTO topics (topic_id, title, slug, category_id, archetype, visible, closed, archived, deleted, tags, synced_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, now())
ON CONFLICT (topic_id) DO UPDATE SET
    title = excluded.title, slug = excluded.slug, category_id = excluded.category_id, archetype = excluded.archetype,
    visible = excluded.visible, closed = excluded.closed, archived = excluded.archived, deleted = excluded.deleted,
    tags = excluded.tags, synced_at = excluded.synced_at
"""

_GIVEN = """
WITH given AS (SELECT * FROM unnest(
    %s::bigint[], %s::bigint[], %s::integer[], %s::smallint[], %s::bigint[], %s::text[],
    %s::timestamptz[], %s::timestamptz[], %s::integer[], %s::text[], %s::text[], %s::integer[]
) AS post (post_id, topic_id, post_number, post_type, user_id, username, created_at, updated_at, reply_to_post_number,
           refusal, body, length))
"""

_ADD_POSTS = (
    _GIVEN
    + """
INSERT INTO posts (post_id, topic_id, post_number, post_type, user_id, username, created_at, updated_at,
                   reply_to_post_number, refusal, body, length)
SELECT * FROM given ORDER BY post_id ON CONFLICT (post_id) DO NOTHING RETURNING post_id
"""
)

# A statement of its own: it sees, and keeps from moving, what others put while the one above waited for them.
_LOCK_POSTS = """
SELECT post_id, topic_id, post_number FROM posts WHERE post_id = ANY(%s) ORDER BY post_id FOR NO KEY UPDATE
"""

_CHANGE_POSTS = (
    _GIVEN
    + """
UPDATE posts AS stored SET
    topic_id = given.topic_id, post_number = given.post_number, post_type = given.post_type,
    user_id = given.user_id, username = given.username, created_at = given.created_at,
    updated_at = given.updated_at, reply_to_post_number = given.reply_to_post_number,
    refusal = given.refusal, body = given.body, length = given.length
FROM given
WHERE stored.post_id = given.post_id AND stored.post_id = ANY(%s) AND (
    stored.updated_at < given.updated_at
    OR stored.updated_at = given.updated_at AND (stored.refusal IS DISTINCT FROM 'deleted' OR %s)
) RETURNING stored.post_id
"""
)


class CorpusStore:
    """Matches `service.ingest.ports.Corpus` and `Backfills`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def categories(self) -> dict[CategoryId, Category]:
        """Every known category by its id."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(Category)) as cursor:
            await cursor.execute("SELECT category_id AS id, name, slug, parent_id, read_restricted FROM categories")
            return {category.id: category async for category in cursor}

    async def put_categories(self, categories: Sequence[Category]) -> None:
        """Replace the category table by this list: what is missing from it is private from now on."""
        async with transaction(self._pool) as conn:
            await conn.execute("LOCK TABLE categories IN SHARE ROW EXCLUSIVE MODE")
            await conn.execute("DELETE FROM categories")
            async with conn.cursor() as cursor:
                await cursor.executemany(
                    "INSERT INTO categories (category_id, name, slug, parent_id, read_restricted)"
                    " VALUES (%s, %s, %s, %s, %s)",
                    [(c.id, storable(c.name), storable(c.slug), c.parent_id, c.read_restricted) for c in categories],
                )

    async def topic(self, topic_id: TopicId) -> Topic | None:
        """The topic as it is stored."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(
                "SELECT topic_id AS id, title, slug, category_id, archetype, visible, closed, archived, deleted, tags"
                " FROM topics WHERE topic_id = %s",
                (topic_id,),
            )
            row = await cursor.fetchone()
        return None if row is None else Topic(**row | {"tags": tuple(row["tags"])})

    async def put_topics(self, topics: Sequence[Topic]) -> None:
        """Store the topics' state; their posts are left as they are (see remove_topic)."""
        async with transaction(self._pool) as conn, conn.cursor() as cursor:
            await cursor.executemany(_PUT_TOPICS, [_topic_row(one) for one in sorted(topics, key=lambda t: t.id)])

    async def put_posts(self, indexed: Sequence[IndexedPost], *, just_read: bool = False) -> int:
        """Store state, text and postings of posts whose topics are stored; how many were not stale.

        At the same `updated_at` a stored removal stays unless these posts were `just_read`; the rest is stored again.
        """
        newest = {one.post.id: one for one in sorted(indexed, key=lambda one: one.post.updated_at)}
        if not newest:
            return 0
        columns = [list(column) for column in zip(*map(_post_row, newest.values()), strict=True)]
        async with transaction(self._pool) as conn:
            new = {row[0] async for row in await conn.execute(_ADD_POSTS, columns)}
            earlier = await _places(conn, newest.keys() - new)
            cursor = await conn.execute(_CHANGE_POSTS, (*columns, list(earlier), just_read))
            changed = {row[0] async for row in cursor}
            terms = {post_id: terms_of(newest[post_id]) for post_id in (*new, *changed)}
            await put_postings(conn, terms, new=new)
            refused = [post_id for post_id in changed if newest[post_id].body is None]
            await vectors.drop_passages(conn, refused)
            posts = {post_id: newest[post_id].post for post_id in terms}
            moved = {one for one in changed if earlier[one] != (posts[one].topic_id, posts[one].post_number)}
            left = {topic_id for one in moved if (topic_id := earlier[one][0]) is not None}
            await refresh_topics(
                conn,
                lengths=left | {post.topic_id for post in posts.values()},
                vectors=left | {posts[one].topic_id for one in moved.union(refused)},
            )
        return len(terms)

    async def remove_post(self, post_id: PostId, *, updated_at: datetime) -> bool:
        """Mark the post deleted and drop its text, postings and vectors, unless a newer state is there.

        A post that was never seen is marked too, so that an older snapshot which comes later finds the removal.
        """
        async with transaction(self._pool) as conn:
            return await removal.remove_post(conn, post_id, updated_at=updated_at)

    async def withdraw_post(self, post_id: PostId) -> bool:
        """Drop the text, postings and vectors of a post that the public was just seen not to see, whatever its age."""
        async with transaction(self._pool) as conn:
            return await removal.withdraw_post(conn, post_id)

    async def remove_topic(self, topic_id: TopicId) -> int:
        """Drop the words of a topic that the public no longer sees, and of its posts; how many posts were dropped."""
        async with transaction(self._pool) as conn:
            return await removal.remove_topic(conn, topic_id)

    async def withdraw_private(self) -> int:
        """Drop the words of every topic whose category is private or unknown now; how many posts were dropped."""
        async with transaction(self._pool) as conn:
            return await removal.withdraw_private(conn)

    async def is_empty(self) -> bool:
        """Whether no post can be found at all."""
        async with connection(self._pool) as conn:
            cursor = await conn.execute("SELECT FROM posts WHERE refusal IS NULL LIMIT 1")
            return cursor.rowcount == 0

    async def census(self, profile: EmbeddingProfile) -> Census:
        """What the index holds; posts that were only ever seen removed don't count."""
        async with connection(self._pool) as conn:
            topics = await (await conn.execute("SELECT count(*) FROM topics")).fetchone()
            cursor = await conn.execute(
                "SELECT coalesce(refusal, ''), count(*) FROM posts WHERE topic_id IS NOT NULL GROUP BY 1 ORDER BY 1"
            )
            posts: dict[str, int] = {refusal: count async for refusal, count in cursor}
            left = await vectors.left_to_embed(conn, profile)
            unembeddable = await vectors.quarantined(conn, profile)
        indexed = posts.pop("", 0)
        return Census(topics[0] if topics else 0, indexed + sum(posts.values()), indexed, posts, left, unembeddable)

    async def pending(self, profile: EmbeddingProfile, limit: int) -> list[TopicPost]:
        """Eligible posts that have no vector under this profile, lowest ids first, save those in quarantine."""
        async with connection(self._pool) as conn:
            return await vectors.pending(conn, profile, limit)

    async def digests(self, profile: EmbeddingProfile, post_ids: Sequence[PostId]) -> dict[PostId, bytes]:
        """The digest of the text that was embedded of each of these posts, or that the model failed on."""
        async with connection(self._pool) as conn:
            return await vectors.digests(conn, profile, post_ids)

    async def put_passages(self, profile: EmbeddingProfile, passages: Sequence[EmbeddedPassage]) -> None:
        """Replace the vectors of these posts under this profile; posts that left the index meanwhile get none."""
        async with transaction(self._pool) as conn:
            await vectors.put_passages(conn, profile, passages)

    async def put_failures(self, profile: EmbeddingProfile, failures: Sequence[EmbeddingFailure]) -> None:
        """Quarantine these posts: not pending until they change; a vector of an older text goes."""
        async with transaction(self._pool) as conn:
            await put_failures(conn, profile, failures)

    async def topics_read(self, source: str) -> int:
        """How many topics of this source were read; 0 for a new one."""
        async with connection(self._pool) as conn:
            row = await (await conn.execute("SELECT topics FROM backfills WHERE source = %s", (source,))).fetchone()
        return int(row[0]) if row else 0

    async def mark_read(self, source: str, topics: int) -> None:
        """Remember how many topics of this source were read."""
        async with connection(self._pool) as conn:
            await conn.execute(
                "INSERT INTO backfills (source, topics) VALUES (%s, %s)"
                " ON CONFLICT (source) DO UPDATE SET topics = excluded.topics, updated_at = now()",
                (source, topics),
            )

    async def settle(self) -> None:
        """Refresh the planner's statistics, which a bulk load leaves behind."""
        async with connection(self._pool) as conn:
            await conn.execute("ANALYZE topics, posts, postings, document_frequencies, embeddings, topic_embeddings")


async def _places(conn: Connection, post_ids: Collection[PostId]) -> dict[PostId, tuple[TopicId | None, int]]:
    """The topic and the number of these posts as stored, which they keep until the transaction ends."""
    if not post_ids:
        return {}
    cursor = await conn.execute(_LOCK_POSTS, (list(post_ids),))
    return {post_id: (topic_id, number) async for post_id, topic_id, number in cursor}


def _topic_row(topic: Topic) -> tuple[object, ...]:
    tags = [storable(tag) for tag in topic.tags]
    state = (topic.category_id, topic.archetype, topic.visible, topic.closed, topic.archived, topic.deleted)
    return topic.id, storable(topic.title), storable(topic.slug), *state, tags


def _post_row(indexed: IndexedPost) -> tuple[object, ...]:
    post, body = indexed.post, indexed.body
    who = (post.user_id, storable(post.username), post.created_at, post.updated_at, post.reply_to_post_number)
    text = (indexed.refusal, None if body is None else storable(body), indexed.length)
    return post.id, post.topic_id, post.post_number, post.post_type, *who, *text
