"""The corpus: topics, posts and their text, each write one transaction, no older snapshot over a newer state."""

from collections.abc import Sequence
from datetime import datetime

from psycopg.rows import class_row, dict_row

from service.domain import Category, CategoryId, EmbeddingProfile, PostId, Topic, TopicId
from service.ingest.ports import Census, EmbeddedPassage, EmbeddingFailure, IndexedPost, KeptPassage, TopicPost
from service.store import passages as vectors
from service.store import removal
from service.store.pool import Pool, connection, transaction
from service.store.posts import put_posts
from service.store.quarantine import put_failures
from service.store.values import storable

_PUT_TOPICS = """
INSERT INTO topics (topic_id, title, slug, category_id, archetype, visible, closed, archived, deleted, tags, synced_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, now())
ON CONFLICT (topic_id) DO UPDATE SET
    title = excluded.title, slug = excluded.slug, category_id = excluded.category_id, archetype = excluded.archetype,
    visible = excluded.visible, closed = excluded.closed, archived = excluded.archived, deleted = excluded.deleted,
    tags = excluded.tags, synced_at = excluded.synced_at
WHERE %s::timestamptz IS NULL AND NOT topics.deleted OR topics.synced_at <= %s
"""

_DATE_CATEGORIES = """
INSERT INTO category_list AS stored (read_at) VALUES (coalesce(%s, clock_timestamp()))
ON CONFLICT (only_one) DO UPDATE SET read_at = greatest(stored.read_at, excluded.read_at)
"""

_ADD_CATEGORY = """
INSERT INTO categories (category_id, name, slug, parent_id, read_restricted) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (category_id) DO NOTHING
"""


PUT_AT_ONCE = 2000
"""Posts stored in one transaction, which holds up every other that has a word in common with them."""


