"""What the index holds, for comparing it with the forum, and how far the reconciler's walks have come."""

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from service.domain import EmbeddingProfile, Post, PostId, Topic, TopicId
from service.ingest.reconcile_ports import StoredPost, Walk
from service.store.crawl import CrawlStore
from service.store.pool import Pool, connection
from service.store.profiles import find_profile

_POSTS = """
SELECT post_id, topic_id, post_number, refusal, body, digest
FROM posts LEFT JOIN (
    SELECT post_id, digest FROM embeddings WHERE profile_id = %(profile_id)s AND passage = 0
) AS embedded USING (post_id)
WHERE (post_id > %(above)s AND post_id <= %(upto)s OR post_id = ANY(%(also)s))
"""

# The title came off with its category, or stayed when the last post went: neither shows in a list of posts.
_DOUBTFUL = """
SELECT topic_id FROM topics JOIN categories USING (category_id)
WHERE synced_at < %(stored_before)s AND visible AND NOT deleted AND NOT read_restricted AND (
    title = '' AND archetype = 'regular'
    OR title <> '' AND NOT EXISTS (SELECT FROM posts WHERE posts.topic_id = topics.topic_id AND refusal IS NULL)
)
ORDER BY title <> '', synced_at, topic_id LIMIT %(limit)s
"""

_UNHEARD = """
SELECT FROM answers WHERE post_id = %(post_id)s UNION ALL SELECT FROM traces WHERE post_id = %(post_id)s LIMIT 1
"""

_DELIVERED = """
SELECT FROM inbox WHERE (state ->> 'id')::bigint = %s AND (state ->> 'updated_at')::timestamptz >= %s
  AND event IN ('post_created', 'post_edited')
"""

_TERMS = "SELECT post_id, lexeme, tf FROM postings WHERE post_id = ANY(%s)"

_MOVE = """
INSERT INTO reconciliation (walk, position) VALUES (%s, %s)
ON CONFLICT (walk) DO UPDATE SET position = excluded.position, updated_at = now()
"""


class ReconcileStore:
    """Matches `service.ingest.reconcile_ports.ReconcileState`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._crawls = CrawlStore(pool)

    @asynccontextmanager
    async def alone(self, *, wait_seconds: float = 0.0) -> AsyncIterator[bool]:
        """Whether nobody else reconciles this index; it stays so until the end of the block, or of our connection.

        Who does is waited for so long.
        """
        async with self._crawls.alone("reconcile", wait_seconds=wait_seconds) as ours:
            yield ours

    async def position(self, walk: Walk) -> int:
        """Where the walk stands, 0 before its first step."""
        async with connection(self._pool) as conn:
            row = await (await conn.execute("SELECT position FROM reconciliation WHERE walk = %s", (walk,))).fetchone()
        return int(row[0]) if row else 0

    async def move(self, walk: Walk, position: int) -> None:
        """Remember where the walk stands."""
        async with connection(self._pool) as conn:
            await conn.execute(_MOVE, (walk, position))

    async def highest_post(self) -> PostId:
        """The highest id of a post that is known, 0 without any."""
        async with connection(self._pool) as conn:
            row = await (await conn.execute("SELECT coalesce(max(post_id), 0) FROM posts")).fetchone()
        return PostId(row[0] if row else 0)

    async def posts(
        self, profile: EmbeddingProfile, above: PostId, upto: PostId, also: Collection[PostId]
    ) -> dict[PostId, StoredPost]:
        """What is stored of the posts with ids in (above, upto], and of those named."""
        given = {"above": above, "upto": upto, "also": list(also)}
        async with connection(self._pool) as conn:
            given["profile_id"] = await find_profile(conn, profile)
            rows = await (await conn.execute(_POSTS, given)).fetchall()
            terms: dict[PostId, dict[str, int]] = defaultdict(dict)
            async for post_id, lexeme, tf in await conn.execute(_TERMS, ([row[0] for row in rows],)):
                terms[post_id][lexeme] = tf
        return {
            post_id: StoredPost(
                post_id, topic_id, number, refusal, body, terms.get(post_id, {}), made_of and bytes(made_of)
            )
            for post_id, topic_id, number, refusal, body, made_of in rows
        }

    async def topics(self, topic_ids: Collection[TopicId]) -> dict[TopicId, Topic]:
        """These topics as they are stored."""
        return await self._crawls.topics_stored(topic_ids)

    async def doubtful_topics(self, limit: int, *, stored_before: datetime) -> Sequence[TopicId]:
        """Topics that have no title though their category is public, or a title and no post with text; oldest first."""
        async with connection(self._pool) as conn:
            cursor = await conn.execute(_DOUBTFUL, {"stored_before": stored_before, "limit": limit})
            return [row[0] async for row in cursor]

    async def unheard(self, post_id: PostId) -> bool:
        """Whether neither the ledger nor a trace knows this post."""
        async with connection(self._pool) as conn:
            return (await conn.execute(_UNHEARD, {"post_id": post_id})).rowcount == 0

    async def delivered(self, post: Post) -> bool:
        """Whether a webhook has brought this state of the post, or a later one."""
        async with connection(self._pool) as conn:
            return (await conn.execute(_DELIVERED, (post.id, post.updated_at))).rowcount > 0
