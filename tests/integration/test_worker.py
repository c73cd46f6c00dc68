"""The worker's guards, on a real Postgres with real processes: what dies is taken over, what stops leaves nothing."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import httpx
import pytest

from service.embedded import DATA_FOLDER, ensure_running, postmaster
from service.errors import Misconfigured
from service.settings import Settings
from service.store.migrate import migrate
from service.store.pool import Pool, open_pool
from service.telemetry import RESCUED, WORKER_RESTARTS
from service.worker import run_worker
from tests.integration.queue_kit import FAST, RecordedWork, add, answer, index, statuses, until, working

ROOT = Path(__file__).parents[2]


def rescued() -> float:
    return float(RESCUED._value.get())


async def fetch(pool: Pool, query: str) -> list[tuple[object, ...]]:
    async with pool.connection() as conn:
        return await (await conn.execute(query)).fetchall()


@asynccontextmanager
async def process(url: str, pool: Pool, seconds: float) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker process that has begun the answer that waits."""
    async with pool.connection() as conn:
        await conn.execute("CREATE TABLE work_log (phase text, task text, number bigint, pid int)")
    command = [sys.executable, "-m", "tests.integration.worker_process", url, str(seconds)]
    started = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        deadline = monotonic() + 20
        while not await fetch(pool, "SELECT FROM work_log WHERE phase = 'began'"):
            assert started.returncode is None, "the worker died"
            assert monotonic() < deadline, "the worker never began"
            await asyncio.sleep(0.05)
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


@pytest.mark.chaos
async def test_a_killed_workers_job_is_run_again_by_another(pool: Pool, database_url: str) -> None:
    before = rescued()
    await add(pool, 5, answer(5))
    async with process(database_url, pool, 60) as doomed:
        doomed.send_signal(signal.SIGKILL)
        await doomed.wait()
        assert await statuses(pool) == {"doing": 1}
        work = RecordedWork()
        async with working(pool, work):
            await until(lambda: ("answer_post", 5) in work.ended)
    assert work.began.count(("answer_post", 5)) == 1
    assert rescued() > before
    assert await statuses(pool) == {}


@pytest.mark.chaos
async def test_sigterm_lets_the_running_job_end(pool: Pool, database_url: str) -> None:
    await add(pool, 5, answer(5))
    async with process(database_url, pool, 1.5) as worker:
        await add(pool, 6, answer(5))
        worker.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(worker.wait(), 15) == 0
    assert await fetch(pool, "SELECT phase, number FROM work_log") == [("began", 5), ("ended", 5)]
    assert await statuses(pool) == {"todo": 1}
    assert await fetch(pool, "SELECT FROM procrastinate_workers") == []


async def test_a_stop_puts_back_what_does_not_end_in_time(pool: Pool) -> None:
    async def act(_task: str, _number: int) -> None:
        await asyncio.sleep(60)

    work = RecordedWork(act)
    await add(pool, 1, answer(1), index(1))
    impatient = FAST.model_copy(update={"shutdown_grace_seconds": 0.3})
    started = monotonic()
    async with working(pool, work, impatient):
        await until(lambda: {("answer_post", 1), ("index_post", 1)} <= set(work.began))
    assert monotonic() - started < 10
    assert await statuses(pool) == {"todo": 2}
    assert work.given_up == []


async def test_a_job_of_a_stopping_worker_is_not_taken_from_it(pool: Pool) -> None:
    async def act(task: str, _number: int) -> None:
        if task == "answer_post":
            await asyncio.sleep(3 * FAST.stalled_after_seconds)

    stopping, other = RecordedWork(act), RecordedWork()
    await add(pool, 5, answer(5))
    async with working(pool, stopping) as stop_first:
        await until(lambda: ("answer_post", 5) in stopping.began)
        async with working(pool, other):
            stop_first.set()
            await until(lambda: ("answer_post", 5) in stopping.ended)
    assert ("answer_post", 5) not in other.began
    assert await statuses(pool) == {}


async def test_two_sweeps_take_a_job_back_once(pool: Pool) -> None:
    before = rescued()
    for number in range(1, 11):
        await add(pool, number, answer(number))
    async with pool.connection() as conn:
        await conn.execute("UPDATE procrastinate_jobs SET status = 'doing'")
    work = RecordedWork()
    async with working(pool, work), working(pool, work), working(pool, work):
        await until(lambda: len([task for task, _ in work.ended if task == "answer_post"]) == 10)
        await asyncio.sleep(0.5)
    assert len([task for task, _ in work.began if task == "answer_post"]) == 10
    assert rescued() == before + 10


