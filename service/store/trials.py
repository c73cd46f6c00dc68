"""Questions that moderators ask for themselves: answered by a worker, posted nowhere, kept for a day."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, LiteralString

from psycopg.rows import class_row, dict_row
from psycopg.types.json import Jsonb

from service.domain import Mode, Result, Trace
from service.errors import Rejected
from service.store.ledger import stored_trace
from service.store.pool import Connection, Pool, connection, transaction
from service.store.traces import read_trace
from service.store.values import storable, to_json

PER_HOUR = 20
"""Trials of one moderator."""
KEPT = timedelta(days=1)
LOST_AFTER = timedelta(minutes=15)
"""A trial that has not ended by then holds up no other."""

_BUSY = """
SELECT count(*) FILTER (WHERE state IN ('waiting', 'running') AND asked_at > %(lost)s), count(*) FROM trials
WHERE asked_by = %(by)s AND asked_at > %(hour)s
"""

_ASK = """
INSERT INTO trials (asked_by, question, lang, asked_at) VALUES (%(by)s, %(question)s, %(lang)s, %(now)s)
RETURNING trial_id
"""

_BEGIN = """
UPDATE trials SET state = 'running' WHERE trial_id = %s AND state IN ('waiting', 'running') RETURNING question, lang
"""

_KEPT = "SELECT trial_id, question, asked_at, state, ended_at, error"

_LATEST = _KEPT + ", NULL AS result FROM trials WHERE asked_by = %s AND asked_at > %s ORDER BY trial_id DESC LIMIT %s"

_ONE = _KEPT + ", result FROM trials WHERE asked_by = %s AND asked_at > %s AND trial_id = %s"

_END = """
UPDATE trials SET state = %(state)s, ended_at = %(now)s, error = %(error)s, result = %(result)s
WHERE trial_id = %(trial_id)s AND state IN ('waiting', 'running')
"""


class TrialState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a worker has to answer; an empty `lang` is told from the question."""

    question: str
    lang: str


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What a question came to, in the words of its result; `declined` is the gate's "kind:rule", whether or not on.

    `signature` (SHA-256 in hex) is of the configuration that answered.
    """

    result: str
    markdown: str
    cited: tuple[int, ...]
    gate_on: bool
    declined: str
    trace: Trace
    signature: str = ""

    @property
    def whole(self) -> bool:
        """Whether the configuration answered with all its parts at work, so that it was tested."""
        return bool(self.signature) and self.result == Result.ANSWERED and self.trace.mode is Mode.RERANKED


@dataclass(frozen=True, slots=True)
class Trial:
    """A question as its moderator sees it."""

    id: int
    question: str
    asked_at: datetime
    state: TrialState
    ended_at: datetime | None
    error: str | None
    result: TrialResult | None = None

    def pending(self, now: datetime) -> bool:
        """Whether it is still worth waiting for."""
        return self.state in (TrialState.WAITING, TrialState.RUNNING) and self.asked_at > now - LOST_AFTER


class TrialStore:
    """Keeps trials; `follow` adds the worker's job in the transaction of the question."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def ask(
        self, asked: Asked, *, by: str, now: datetime, follow: Callable[[Connection, int], Awaitable[None]]
    ) -> int:
        """Keep a question; raises Rejected (429) while another of theirs runs, and after PER_HOUR in an hour."""
        values = {
            "by": by,
            "question": storable(asked.question),
            "lang": asked.lang,
            "now": now,
            "lost": now - LOST_AFTER,
            "hour": now - timedelta(hours=1),
        }
        async with transaction(self._pool) as conn:
            await conn.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"trials {by}",))
            busy = await (await conn.execute(_BUSY, values)).fetchone()
            if busy and busy[0]:
                raise Rejected("your last question is still being answered", status=429)
            if busy and busy[1] >= PER_HOUR:
                raise Rejected(f"{PER_HOUR} questions an hour at most", status=429)
            row = await (await conn.execute(_ASK, values)).fetchone()
            assert row is not None  # noqa: S101 - INSERT ... RETURNING gives a row
            await follow(conn, row[0])
        return int(row[0])

    async def begin(self, trial_id: int) -> Asked | None:
        """What is to be answered; None when it has ended or gone. May be called again after a crash."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(Asked)) as cursor:
            await cursor.execute(_BEGIN, (trial_id,))
            return await cursor.fetchone()

    async def done(self, trial_id: int, result: TrialResult, *, now: datetime) -> None:
        """Keep what it came to."""
        stored = {
            "result": result.result,
            "markdown": result.markdown,
            "cited": result.cited,
            "gate_on": result.gate_on,
            "declined": result.declined,
            "signature": result.signature,
            "trace": stored_trace(result.trace).obj,
        }
        await self._end(trial_id, TrialState.DONE, now, result=Jsonb(to_json(stored)))

    async def failed(self, trial_id: int, error: str, *, now: datetime) -> None:
        """Keep why it can't be answered."""
        await self._end(trial_id, TrialState.FAILED, now, error=storable(error))

    async def _end(
        self, trial_id: int, state: TrialState, now: datetime, *, error: str | None = None, result: Jsonb | None = None
    ) -> None:
        values = {"trial_id": trial_id, "state": state, "now": now, "error": error, "result": result}
        async with connection(self._pool) as conn:
            await conn.execute(_END, values)

    async def latest(self, by: str, *, now: datetime, limit: int) -> list[Trial]:
        """The last trials of this moderator that are kept, newest first, without what they came to."""
        return await self._read(_LATEST, by, now, limit)

    async def one(self, trial_id: int, by: str, *, now: datetime) -> Trial | None:
        """This trial, if it is this moderator's and still kept."""
        found = await self._read(_ONE, by, now, trial_id)
        return found[0] if found else None

    async def expire(self, *, now: datetime) -> int:
        """Delete what is past its day; how many."""
        async with connection(self._pool) as conn:
            return (await conn.execute("DELETE FROM trials WHERE asked_at <= %s", (now - KEPT,))).rowcount

    async def _read(self, query: LiteralString, by: str, now: datetime, last: int) -> list[Trial]:
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query, (by, now - KEPT, last))
            return [_trial(row) async for row in cursor]


def _trial(row: dict[str, Any]) -> Trial:
    stored = row["result"]
    result = None
    if stored is not None:
        result = TrialResult(
            stored["result"],
            stored["markdown"],
            tuple(stored["cited"]),
            stored["gate_on"],
            stored["declined"],
            read_trace(stored["trace"]),
            stored.get("signature", ""),
        )
    return Trial(
        row["trial_id"],
        row["question"],
        row["asked_at"],
        TrialState(row["state"]),
        row["ended_at"],
        row["error"],
        result,
    )
