"""Version skew on a real Postgres: a job that a newer version added waits for a worker of that version, for a time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from procrastinate import App, JobContext
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

import service.worker
from service.errors import Transient
from service.jobs.tasks import build_queue
from service.store import queue as guard
from service.store.pool import Connection, Pool, transaction
from service.worker.loop import UNKNOWN_GIVE_UP_SECONDS
from tests.integration.queue_kit import FAST, RecordedWork, add, answer, index, statuses, until, working
from tests.integration.store_data import rows

NEW = "from_tomorrow"
WAITS = (5.0, 300.0)


def counted(result: str) -> float:
    return REGISTRY.get_sample_value("ariane_jobs_total", {"task": "unknown", "result": result}) or 0.0


async def defer_new(pool: Pool, *, queueing_lock: str | None = None, lock: str | None = None) -> int:
    """A job that a web process of the next version adds."""
    query = (
        "INSERT INTO procrastinate_jobs (queue_name, task_name, args, lock, queueing_lock)"
        " VALUES ('index', %s, '{\"post_id\": 7}', %s, %s) RETURNING id"
    )
    ((job_id,),) = await rows(pool, query, NEW, lock, queueing_lock)
    return int(job_id)


async def age(pool: Pool, job_id: int, seconds: float) -> None:
    async with transaction(pool) as conn:
        await conn.execute(
            "UPDATE procrastinate_events SET at = now() - make_interval(secs => %s) WHERE job_id = %s",
            (seconds, job_id),
        )


async def job(pool: Pool, job_id: int) -> tuple[Any, ...]:
    (found,) = await rows(
        pool, "SELECT status::text, attempts, scheduled_at FROM procrastinate_jobs WHERE id = %s", job_id
    )
    return found


async def fetched(pool: Pool, job_id: int) -> None:
    async with transaction(pool) as conn:
        await conn.execute("UPDATE procrastinate_jobs SET status = 'doing' WHERE id = %s", (job_id,))


async def leave(pool: Pool, job_id: int) -> bool:
    async with transaction(pool) as conn:
        return await guard.leave(conn, job_id, wait_seconds=WAITS, give_up_seconds=UNKNOWN_GIVE_UP_SECONDS)


async def test_an_old_worker_leaves_it_and_goes_on_with_the_rest(pool: Pool) -> None:
    before, work = counted("retried"), RecordedWork()
    job_id = await defer_new(pool)
    await add(pool, 5, index(5), answer(5))
    with capture_logs() as logs:
        async with working(pool, work):
            await until(lambda: {("index_post", 5), ("answer_post", 5)} <= set(work.ended))
            await until(lambda: counted("retried") == before + 1)
    status, attempts, due = await job(pool, job_id)
    assert (status, attempts) == ("todo", 0)
    assert timedelta(0) < due - datetime.now(UTC) < timedelta(seconds=6)
    assert [line for line in logs if line["event"] == "job_task_unknown"] == [
        {
            "event": "job_task_unknown",
            "log_level": "warning",
            "task": NEW,
            "job_id": job_id,
            "left_to_newer_worker": True,
        }
    ]
    assert await statuses(pool, [NEW, "index_post", "answer_post"]) == {"todo": 1}


async def test_a_worker_that_knows_it_does_it_with_all_its_tries(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    before, done = counted("retried"), []
    job_id = await defer_new(pool)
    async with working(pool, RecordedWork()):
        await until(lambda: counted("retried") == before + 1)
    async with transaction(pool) as conn:
        await conn.execute("UPDATE procrastinate_jobs SET scheduled_at = now() WHERE id = %s", (job_id,))

    def newer(*args: Any, **options: Any) -> App:
        app = build_queue(*args, **options)

        @app.task(name=NEW, pass_context=True)
        async def from_tomorrow(context: JobContext, post_id: int) -> None:
            done.append((post_id, context.job.attempts))

        return app

    monkeypatch.setattr(service.worker, "build_queue", newer)
    async with working(pool, RecordedWork()):
        await until(lambda: done == [(7, 0)])
    assert await statuses(pool, [NEW]) == {}


async def test_after_a_day_nobody_is_waited_for(pool: Pool) -> None:
    before = counted("failed")
    job_id = await defer_new(pool)
    await age(pool, job_id, UNKNOWN_GIVE_UP_SECONDS + 1)
    with capture_logs() as logs:
        async with working(pool, RecordedWork()):
            await until(lambda: counted("failed") == before + 1)
    assert await statuses(pool, [NEW]) == {"failed": 1}
    (line,) = [line for line in logs if line["event"] == "job_task_unknown"]
    assert (line["log_level"], line["left_to_newer_worker"]) == ("error", False)


@pytest.mark.parametrize(("seconds", "wait"), [(0, 5), (60, 60), (3600, 300), (UNKNOWN_GIVE_UP_SECONDS - 60, 300)])
async def test_it_waits_as_long_as_it_has_waited_within_bounds(pool: Pool, seconds: float, wait: float) -> None:
    job_id = await defer_new(pool)
    await age(pool, job_id, seconds)
    await fetched(pool, job_id)
    assert await leave(pool, job_id)
    status, attempts, due = await job(pool, job_id)
    assert (status, attempts) == ("todo", 0)
    assert abs(due - datetime.now(UTC) - timedelta(seconds=wait)) < timedelta(seconds=5)


async def test_a_periodic_one_that_waits_already_is_dropped(pool: Pool) -> None:
    job_id = await defer_new(pool, queueing_lock="tomorrow")
    await fetched(pool, job_id)
    waiting = await defer_new(pool, queueing_lock="tomorrow")
    assert await leave(pool, job_id)
    assert await rows(pool, "SELECT id, status::text FROM procrastinate_jobs") == [(waiting, "todo")]


async def test_one_that_nobody_runs_is_not_touched(pool: Pool) -> None:
    job_id = await defer_new(pool)
    assert not await leave(pool, job_id)
    assert await job(pool, job_id) == ("todo", 0, None)


async def test_one_whose_worker_died_is_left_by_the_next_one(pool: Pool) -> None:
    before = counted("retried")
    job_id = await defer_new(pool)
    await fetched(pool, job_id)
    async with working(pool, RecordedWork(), FAST):
        await until(lambda: counted("retried") == before + 1)
    assert (await job(pool, job_id))[0] == "todo"


async def test_one_that_could_not_be_left_is_taken_back_and_left_then(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, real = counted("retried"), guard.leave
    failed: list[int] = []

    async def leave_later(connection: Connection, job_id: int, **bounds: Any) -> bool:
        if not failed:
            failed.append(job_id)
            raise Transient("the database is away")
        return await real(connection, job_id, **bounds)

    monkeypatch.setattr(guard, "leave", leave_later)
    job_id = await defer_new(pool)
    with capture_logs() as logs:
        async with working(pool, RecordedWork()):
            await until(lambda: counted("retried") == before + 1)
    assert (await job(pool, job_id))[:2] == ("todo", 1)  # the sweep counts a try
    assert {"job_end_not_stored", "job_rescued", "job_task_unknown"} <= {line["event"] for line in logs}
