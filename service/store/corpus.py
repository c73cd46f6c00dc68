"""The corpus: topics, posts and their text, each write one transaction, no older snapshot over a newer state."""

from collections.abc import Sequence
from datetime import datetime

from psycopg.rows import class_row, dict_row

from service.domain import Category, CategoryId, EmbeddingProfile, PostId, Topic, TopicId
from service.ingest.ports import Census, EmbeddedPassage, EmbeddingFailure, IndexedPost, TopicPost
from service.store import passages as vectors
from service.store import removal
from service.store.pool import Pool, connection, transaction
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

_PUT_POSTS = """
INSERT INTO posts AS stored (post_id, topic_id, post_number, post_type, user_id, username, created_at, updated_at,
                             reply_to_post_number, refusal, body, length)
SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::smallint[], %s::bigint[], %s::text[],
                     %s::timestamptz[], %s::timestamptz[], %s::integer[], %s::text[], %s::text[], %s::integer[])
    AS given (post_id, topic_id, post_number, post_type, user_id, username, created_at, updated_at,
              reply_to_post_number, refusal, body, length)
ORDER BY post_id
ON CONFLICT (post_id) DO UPDATE SET
    topic_id = excluded.topic_id, post_number = excluded.post_number, post_type = excluded.post_type,
    user_id = excluded.user_id, username = excluded.username, created_at = excluded.created_at,
    updated_at = excluded.updated_at, reply_to_post_number = excluded.reply_to_post_number,
    refusal = excluded.refusal, body = excluded.body, length = excluded.length
WHERE stored.updated_at < excluded.updated_at
   OR stored.updated_at = excluded.updated_at AND (stored.refusal IS DISTINCT FROM 'deleted' OR %s)
RETURNING post_id, xmax = 0 AS is_new
"""


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
            rows = await (await conn.execute(_PUT_POSTS, (*columns, just_read))).fetchall()
            terms = {post_id: terms_of(newest[post_id]) for post_id, _ in rows}
            before = await put_postings(conn, terms, new=[post_id for post_id, is_new in rows if is_new])
            refused = [post_id for post_id, is_new in rows if not is_new and newest[post_id].body is None]
            await vectors.drop_passages(conn, refused)
            now = {post_id: newest[post_id].post.topic_id for post_id in terms}
            moved = [post_id for post_id, topic_id in before.items() if topic_id != now[post_id]]
            await refresh_topics(
                conn,
                lengths={*before.values(), *now.values()},
                vectors={where[post_id] for where in (before, now) for post_id in moved}
                | {now[one] for one in refused},
            )
        return len(rows)

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


def _topic_row(topic: Topic) -> tuple[object, ...]:
    tags = [storable(tag) for tag in topic.tags]
    state = (topic.category_id, topic.archetype, topic.visible, topic.closed, topic.archived, topic.deleted)
    return topic.id, storable(topic.title), storable(topic.slug), *state, tags


def _post_row(indexed: IndexedPost) -> tuple[object, ...]:
    post, body = indexed.post, indexed.body
    who = (post.user_id, storable(post.username), post.created_at, post.updated_at, post.reply_to_post_number)
    text = (indexed.refusal, None if body is None else storable(body), indexed.length)
    return post.id, post.topic_id, post.post_number, post.post_type, *who, *text