async def test_a_job_that_kills_its_worker_each_time_is_given_up(pool: Pool) -> None:
    await add(pool, 5, answer(5), index(5))
    async with pool.connection() as conn:
        await conn.execute("UPDATE procrastinate_jobs SET status = 'doing', attempts = %s", [FAST.max_attempts - 1])
    work = RecordedWork()
    async with working(pool, work):
        await until(lambda: work.given_up == [5])
        await asyncio.sleep(0.5)
    assert not {"answer_post", "index_post"} & {task for task, _ in work.began}
    assert await statuses(pool) == {"failed": 2}


async def test_a_stalled_periodic_job_whose_successor_waits_is_dropped(pool: Pool) -> None:
    async with pool.connection() as conn:
        for status in ("doing", "todo"):
            await conn.execute(
                "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, status, scheduled_at)"
                " VALUES ('index', 'embed_pending', 'embedding', 'embedding', %s, now() + interval '1 hour')",
                [status],
            )
    async with working(pool, RecordedWork()):
        deadline = monotonic() + 10
        while await statuses(pool, ["embed_pending"]) != {"todo": 1}:
            assert monotonic() < deadline
            await asyncio.sleep(0.1)


async def test_our_own_job_whose_end_was_lost_is_run_again(pool: Pool) -> None:
    work = RecordedWork()
    async with working(pool, work):
        await until(lambda: ("refresh_categories", 0) in work.ended)
        async with pool.connection() as conn, conn.transaction():
            await conn.execute(
                "INSERT INTO procrastinate_jobs (queue_name, task_name, args, status, worker_id)"
                " SELECT 'answer', 'answer_post', '{\"inbox_id\": 8}', 'doing', min(id) FROM procrastinate_workers"
            )
        await until(lambda: ("answer_post", 8) in work.ended)
    assert await statuses(pool) == {}


async def test_a_dead_loop_is_started_again(pool: Pool) -> None:
    work = RecordedWork()
    before = WORKER_RESTARTS._value.get()
    async with working(pool, work):
        await until(lambda: ("refresh_categories", 0) in work.ended)
        async with pool.connection() as conn:
            await conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                " AND datname = current_database()"
            )
            await conn.execute("DELETE FROM procrastinate_workers")
        await add(pool, 5, answer(5))
        await until(lambda: ("answer_post", 5) in work.ended and WORKER_RESTARTS._value.get() > before)
    assert await statuses(pool) == {}


async def test_a_taken_metrics_port_is_told(pool: Pool) -> None:
    async def idle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(idle, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        settings = Settings(worker=FAST.model_copy(update={"metrics_port": port}))
        with pytest.raises(Misconfigured, match=r"worker\.metrics_port: cannot listen on 127\.0\.0\.1:"):
            await run_worker(settings, pool, RecordedWork(), stop=asyncio.Event())


async def test_the_metrics_page_shows_the_queue(pool: Pool, unused_tcp_port: int) -> None:
    await add(pool, 5, answer(5))
    async with pool.connection() as conn:
        await conn.execute("UPDATE procrastinate_jobs SET scheduled_at = now() + interval '1 hour'")
    settings = FAST.model_copy(update={"metrics_port": unused_tcp_port})
    async with working(pool, RecordedWork(), settings), httpx.AsyncClient() as client:
        expected = 'ariane_queue_jobs{status="todo",task="answer_post"} 1.0'
        deadline = monotonic() + 10
        while expected not in (await client.get(f"http://127.0.0.1:{unused_tcp_port}/metrics")).text:
            assert monotonic() < deadline
            await asyncio.sleep(0.1)


@pytest.mark.chaos
async def test_every_job_is_done_in_spite_of_an_immediate_restart_of_postgres(own_server: Path) -> None:
    async def act(task: str, _number: int) -> None:
        if task == "index_post":
            await asyncio.sleep(0.05)

    work = RecordedWork(act)
    url = await asyncio.to_thread(ensure_running, own_server, idle_stop_seconds=60)
    await migrate(url)
    async with open_pool(url) as pool:
        for number in range(1, 41):
            await add(pool, number, index(number % 5))
        async with working(pool, work):
            await until(lambda: len(work.ended) >= 10)
            server = postmaster(own_server / DATA_FOLDER)
            assert server is not None
            server.send_signal(signal.SIGQUIT)  # what pg_ctl -m immediate sends
            await asyncio.to_thread(server.wait, 10)
            assert len({number for task, number in work.ended if task == "index_post"}) < 40
            assert await asyncio.to_thread(ensure_running, own_server, idle_stop_seconds=60) == url
            await until(lambda: {("index_post", number) for number in range(1, 41)} <= set(work.ended), seconds=60)
        assert await statuses(pool) == {}
