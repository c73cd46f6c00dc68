"""What the database says of itself, its jobs and its deliveries: the facts that `ariane doctor` judges."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

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
        query = "SELECT current_setting('server_version'), max(extversion) FROM pg_extension WHERE extname = 'vector'"
        return Versions(*(await self._rows(query))[0])

    async def clock(self) -> datetime:
        """The server's time."""
        now: datetime = (await self._rows("SELECT clock_timestamp()"))[0][0]
        return now

    async def last_beat_seconds(self) -> float | None:
        """How long ago a worker last said that it lives; None when none ever ran."""
        silent: float | None = (await self._rows(_LAST_BEAT))[0][0]
        return silent

    async def oldest_waiting_seconds(self) -> float | None:
        """How long the job that came first has been due; None when none waits."""
        return next((row[0] for row in await self._rows(_OLDEST_WAITING)), None)

    async def failed_jobs(self) -> Mapping[str, int]:
        """How many jobs were given up and are still kept, by task."""
        query: LiteralString = (
            "SELECT task_name, count(*) FROM procrastinate_jobs WHERE status = 'failed' GROUP BY 1 ORDER BY 1"
        )
        return dict(await self._rows(query))

    async def newest_delivery(self) -> datetime | None:
        """When the last verified delivery came, of those that are kept."""
        newest: datetime | None = (await self._rows("SELECT max(received_at) FROM inbox"))[0][0]
        return newest

    async def _rows(self, query: LiteralString) -> list[tuple[Any, ...]]:
        async with connection(self._pool) as conn:
            return await (await conn.execute(query)).fetchall()
