"""What the moderators' pages read of answers: the list of them, and one with all that is kept of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, LiteralString

from psycopg.rows import class_row, dict_row

from service.domain import CategoryId, PostId, TopicId, Trace
from service.store.pool import Pool, connection
from service.store.traces import read_trace
from service.store.values import storable

_WHERE: LiteralString = """
WHERE (NOT closed OR %(admin)s)
  AND (%(outcome)s::text IS NULL AND outcome <> 'skipped' OR outcome = %(outcome)s)
  AND (%(result)s::text IS NULL OR reason = %(result)s)
  AND (%(zone)s::text IS NULL OR zone = %(zone)s)
  AND (%(category)s::bigint IS NULL OR category_id = %(category)s)
  AND (%(day)s::date IS NULL OR recorded_at >= %(day)s::date::timestamp AT TIME ZONE 'UTC'
       AND recorded_at < (%(day)s::date + 1)::timestamp AT TIME ZONE 'UTC')
  AND (%(like)s::text IS NULL OR title ILIKE %(like)s OR raw ILIKE %(like)s OR trace ->> 'asked' ILIKE %(like)s
       OR trace ->> 'queries' ILIKE %(like)s)
"""

_HEAD: LiteralString = (
    "post_id, topic_id, post_number, title, slug, category, closed, recorded_at, outcome, reason, zone, mode"
)

_LISTED: LiteralString = f"""
SELECT {_HEAD},
       coalesce(nullif(trace ->> 'asked', ''), trace -> 'queries' ->> -1, '') AS asked,
       ARRAY(SELECT DISTINCT kind FROM answer_signals AS one WHERE one.post_id = shown_traces.post_id ORDER BY 1)
           AS signals,
       ARRAY(SELECT DISTINCT kind FROM answer_deeds AS one WHERE one.post_id = shown_traces.post_id
             AND one.outcome = 'done' AND kind <> 'read' ORDER BY 1) AS deeds,
       EXISTS (SELECT FROM source_alerts WHERE answer_post_id = post_id AND seen_at IS NULL) AS alerted
FROM shown_traces {_WHERE}
ORDER BY recorded_at DESC, trace_id DESC LIMIT %(limit)s OFFSET %(offset)s
"""  # noqa: S608 - its parts are constants of this module

_COUNTS = """
SELECT outcome, reason, coalesce(zone, ''), count(*) FROM shown_traces
WHERE (NOT closed OR %(admin)s) AND outcome IN ('posted', 'shadowed') AND recorded_at >= %(since)s
GROUP BY 1, 2, 3 ORDER BY 1, 4 DESC, 2, 3
"""

_ONE: LiteralString = f"""
SELECT {_HEAD}, trace, raw, cited, reply_post_id, reply_post_number
FROM shown_traces WHERE post_id = %(post_id)s AND (NOT closed OR %(admin)s)
"""  # noqa: S608 - its parts are constants of this module


_ALERTS = """
SELECT source_post_id, source_alerts.kind, noticed_at, seen_at, seen_by, topics.title FROM source_alerts
LEFT JOIN posts ON posts.post_id = source_post_id LEFT JOIN public_topics AS topics USING (topic_id)
WHERE answer_post_id = %s ORDER BY noticed_at, source_post_id
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which answers: None, and an empty text, is any; without an outcome all but those that were skipped.

    `result` is also the reason of a skip; `day` is in UTC.
    """

    outcome: str | None = None
    result: str | None = None
    zone: str | None = None
    category: CategoryId | None = None
    day: date | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """The post that asked, where and when, and what it came to."""

    post_id: PostId
    topic_id: TopicId
    post_number: int | None
    title: str
    slug: str
    category: str | None
    closed: bool
    recorded_at: datetime
    outcome: str
    reason: str | None
    zone: str | None
    mode: str | None


@dataclass(frozen=True, slots=True)
class ListedAnswer(AnswerHead):
    """A line of the list: what was asked, which signals and deeds there are."""

    asked: str
    signals: Sequence[str]
    deeds: Sequence[str]
    alerted: bool


@dataclass(frozen=True, slots=True)
class AnswerRecord(AnswerHead):
    """All that is kept of one answer: `raw` is the text of the reply, None without one, empty where it was let go."""

    trace: Trace
    raw: str | None
    cited: Sequence[PostId]
    reply_post_id: PostId | None
    reply_post_number: int | None


@dataclass(frozen=True, slots=True)
class Alert:
    """A source of a posted answer that the public no longer sees where it was; `title` is of its topic, if seen."""

    source_post_id: PostId
    kind: str
    noticed_at: datetime
    seen_at: datetime | None
    seen_by: str | None
    title: str | None


@dataclass(frozen=True, slots=True)
class Count:
    """How many answers came to this; the zone is empty where there was none."""

    outcome: str
    result: str
    zone: str
    n: int


class AnswerStore:
    """Reads answers; `admin` tells whether the reader sees what is closed to moderators."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def listed(self, wanted: Wanted, *, admin: bool, limit: int, offset: int = 0) -> list[ListedAnswer]:
        """The wanted answers, the latest first."""
        values = {**_values(wanted), "admin": admin, "limit": limit, "offset": offset}
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(ListedAnswer)) as cursor:
            await cursor.execute(_LISTED, values)
            return await cursor.fetchall()

    async def counts(self, *, admin: bool, since: datetime) -> list[Count]:
        """What the answers since then came to, posted and in shadow."""
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_COUNTS, {"admin": admin, "since": since})).fetchall()
        return [Count(*row) for row in rows]

    async def one(self, post_id: PostId, *, admin: bool) -> AnswerRecord | None:
        """The answer to this post; None where there is none for this reader."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_ONE, {"post_id": post_id, "admin": admin})
            row = await cursor.fetchone()
        return None if row is None else AnswerRecord(**{**row, "trace": read_trace(row["trace"])})

    async def alerts(self, post_id: PostId) -> list[Alert]:
        """What was noticed of the sources of the answer to this post."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(Alert)) as cursor:
            await cursor.execute(_ALERTS, (post_id,))
            return await cursor.fetchall()


def _values(wanted: Wanted) -> Mapping[str, Any]:
    plain = storable(wanted.text).replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    return {
        "outcome": wanted.outcome,
        "result": wanted.result,
        "zone": wanted.zone,
        "category": wanted.category,
        "day": wanted.day,
        "like": f"%{plain}%" if plain else None,
    }
