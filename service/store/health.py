"""What the database says of itself, its jobs and its deliveries: the facts that `ariane doctor` judges."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from psycopg.rows import scalar_row, tuple_row

from service.store.pool import Pool, connection

_LAST_BEAT = "SELECT extract(epoch FROM now() - max(last_heartbeat))::float8 FROM procrastinate_workers"

_OLDEST_WAITING = """
SELECT extract(epoch FROM now() - coalesce(scheduled_at, deferred.at))::float8
FROM procrastinate_jobs AS job
LEFT JOIN LATERAL (SELECT max(at) AS at FROM procrastinate_events WHERE job_id = job.id AND type = 'deferred')
    AS deferred ON true
WHERE status = 'todo' AND coalesce(scheduled_at, now()) <= now() ORDER BY job.id LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Versions:
    postgres: str
    pgvector: str | None


class HealthStore:
    """Reads the state of queue, inbox and server."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def versions(self) -> Versions:
        """Of the server, and of the extension in this database."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(
                "SELECT current_setting('server_version'),"
                " (SELECT extversion FROM pg_extension WHERE extname = 'vector')"
            )
            row = await cursor.fetchone()
        return Versions(*row) if row else Versions("", None)

    async def clock(self) -> datetime:
        """The server's time."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=scalar_row) as cursor:
            await cursor.execute("SELECT clock_timestamp()")
            now: datetime | None = await cursor.fetchone()
        assert now is not None  # noqa: S101 - a SELECT without FROM has a row
        return now

    async def last_beat_seconds(self) -> float | None:
        """How long ago a worker last said that it lives; None when none ever ran."""
        return await self._seconds(_LAST_BEAT)

    async def oldest_waiting_seconds(self) -> float | None:
        """How long the job that came first has been due; None when none waits."""
        return await self._seconds(_OLDEST_WAITING)

    async def failed_jobs(self) -> Mapping[str, int]:
        """How many jobs were given up and are still kept, by task."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(
                "SELECT task_name, count(*) FROM procrastinate_jobs WHERE status = 'failed' GROUP BY 1 ORDER BY 1"
            )
            return {task: count async for task, count in cursor}

    async def newest_delivery(self) -> datetime | None:
        """When the last verified delivery came, of those that are kept."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=scalar_row) as cursor:
            await cursor.execute("SELECT max(received_at) FROM inbox")
            newest: datetime | None = await cursor.fetchone()
        return newest

    async def _seconds(self, query: LiteralString) -> float | None:
        async with connection(self._pool) as conn, conn.cursor(row_factory=scalar_row) as cursor:
            await cursor.execute(query)
            seconds: float | None = await cursor.fetchone()
        return seconds
