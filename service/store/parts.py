"""Whether the parts of the workers work, as they last said: what the web process, which calls nobody, can know."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from service.store.pool import Pool, connection, transaction

FORGET_SECONDS = 3600
"""A worker that has been silent for this long is forgotten."""

_PUT = """
INSERT INTO part_states (worker, part, works)
SELECT %s, part, works FROM unnest(%s::text[], %s::boolean[]) AS told (part, works)
ON CONFLICT (worker, part) DO UPDATE SET works = excluded.works, seen_at = now()
"""

_LATEST = """
SELECT part, bool_and(works) AS works, max(seen_at) AS seen_at, count(*)::int AS workers FROM part_states
WHERE seen_at > now() - make_interval(secs => %s) GROUP BY part ORDER BY part
"""


@dataclass(frozen=True, slots=True)
class PartState:
    """A part as the workers that beat know it: False when it fails one of them, None while none knows."""

    part: str
    works: bool | None
    seen_at: datetime
    workers: int


class PartStore:
    """Keeps what each worker last said of its parts."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def put(self, worker: str, works: Mapping[str, bool | None]) -> None:
        """What this worker knows of its parts now."""
        async with transaction(self._pool) as conn:
            await conn.execute(_PUT, (worker, list(works), list(works.values())))
            await conn.execute(
                "DELETE FROM part_states WHERE seen_at < now() - make_interval(secs => %s)", (FORGET_SECONDS,)
            )

    async def latest(self, *, within_seconds: float) -> dict[str, PartState]:
        """The parts that some worker has told of within that time."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(PartState)) as cursor:
            await cursor.execute(_LATEST, (within_seconds,))
            return {state.part: state async for state in cursor}
