"""What we ask of procrastinate's tables and functions ourselves; fetching and finishing jobs is the library's."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from psycopg.errors import UniqueViolation
from psycopg.rows import class_row, scalar_row, tuple_row
from psycopg.types.json import Jsonb

from service.store.pool import Connection

_STALLED = """
    SELECT job.id, job.task_name, job.args, job.attempts
    FROM procrastinate_jobs job LEFT JOIN procrastinate_workers worker ON worker.id = job.worker_id
    WHERE job.status = 'doing' AND job.id <> ALL(%(busy)s) AND (
        worker.id IS NULL
        OR worker.last_heartbeat < now() - make_interval(secs => %(silent_seconds)s)
        OR job.id = ANY(%(orphans)s) AND worker.id = ANY(%(workers)s)
    )
    ORDER BY job.id
    FOR UPDATE OF job SKIP LOCKED
"""


# The library's own way dumps a composite a job in Python, which takes longer than the rest of the statement.
_ADD = """
    SELECT procrastinate_defer_jobs_v1(ARRAY(
        SELECT (queue, task, priority, lock, NULL, args, NULL)::procrastinate_job_to_defer_v1
        FROM jsonb_to_recordset(%s) AS job (queue text, task text, priority integer, lock text, args jsonb)
    ))
"""


# No try is counted: the worker that knows the task has all of them left. Each wait is as long as all before it, so that
# neither the job nor a worker is kept busy by it.
_LEAVE = """
    WITH added AS (
        SELECT extract(epoch FROM now() - min(at))::float8 AS seconds
        FROM procrastinate_events WHERE job_id = %(job_id)s AND type = 'deferred'
    )
    UPDATE procrastinate_jobs SET status = 'todo',
        scheduled_at = now() + make_interval(secs => least(greatest(seconds, %(shortest)s), %(longest)s))
    FROM added WHERE id = %(job_id)s AND status = 'doing' AND seconds < %(give_up_seconds)s
"""


_LONGEST_DUE = """
    SELECT queue_name, extract(epoch FROM now() - min(coalesce(scheduled_at, deferred.at)))::float8
    FROM procrastinate_jobs AS job
    LEFT JOIN LATERAL (SELECT max(at) AS at FROM procrastinate_events WHERE job_id = job.id AND type = 'deferred')
        AS deferred ON true
    WHERE status = 'todo' AND coalesce(scheduled_at, now()) <= now()
    GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as it is stored: `priority` is higher for earlier, `args` are the task's arguments."""

    queue: str
    task: str
    priority: int
    lock: str | None
    args: Mapping[str, int]


async def add_jobs(connection: Connection, jobs: Sequence[JobRow]) -> None:
    """Add the jobs, in this order, in the connection's transaction and in one round trip."""
    await connection.execute(_ADD, [Jsonb([asdict(job) for job in jobs])])


@dataclass(frozen=True, slots=True)
class StalledJob:
    """A job marked as running that nobody runs."""

    id: int
    task_name: str
    args: dict[str, Any]
    attempts: int


async def stalled_jobs(
    connection: Connection,
    *,
    silent_seconds: float,
    busy: Collection[int],
    orphans: Collection[int],
    workers: Collection[int],
) -> list[StalledJob]:
    """Jobs of workers silent for that long, and `orphans` of our own `workers`; never the `busy` ones we run now.

    The rows stay locked until the transaction ends, so that two sweeps never take the same job back.
    """
    async with connection.cursor(row_factory=class_row(StalledJob)) as cursor:
        parameters = {"busy": list(busy), "orphans": list(orphans), "workers": list(workers)}
        await cursor.execute(_STALLED, {**parameters, "silent_seconds": silent_seconds})
        return await cursor.fetchall()


async def put_back(connection: Connection, job_id: int) -> None:
    """Let a stalled job run again at once; drop it if the same periodic job already waits (its queueing lock)."""
    try:
        async with connection.transaction():
            await connection.execute("SELECT procrastinate_retry_job_v2(%s, now(), NULL, NULL, NULL)", [job_id])
    except UniqueViolation:
        await connection.execute("SELECT procrastinate_finish_job_v1(%s, 'failed', true)", [job_id])


async def leave(
    connection: Connection, job_id: int, *, wait_seconds: tuple[float, float], give_up_seconds: float
) -> bool:
    """Let another worker have a running job, after a wait between these bounds that grows with the job's age.

    False, and nothing done, when it was added longer ago than `give_up_seconds`. Dropped, as by `put_back`, where the
    same periodic job already waits.
    """
    shortest, longest = wait_seconds
    parameters = {"job_id": job_id, "shortest": shortest, "longest": longest, "give_up_seconds": give_up_seconds}
    try:
        async with connection.transaction():
            return (await connection.execute(_LEAVE, parameters)).rowcount > 0
    except UniqueViolation:
        await connection.execute("SELECT procrastinate_finish_job_v1(%s, 'failed', true)", [job_id])
        return True


async def fail(connection: Connection, job_id: int) -> None:
    """End a stalled job that had its last try."""
    await connection.execute("SELECT procrastinate_finish_job_v1(%s, 'failed', false)", [job_id])


async def jobs_of(connection: Connection, workers: Sequence[int]) -> list[int]:
    """Jobs marked as running under these workers."""
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(
            "SELECT id FROM procrastinate_jobs WHERE status = 'doing' AND worker_id = ANY(%s)", [list(workers)]
        )
        return await cursor.fetchall()


async def beat(connection: Connection, workers: Sequence[int]) -> None:
    """Say that these workers live."""
    await connection.execute(
        "UPDATE procrastinate_workers SET last_heartbeat = now() WHERE id = ANY(%s)", [list(workers)]
    )


async def queue_depths(connection: Connection) -> dict[tuple[str, str], int]:
    """How many jobs there are by task and status."""
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute("SELECT task_name, status::text, count(*) FROM procrastinate_jobs GROUP BY 1, 2")
        return {(task, status): count async for task, status, count in cursor}


async def longest_due(connection: Connection) -> dict[str, float]:
    """For each queue with a job that is due, for how many seconds the one that is due longest has been."""
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(_LONGEST_DUE)
        return {queue: seconds async for queue, seconds in cursor}


async def worker_lives(connection: Connection, *, silent_seconds: float) -> bool:
    """Whether some worker has beaten within that time."""
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(
            "SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - make_interval(secs => %s)",
            [silent_seconds],
        )
        return bool(await cursor.fetchone())
