"""The quarantine: posts that a profile's model fails on, left alone until they change or somebody lets them go."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from service.domain import EmbeddingProfile, PostId
from service.ingest.ports import EmbeddingFailure
from service.store.passages import changed_since, lock_eligible, quarantined
from service.store.pool import Connection, Pool, connection
from service.store.profiles import ensure_profile, find_profile
from service.store.topics import refresh_topics, topics_of
from service.store.values import storable

MAX_ERROR_CHARS = 500

_PUT = """
INSERT INTO embedding_failures AS known (profile_id, post_id, digest, source, error)
VALUES (%(profile_id)s, %(post_id)s, %(digest)s,
        embedding_source(%(title)s::text, %(category)s::text, %(tags)s::text[], %(body)s::text), %(error)s)
ON CONFLICT (profile_id, post_id) DO UPDATE SET
    digest = excluded.digest, source = excluded.source, error = excluded.error, failed_at = excluded.failed_at,
    attempts = CASE WHEN known.digest = excluded.digest THEN known.attempts + 1 ELSE 1 END
"""


@dataclass(frozen=True, slots=True)
class QuarantinedPost:
    """A post that the model failed on, the server's words, and how often this very text was tried."""

    post_id: PostId
    error: str
    failed_at: datetime
    attempts: int


async def put_failures(conn: Connection, profile: EmbeddingProfile, failures: Sequence[EmbeddingFailure]) -> None:
    """Quarantine these posts under this profile, in a transaction; their vectors go, being of an older text.

    Nothing is done to a post that left the index or was changed while it was being embedded.
    """
    profile_id = await ensure_profile(conn, profile)
    locked = await lock_eligible(conn, [one.post.post_id for one in failures])
    changed = await changed_since(conn, [one.post for one in failures if one.post.post_id in locked])
    failed = sorted(locked - changed)
    for one in failures:
        post = one.post
        if post.post_id in failed:
            await conn.execute(
                _PUT,
                {
                    "profile_id": profile_id,
                    "post_id": post.post_id,
                    "digest": one.digest,
                    "title": storable(post.title),
                    "category": storable(post.category),
                    "tags": [storable(tag) for tag in post.tags],
                    "body": storable(post.body),
                    "error": storable(one.error[:MAX_ERROR_CHARS]),
                },
            )
    await conn.execute("DELETE FROM embeddings WHERE profile_id = %s AND post_id = ANY(%s)", (profile_id, failed))
    await refresh_topics(conn, vectors=await topics_of(conn, failed))


class QuarantineStore:
    """Shows what is quarantined, and lets it go."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def count(self, profile: EmbeddingProfile) -> int:
        """How many posts are in quarantine under this profile: a changed one is pending instead."""
        async with connection(self._pool) as conn:
            return await quarantined(conn, profile)

    async def latest(self, profile: EmbeddingProfile, limit: int) -> list[QuarantinedPost]:
        """The posts that failed last, latest first."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(QuarantinedPost)) as cursor:
            await cursor.execute(
                "SELECT post_id, error, failed_at, attempts FROM embedding_failures WHERE profile_id = %s"
                " ORDER BY failed_at DESC, post_id LIMIT %s",
                (await find_profile(conn, profile), limit),
            )
            return await cursor.fetchall()

    async def release(self, profile: EmbeddingProfile) -> int:
        """Let every quarantined post of this profile be tried again; how many there are."""
        async with connection(self._pool) as conn:
            cursor = await conn.execute(
                "DELETE FROM embedding_failures WHERE profile_id = %s", (await find_profile(conn, profile),)
            )
            return cursor.rowcount
