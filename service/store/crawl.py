"""How far the reading of each forum has come, who reads it, and what of it is stored."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager

from psycopg.errors import LockNotAvailable
from psycopg.rows import dict_row

from service.domain import PostId, Topic, TopicId
from service.ingest.crawl_ports import CrawlCursor, Stage
from service.ingest.ports import TopicPost
from service.store.pool import Connection, Pool, connection

_TOPICS = """
SELECT topic_id AS id, title, slug, category_id, archetype, visible, closed, archived, deleted, tags
FROM topics WHERE topic_id = ANY(%s)
"""

_TEXTS = """
SELECT post_id, topics.title, coalesce(categories.name, '') AS category, topics.tags, body
FROM posts JOIN topics USING (topic_id) LEFT JOIN categories USING (category_id)
WHERE post_id = ANY(%s) AND refusal IS NULL
"""

_KEEP_CURSOR = """
INSERT INTO crawls (source, stage, topic_page, newest, before, floor) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (source) DO UPDATE SET stage = excluded.stage, topic_page = excluded.topic_page, newest = excluded.newest,
    before = excluded.before, floor = excluded.floor, updated_at = now()
"""

_EXPECT = """
INSERT INTO crawled_topics (source, topic_id, posts) SELECT %s, * FROM unnest(%s::bigint[], %s::integer[])
ON CONFLICT (source, topic_id) DO UPDATE SET posts = excluded.posts
"""

_INCOMPLETE = """
SELECT topic_id FROM crawled_topics AS said
WHERE source = %s AND said.posts > (SELECT count(*) FROM posts WHERE posts.topic_id = said.topic_id) ORDER BY topic_id
"""

_UNKNOWN = """
SELECT post_id FROM unnest(%s::bigint[]) WITH ORDINALITY AS given (post_id, place)
WHERE NOT EXISTS (SELECT FROM posts WHERE posts.post_id = given.post_id AND topic_id IS NOT NULL) ORDER BY place
"""

_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_WAIT_FOR_LOCK = "SELECT pg_advisory_lock(hashtextextended(%s, 0))"
_PATIENCE = "SELECT set_config('lock_timeout', %(ms)s, true), set_config('statement_timeout', '0', true)"
_UNLOCK = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"


class CrawlStore:
    """Matches `service.ingest.crawl_ports.Crawls` and `Claims`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @asynccontextmanager
    async def alone(self, source: str, *, wait_seconds: float = 0.0) -> AsyncIterator[bool]:
        """Whether nobody else reads this source; it stays so until the end of the block, or of our connection.

        Who does is waited for so long; whoever waits comes before all that ask later.
        """
        async with self._locked(f"ariane crawl {source}", wait_seconds) as ours:
            yield ours

    @asynccontextmanager
    async def claim(self, number: int) -> AsyncIterator[bool]:
        """Whether the claim of this number is ours until the end of the block, or of our connection."""
        async with self._locked(f"ariane claim {number}") as ours:
            yield ours

    @asynccontextmanager
    async def _locked(self, name: str, wait_seconds: float = 0.0) -> AsyncIterator[bool]:
        async with connection(self._pool) as conn:
            held = True
            try:
                held = ours = await (_waited(conn, name, wait_seconds) if wait_seconds else _tried(conn, name))
                try:
                    yield ours
                finally:
                    if ours and not conn.closed:
                        await conn.execute(_UNLOCK, (name,))
                        held = False
            finally:
                if held:  # whoever was interrupted may have got the lock: in the pool the connection would keep it
                    await conn.close()

    async def topics_stored(self, topic_ids: Collection[TopicId]) -> dict[TopicId, Topic]:
        """These topics as they are stored."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_TOPICS, (list(topic_ids),))
            return {row["id"]: Topic(**row | {"tags": tuple(row["tags"])}) async for row in cursor}

    async def texts_stored(self, post_ids: Collection[PostId]) -> dict[PostId, TopicPost]:
        """What embedding needs of those of these posts that are in the index."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_TEXTS, (list(post_ids),))
            return {row["post_id"]: TopicPost(**row | {"tags": tuple(row["tags"])}) async for row in cursor}

    async def titled_topics(self, after: TopicId, limit: int) -> list[TopicId]:
        """The next topics above this id that are stored as public, in the order of their ids."""
        query = "SELECT topic_id FROM topics WHERE topic_id > %s AND title <> '' ORDER BY topic_id LIMIT %s"
        async with connection(self._pool) as conn:
            return [row[0] async for row in await conn.execute(query, (after, limit))]

    async def eligible_upto(self, newest: PostId, *, after: PostId, limit: int) -> list[PostId]:
        """The next posts above the id `after`, up to `newest`, that are in the index, in the order of their ids."""
        query = "SELECT post_id FROM posts WHERE post_id > %s AND post_id <= %s AND refusal IS NULL ORDER BY 1 LIMIT %s"
        async with connection(self._pool) as conn:
            return [row[0] async for row in await conn.execute(query, (after, newest, limit))]

    async def cursor(self, source: str) -> CrawlCursor | None:
        """Where the crawl of this source is, None before the first."""
        async with connection(self._pool) as conn:
            cursor = await conn.execute(
                "SELECT stage, topic_page, newest, before, floor FROM crawls WHERE source = %s", (source,)
            )
            row = await cursor.fetchone()
        return None if row is None else CrawlCursor(Stage(row[0]), *row[1:])

    async def keep_cursor(self, source: str, cursor: CrawlCursor) -> None:
        """Remember where the crawl of this source is."""
        values = (source, cursor.stage, cursor.topic_page, cursor.newest, cursor.before, cursor.floor)
        async with connection(self._pool) as conn:
            await conn.execute(_KEEP_CURSOR, values)

    async def expect(self, source: str, last_numbers: Mapping[TopicId, int]) -> None:
        """Remember how many posts these topics have, were none deleted."""
        async with connection(self._pool) as conn:
            await conn.execute(_EXPECT, (source, list(last_numbers), list(last_numbers.values())))

    async def incomplete(self, source: str) -> list[TopicId]:
        """The topics of which fewer posts are stored than are expected."""
        async with connection(self._pool) as conn:
            return [row[0] async for row in await conn.execute(_INCOMPLETE, (source,))]

    async def complete(self, source: str, topic_id: TopicId) -> None:
        """Expect no more posts of this topic."""
        async with connection(self._pool) as conn:
            await conn.execute("DELETE FROM crawled_topics WHERE source = %s AND topic_id = %s", (source, topic_id))

    async def unknown_posts(self, post_ids: Sequence[PostId]) -> list[PostId]:
        """Those of which nothing is stored, in the same order."""
        async with connection(self._pool) as conn:
            return [row[0] async for row in await conn.execute(_UNKNOWN, (list(post_ids),))]


async def _tried(conn: Connection, name: str) -> bool:
    row = await (await conn.execute(_LOCK, (name,))).fetchone()
    return bool(row and row[0])


async def _waited(conn: Connection, name: str, seconds: float) -> bool:
    """Whether the lock is the session's now: tried for so long, in the order of those who ask."""
    try:
        async with conn.transaction():
            await conn.execute(_PATIENCE, {"ms": str(max(1, round(seconds * 1000)))})  # 0 would be for ever
            await conn.execute(_WAIT_FOR_LOCK, (name,))
    except LockNotAvailable:
        return False
    return True
