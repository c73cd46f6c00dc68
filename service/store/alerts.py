"""Alerts for moderators: posted answers whose sources the public no longer sees, or not where their links lead."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from service.domain import PostId, TopicId
from service.store.pool import Connection, Pool, connection
from service.store.values import storable

MOVED = "moved"
"""The kind of an alert whose source is still public, elsewhere; the other kinds are words of service.ingest.ports."""

_FLAG = """
INSERT INTO source_alerts (answer_post_id, source_post_id, kind)
SELECT answers.post_id, source.post_id, coalesce(%(kind)s, source.refusal, 'topic_gone')
FROM answers JOIN posts AS source ON source.post_id = ANY(answers.cited)
WHERE answers.cited && %(sources)s::bigint[] AND answers.outcome = 'posted' AND source.post_id = ANY(%(sources)s)
ORDER BY 1, 2 ON CONFLICT (answer_post_id, source_post_id) DO NOTHING
"""

# A source that the public sees again needs no deed any more, and a new alert should it go once more.
_RESTORED = """
DELETE FROM source_alerts USING public_posts WHERE source_post_id = post_id AND kind <> 'moved'
"""

_OPEN = """
SELECT answer_post_id, source_post_id, kind, noticed_at, seen_at, seen_by, answers.topic_id,
       reply_post_id, reply_post_number
FROM source_alerts JOIN answers ON answers.post_id = answer_post_id
WHERE (seen_at IS NULL OR %(seen_too)s)
  AND (kind = 'moved' OR NOT EXISTS (SELECT FROM public_posts WHERE public_posts.post_id = source_post_id))
ORDER BY noticed_at DESC, answer_post_id, source_post_id LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class SourceAlert:
    """An answer to the post `answer_post_id`, posted as `reply_post_id` in `topic_id`, that cites `source_post_id`."""

    answer_post_id: PostId
    source_post_id: PostId
    kind: str
    noticed_at: datetime
    seen_at: datetime | None
    seen_by: str | None
    topic_id: TopicId
    reply_post_id: PostId | None
    reply_post_number: int | None


async def flag_citing(conn: Connection, sources: Sequence[PostId], *, kind: str | None = None) -> None:
    """Flag the posted answers that cite these posts; the kind is why they were refused, unless it is given."""
    await conn.execute(_FLAG, {"sources": list(sources), "kind": kind})


class AlertStore:
    """What the moderators' pages show of it."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def latest(self, limit: int, *, seen_too: bool = False) -> list[SourceAlert]:
        """The alerts that stand, latest first: not those whose source the public sees again."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(SourceAlert)) as cursor:
            await cursor.execute(_OPEN, {"limit": limit, "seen_too": seen_too})
            return await cursor.fetchall()

    async def mark_seen(self, answer_post_id: PostId, source_post_id: PostId, *, by: str) -> bool:
        """Note that a moderator has dealt with it; False when it is not there or was seen before."""
        async with connection(self._pool) as conn:
            cursor = await conn.execute(
                "UPDATE source_alerts SET seen_at = now(), seen_by = %s"
                " WHERE answer_post_id = %s AND source_post_id = %s AND seen_at IS NULL",
                (storable(by), answer_post_id, source_post_id),
            )
            return cursor.rowcount > 0

    async def drop_restored(self) -> int:
        """Delete the alerts whose source the public sees again; how many."""
        async with connection(self._pool) as conn:
            return (await conn.execute(_RESTORED)).rowcount