class CorpusStore:
    """Matches `service.ingest.ports.Corpus` and `Backfills`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def categories(self) -> dict[CategoryId, Category]:
        """Every known category by its id."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(Category)) as cursor:
            await cursor.execute("SELECT category_id AS id, name, slug, parent_id, read_restricted FROM categories")
            return {category.id: category async for category in cursor}

    async def put_categories(self, categories: Sequence[Category], *, read_at: datetime | None = None) -> bool:
        """Replace the category table by this list: what is missing from it is private from now on.

        Nothing is done, False, where a later reading than that of `read_at` is stored, or a category was closed since.
        """
        async with transaction(self._pool) as conn:
            await conn.execute("LOCK TABLE categories IN SHARE ROW EXCLUSIVE MODE")
            newer = await conn.execute("SELECT FROM category_list WHERE read_at > %s", (read_at,))
            if newer.rowcount:
                return False
            await conn.execute("DELETE FROM categories")
            async with conn.cursor() as cursor:
                await cursor.executemany(_ADD_CATEGORY, [_category_row(one) for one in categories])
            await conn.execute(_DATE_CATEGORIES, (read_at,))
        return True

    async def add_categories(self, categories: Sequence[Category]) -> None:
        """Store those that are not known; of one that is known, nothing changes."""
        async with transaction(self._pool) as conn, conn.cursor() as cursor:
            await cursor.executemany(_ADD_CATEGORY, [_category_row(one) for one in categories])

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

    async def put_topics(self, topics: Sequence[Topic], *, read_at: datetime | None = None) -> int:
        """Store the topics' state, but not over one that was stored after `read_at`; how many were stored.

        Without `read_at` they are snapshots of some time, which bring back no topic that was removed. Their posts are
        left as they are (see remove_topic).
        """
        ordered = sorted(topics, key=lambda topic: topic.id)
        async with transaction(self._pool) as conn, conn.cursor() as cursor:
            await cursor.executemany(_PUT_TOPICS, [(*_topic_row(one), read_at, read_at) for one in ordered])
            return cursor.rowcount

    async def put_posts(self, indexed: Sequence[IndexedPost], *, read_at: datetime | None = None) -> int:
        """Store state, text and postings of posts whose topics are stored; how many were not stale.

        Without `read_at` they are snapshots: one that is older than the stored state, or whose post was removed, is
        stale, and at the same `updated_at` one that stands against a reading. A reading that began at `read_at` brings
        back what was removed before it.
        """
        stored = 0
        for start in range(0, len(indexed), PUT_AT_ONCE):
            async with transaction(self._pool) as conn:
                stored += await put_posts(conn, indexed[start : start + PUT_AT_ONCE], read_at=read_at)
        return stored

    async def remove_post(self, post_id: PostId, *, updated_at: datetime) -> bool:
        """Mark the post deleted and drop its text, postings and vectors, unless a newer state is there.

        A post that was never seen is marked too, so that an older snapshot which comes later finds the removal.
        """
        async with transaction(self._pool) as conn:
            return await removal.remove_post(conn, post_id, updated_at=updated_at)

    async def withdraw_posts(self, post_ids: Sequence[PostId], *, read_at: datetime) -> int:
        """Drop all that is kept of posts that a reading which began at `read_at` didn't show; how many were there."""
        return await removal.withdraw_in_parts(self._pool, post_ids, read_at=read_at)

    async def remove_topic(self, topic_id: TopicId, *, read_at: datetime | None = None) -> int:
        """Drop the words of a topic that the public no longer sees, and of its posts; how many posts were dropped.

        Nothing is done where the topic was stored after `read_at`, when the reading that missed it began.
        """
        async with transaction(self._pool) as conn:
            removed = await removal.remove_topic(conn, topic_id, read_at=read_at)
        return await self._withdraw(topic_id) if removed else 0

    async def hide_topic(self, topic_id: TopicId) -> None:
        """Keep the topic out of search until it is stored anew; its words go with withdraw_private."""
        async with connection(self._pool) as conn:
            await conn.execute("UPDATE topics SET visible = false WHERE topic_id = %s", (topic_id,))

    async def close_category(self, category_id: CategoryId) -> None:
        """Keep the category out of search until the categories are read anew; its words go with withdraw_private."""
        async with transaction(self._pool) as conn:
            await conn.execute("LOCK TABLE categories IN SHARE ROW EXCLUSIVE MODE")
            await conn.execute("UPDATE categories SET read_restricted = true WHERE category_id = %s", (category_id,))
            await conn.execute(_DATE_CATEGORIES, (None,))

    async def withdraw_private(self) -> int:
        """Drop the words of every topic that the public doesn't see now; how many posts were dropped."""
        async with transaction(self._pool) as conn:
            await removal.forget_titles(conn)
        return await self._withdraw()

    async def _withdraw(self, topic_id: TopicId | None = None) -> int:
        withdrawn = 0
        while True:
            async with transaction(self._pool) as conn:
                part = await removal.withdraw_private(conn, topic_id)
            if not part:
                return withdrawn
            withdrawn += part

    async def now(self) -> datetime:
        """The database's time, by which readings and writings are ordered."""
        async with connection(self._pool) as conn:
            row = await (await conn.execute("SELECT clock_timestamp()")).fetchone()
        assert row is not None  # noqa: S101 - a SELECT without FROM has a row
        moment: datetime = row[0]
        return moment

    async def eligible_posts(self, topic_id: TopicId) -> set[PostId]:
        """The posts of the topic that have text."""
        async with connection(self._pool) as conn:
            query = "SELECT post_id FROM posts WHERE topic_id = %s AND refusal IS NULL"
            return {row[0] async for row in await conn.execute(query, (topic_id,))}

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

    async def digests(self, profile: EmbeddingProfile, post_ids: Sequence[PostId]) -> dict[PostId, tuple[bytes, ...]]:
        """The digests of the passages of each of these posts, in order, or the one that the model failed on."""
        async with connection(self._pool) as conn:
            return await vectors.digests(conn, profile, post_ids)

    async def put_passages(
        self,
        profile: EmbeddingProfile,
        passages: Sequence[EmbeddedPassage],
        kept: Sequence[KeptPassage] = (),
        *,
        read: Sequence[TopicPost] = (),
    ) -> None:
        """Replace the vectors of these posts under this profile; posts that left the index meanwhile get none.

        One that isn't any more what was `read` of it, to embed it, keeps what it has: who changed it embeds it anew.
        """
        async with transaction(self._pool) as conn:
            await vectors.put_passages(conn, profile, passages, kept, read=read)

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


def _category_row(one: Category) -> tuple[object, ...]:
    return one.id, storable(one.name), storable(one.slug), one.parent_id, one.read_restricted


def _topic_row(topic: Topic) -> tuple[object, ...]:
    tags = [storable(tag) for tag in topic.tags]
    state = (topic.category_id, topic.archetype, topic.visible, topic.closed, topic.archived, topic.deleted)
    return topic.id, storable(topic.title), storable(topic.slug), *state, tags
