"""What the moderators' pages count: questions by outcome, zone and mode, times and scores, out of the traces."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from psycopg.rows import class_row, tuple_row

from service.store.pool import Pool, connection

MAX_TRACES = 5_000
"""Newest traces whose times and scores are read: each has to be unpacked."""

# As in the view shown_traces: what a moderator can't read on the forum isn't counted for him either.
_SEEN: LiteralString = """
traces LEFT JOIN answers USING (post_id) LEFT JOIN topics ON topics.topic_id = traces.topic_id
LEFT JOIN categories ON categories.category_id = coalesce(topics.category_id, answers.category_id)
WHERE (%(admin)s OR NOT is_closed(traces.private, topics.archetype, categories.read_restricted))
"""

# The view, as the list of answers reads it: each post once, with what became of it, a moderator's decision included.
_SHOWN: LiteralString = """
WITH shown AS (
    SELECT (recorded_at AT TIME ZONE 'UTC')::date::text AS day, outcome, reason, zone, mode FROM shown_traces
    WHERE (%(admin)s OR NOT closed) AND recorded_at >= %(since)s
)
"""

_OUTCOMES = (
    _SHOWN
    + """
SELECT day, outcome AS word, coalesce(reason, '') AS of, count(*)::int AS count FROM shown
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
)

_ZONES = (
    _SHOWN
    + """
SELECT day, zone AS word, '' AS of, count(*)::int AS count FROM shown WHERE zone IS NOT NULL
GROUP BY 1, 2 ORDER BY 1, 2
"""
)

_MODES = (
    _SHOWN
    + """
SELECT day, mode AS word, '' AS of, count(*)::int AS count FROM shown WHERE mode IS NOT NULL
GROUP BY 1, 2 ORDER BY 1, 2
"""
)

_NEWEST: LiteralString = f"""
WITH newest AS (
    SELECT trace_id, (recorded_at AT TIME ZONE 'UTC')::date::text AS day, mode, traces.trace FROM {_SEEN}
    AND recorded_at >= %(since)s AND mode IS NOT NULL ORDER BY trace_id DESC LIMIT %(limit)s
)
"""  # noqa: S608 - both parts are constants of this module

_FALLBACKS = (
    _NEWEST
    + """
SELECT day, note AS word, '' AS of, count(*)::int AS count
FROM newest, jsonb_array_elements_text(trace -> 'notes') AS note
WHERE right(note, 5) = '_down' GROUP BY 1, 2 ORDER BY 1, 2
"""
)

_TIMES = (
    _NEWEST
    + """
SELECT stage, count(*)::int AS questions,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY ms::float8) AS p50_ms,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY ms::float8) AS p95_ms
FROM newest, jsonb_each_text(trace -> 'timings_ms') AS timing (stage, ms) GROUP BY stage
"""
)

_LOGITS = (
    _NEWEST
    + """
SELECT max((candidate ->> 'logit')::float8) FROM newest, jsonb_array_elements(trace -> 'candidates') AS candidate
WHERE mode = 'reranked' AND candidate ->> 'logit' IS NOT NULL GROUP BY trace_id
"""
)

_RECONCILED = "SELECT max(updated_at), max(position) FILTER (WHERE walk = 'posts') FROM reconciliation"


_DECLINES: LiteralString = f"""
SELECT recorded_at, coalesce((
        SELECT note FROM jsonb_array_elements_text(traces.trace -> 'notes') AS note WHERE note LIKE 'gate:%%' LIMIT 1
    ), '') AS note, traces.topic_id, coalesce(nullif(topics.slug, ''), '-') AS slug,
    coalesce(answers.post_number, 1) AS post_number, coalesce(answers.outcome, traces.outcome) AS outcome
FROM {_SEEN} AND reason = 'gated' ORDER BY trace_id DESC LIMIT %(limit)s
"""  # noqa: S608 - both parts are constants of this module


@dataclass(frozen=True, slots=True)
class DayCount:
    """How many posts of a UTC day ("2026-11-30") a word holds for; `of` is the result or reason beside an outcome."""

    day: str
    word: str
    of: str
    count: int


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Median and 95th percentile of a stage's time, and of how many questions."""

    stage: str
    questions: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Declined:
    """A question that the gate declined: where it is, and the note "gate:kind:rule" of its trace; not what it said."""

    recorded_at: datetime
    note: str
    topic_id: int
    slug: str
    post_number: int
    outcome: str

    @property
    def kind(self) -> str:
        return self.note.split(":")[1] if self.note else ""

    @property
    def rule(self) -> str:
        return self.note.rpartition(":")[2]


@dataclass(frozen=True, slots=True)
class Reconciled:
    """When the reconciler last noted its place, and the id of the post that its walk over all of them has come to."""

    at: datetime | None
    post_id: int | None
    highest: int | None


class FigureStore:
    """Counts; `admin` tells whether the reader sees what is closed to moderators."""

    def __init__(self, pool: Pool, *, admin: bool) -> None:
        self._pool = pool
        self._admin = admin

    async def outcomes(self, since: datetime) -> list[DayCount]:
        """Posts that asked something, by day, outcome and its result or reason."""
        return await self._counts(_OUTCOMES, since)

    async def zones(self, since: datetime) -> list[DayCount]:
        """Questions that were ranked, by day and zone."""
        return await self._counts(_ZONES, since)

    async def modes(self, since: datetime) -> list[DayCount]:
        """Questions that were searched for, by day and mode."""
        return await self._counts(_MODES, since)

    async def fallbacks(self, since: datetime) -> list[DayCount]:
        """Questions that went on without a part, by day and the note of it, of the newest MAX_TRACES."""
        return await self._counts(_FALLBACKS, since)

    async def times(self, since: datetime) -> list[StageTimes]:
        """The times of each stage, of the newest MAX_TRACES."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(StageTimes)) as cursor:
            await cursor.execute(_TIMES, self._values(since))
            return await cursor.fetchall()

    async def top_logits(self, since: datetime) -> Sequence[float]:
        """The best score that the reranker gave for each question, of the newest MAX_TRACES."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(_LOGITS, self._values(since))
            return [top async for (top,) in cursor]

    async def declines(self, limit: int) -> list[Declined]:
        """The questions that the gate declined last, newest first."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(Declined)) as cursor:
            await cursor.execute(_DECLINES, {"admin": self._admin, "limit": limit})
            return await cursor.fetchall()

    async def reconciled(self) -> Reconciled:
        """How far the reconciler has come."""
        async with connection(self._pool) as conn:
            row = await (await conn.execute(_RECONCILED)).fetchone()
            highest = await (await conn.execute("SELECT max(post_id) FROM posts")).fetchone()
        at, post_id = row or (None, None)
        return Reconciled(at, post_id, highest[0] if highest else None)

    async def _counts(self, query: LiteralString, since: datetime) -> list[DayCount]:
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(DayCount)) as cursor:
            await cursor.execute(query, self._values(since))
            return await cursor.fetchall()

    def _values(self, since: datetime) -> dict[str, object]:
        return {"since": since, "admin": self._admin, "limit": MAX_TRACES}
