"""The worker: one job loop a queue and the chores beside them, until it is told to stop."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import monotonic

from procrastinate import App

from service.jobs import Queue, Work
from service.jobs.tasks import build_queue
from service.retry import RetryPolicy
from service.settings import Settings, WorkerSettings
from service.store.pool import Pool
from service.telemetry import WORKER_RESTARTS, log
from service.worker.loop import Running, job_fault, job_loop
from service.worker.measure import IsUp, measure, metrics_page
from service.worker.rescue import beat, sweep

Chore = Callable[[], Awaitable[object]]
NO_PARTS: Mapping[str, IsUp] = {}

RESTART_SECONDS = (0.5, 30.0)
"""First and longest wait before a dead job loop is started again."""


async def run_worker(
    settings: Settings,
    pool: Pool,
    work: Work,
    *,
    stop: asyncio.Event,
    up: Mapping[str, IsUp] = NO_PARTS,
    watch: Sequence[Chore] = (),
) -> None:
    """Run jobs until `stop` is set, then let the running ones end within the grace; what doesn't is put back.

    The metrics page tells which of the parts `up` work, as far as that is known, and the database. `watch` are called
    every `worker.sweep_seconds`: what is to be noticed though no job comes.
    Raises Misconfigured when the metrics port is taken. Nothing else ends it: a loop that dies is started again.
    """
    # It prints whole exceptions, in which Postgres may quote a post; `job_failed` and the others say it without.
    logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
    at = settings.worker
    app = build_queue(RetryPolicy(at, random.random), finished_jobs_hours=settings.retention.finished_jobs_hours)
    running = Running()
    with metrics_page(at):
        await app.open_async(pool)
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(_keep_running(queue, app, pool, at, work, running, stop=stop)) for queue in Queue
            ]
            chores = [
                group.create_task(_every(at.heartbeat_seconds, lambda: beat(pool, running))),
                group.create_task(_every(at.sweep_seconds, lambda: sweep(at, pool, work, running))),
                group.create_task(_every(at.sweep_seconds, lambda: measure(pool, up))),
                *(group.create_task(_every(at.sweep_seconds, look)) for look in watch),
            ]
            await stop.wait()
            for worker in running.loops.values():
                worker.stop()  # type: ignore[no-untyped-call]  # procrastinate leaves it untyped
            await asyncio.wait(loops)
            for chore in chores:
                chore.cancel()


async def _keep_running(
    queue: Queue, app: App, pool: Pool, settings: WorkerSettings, work: Work, running: Running, *, stop: asyncio.Event
) -> None:
    shortest, longest = RESTART_SECONDS
    wait = shortest
    while not stop.is_set():
        worker = running.loops[queue] = job_loop(queue, app, pool, settings, work, running)
        started = monotonic()
        try:
            await worker.run()  # type: ignore[no-untyped-call]  # procrastinate leaves it untyped
        except Exception as exc:  # noqa: BLE001 - whatever ended the loop, the jobs must go on
            log.error("job_loop_failed", queue=queue, **job_fault(exc))
        if stop.is_set():
            return
        WORKER_RESTARTS.inc()
        log.warning("job_loop_restarts", queue=queue, wait_seconds=wait)
        wait = shortest if monotonic() - started > longest else min(2 * wait, longest)
        try:
            await asyncio.wait_for(stop.wait(), wait)
        except TimeoutError:
            continue


async def _every(seconds: float, chore: Chore) -> None:
    while True:
        try:
            await chore()
        except Exception as exc:  # noqa: BLE001 - a chore that fails now is done the next time
            log.warning("chore_failed", **job_fault(exc))
        await asyncio.sleep(seconds)
