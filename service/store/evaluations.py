"""The evaluation runs: verdicts on configurations, as eval, moderators and overrides record them."""

from typing import Any, LiteralString

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from service.domain import EvaluationRun, Part, RunKind, Signature, StoredRun
from service.store.pool import Connection, Pool, connection, transaction
from service.store.values import storable, to_json

_COLUMNS = (
    "SELECT run_id, signature, configuration, kind, passed, dataset, dataset_sha256, limits, figures,"
    " recorded_at, recorded_by, reason FROM evaluation_runs"
)

_RECORD = """
INSERT INTO evaluation_runs
    (signature, configuration, kind, passed, dataset, dataset_sha256, limits, figures, recorded_by, reason)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING run_id
"""


class EvaluationStore:
    """Matches `service.answer.activation.EvaluationRuns`, and records new runs."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def record_run(self, run: EvaluationRun) -> int:
        """Store a run, which counts for its signature from now on, and give its id."""
        async with transaction(self._pool) as conn:
            row = await (await conn.execute(_RECORD, _row(run))).fetchone()
        if row is None:
            raise AssertionError("INSERT ... RETURNING gave no row")
        return int(row[0])

    async def latest_run(self, signature: str) -> StoredRun | None:
        """The run that counts for this signature (SHA-256 in hex): its newest, whoever judged."""
        found = await self._runs(_COLUMNS + " WHERE signature = %s ORDER BY run_id DESC LIMIT 1", (signature,))
        return found[0] if found else None

    async def latest_passed(self) -> StoredRun | None:
        """The newest passed run of any signature."""
        found = await self._runs(_COLUMNS + " WHERE passed ORDER BY run_id DESC LIMIT 1", ())
        return found[0] if found else None

    async def runs(self, limit: int) -> list[StoredRun]:
        """The latest runs, newest first."""
        return await self._runs(_COLUMNS + " ORDER BY run_id DESC LIMIT %s", (limit,))

    async def _runs(self, query: LiteralString, values: tuple[object, ...]) -> list[StoredRun]:
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query, values)
            return [_stored(row) async for row in cursor]


async def passed(conn: Connection, signature: str) -> bool:
    """Whether the run that counts for this signature is a passed one; none is not."""
    cursor = await conn.execute(
        "SELECT passed FROM evaluation_runs WHERE signature = %s ORDER BY run_id DESC LIMIT 1", (signature,)
    )
    row = await cursor.fetchone()
    return row is not None and bool(row[0])


def _row(run: EvaluationRun) -> tuple[object, ...]:
    configuration = {name: {"values": part.values, "sha256": part.sha256} for name, part in run.signature.parts.items()}
    return (
        run.signature.sha256,
        Jsonb(to_json(configuration)),
        run.kind,
        run.passed,
        storable(run.dataset),
        run.dataset_sha256,
        Jsonb(to_json(run.limits)),
        Jsonb(to_json(run.figures)),
        storable(run.by),
        storable(run.reason),
    )


def _stored(row: dict[str, Any]) -> StoredRun:
    parts = {name: Part(part["values"], part["sha256"]) for name, part in sorted(row["configuration"].items())}
    return StoredRun(
        row["run_id"],
        row["recorded_at"],
        EvaluationRun(
            Signature(row["signature"], parts),
            RunKind(row["kind"]),
            row["passed"],
            by=row["recorded_by"],
            reason=row["reason"],
            dataset=row["dataset"],
            dataset_sha256=row["dataset_sha256"],
            limits=row["limits"],
            figures=row["figures"],
        ),
    )
