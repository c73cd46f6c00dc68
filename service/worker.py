"""The worker: one job loop a queue, with the guards that procrastinate leaves to us, until it is told to stop."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

from procrastinate import App, JobContext
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.worker import Worker
from prometheus_client import start_http_server

from service.domain import InboxId
from service.errors import ArianeError, Misconfigured
from service.jobs import Queue, TaskName, Work, build_queue
from service.retry import RetryPolicy
from service.settings import Settings, WorkerSettings
from service.store import queue as guard
from service.store.pool import Connection, Pool, connection, transaction
from service.telemetry import BEAT, JOBS, PART_UP, QUEUE_AGE, QUEUE_DEPTH, RESCUED, WORKER_RESTARTS, fault, log

IsUp = Callable[[], bool | None]
Chore = Callable[[], Awaitable[object]]
NO_PARTS: Mapping[str, IsUp] = {}

POLL_SECONDS = 1.0
"""New jobs are announced (LISTEN/NOTIFY); a job whose retry is due is not, and is found this late at most."""

RESTART_SECONDS = (0.5, 30.0)
"""First and longest wait before a dead job loop is started again."""


@dataclass(slots=True)
class _State:
    """What this process runs now."""

    loops: dict[Queue, Worker] = field(default_factory=dict)
    busy: set[int] = field(default_factory=set)
    suspects: dict[int, float] = field(default_factory=dict)

    @property
    def worker_ids(self) -> list[int]:
        return [worker.worker_id for worker in self.loops.values() if worker.worker_id is not None]


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
    policy = RetryPolicy(settings.worker, random.random)
    app = build_queue(policy, finished_jobs_hours=settings.retention.finished_jobs_hours)
    state = _State()
    with _metrics_page(settings.worker):
        await app.open_async(pool)
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(_keep_running(queue, app, settings.worker, work, state, stop)) for queue in Queue
            ]
            chores = [
                group.create_task(_every(settings.worker.heartbeat_seconds, lambda: _beat(pool, state))),
                group.create_task(_every(settings.worker.sweep_seconds, lambda: _sweep(settings, pool, work, state))),
                group.create_task(_every(settings.worker.sweep_seconds, lambda: _measure(pool, up))),
                *(group.create_task(_every(settings.worker.sweep_seconds, look)) for look in watch),
            ]
            await stop.wait()
            for worker in state.loops.values():
                worker.stop()  # type: ignore[no-untyped-call]  # procrastinate leaves it untyped
            await asyncio.wait(loops)
            for chore in chores:
                chore.cancel()


async def _keep_running(
    queue: Queue, app: App, settings: WorkerSettings, work: Work, state: _State, stop: asyncio.Event
) -> None:
    shortest, longest = RESTART_SECONDS
    wait = shortest
    while not stop.is_set():
        worker = state.loops[queue] = _loop(queue, app, settings, work, state)
        started = monotonic()
        try:
            await worker.run()  # type: ignore[no-untyped-call]  # procrastinate leaves it untyped
        except Exception as exc:  # noqa: BLE001 - whatever ended the loop, the jobs must go on
            log.error("job_loop_failed", queue=queue, **_fault(exc))
        if stop.is_set():
            return
        WORKER_RESTARTS.inc()
        log.warning("job_loop_restarts", queue=queue, wait_seconds=wait)
        wait = shortest if monotonic() - started > longest else min(2 * wait, longest)
        try:
            await asyncio.wait_for(stop.wait(), wait)
        except TimeoutError:
            continue


def _loop(queue: Queue, app: App, settings: WorkerSettings, work: Work, state: _State) -> Worker:
    concurrency = {
        Queue.ANSWER: settings.answer_concurrency,
        Queue.INDEX: settings.index_concurrency,
    }

    async def watched(call: Callable[[], Awaitable[Any]], context: JobContext, _: Worker) -> None:
        job = context.job
        assert job.id is not None  # noqa: S101 - a fetched job has one
        state.busy.add(job.id)
        if running := asyncio.current_task():
            running.add_done_callback(partial(_tell_of_lost_end, job))
        try:
            await call()
        except asyncio.CancelledError:
            JOBS.labels(job.task_name, "stopped").inc()
            raise
        except Exception as exc:
            retried = context.task.get_retry_exception(exc, job) is not None
            JOBS.labels(job.task_name, "retried" if retried else "failed").inc()
            level = log.warning if retried else log.error
            level("job_failed", task=job.task_name, args=job.task_kwargs, attempts=job.attempts + 1, **_fault(exc))
            raise
        else:
            JOBS.labels(job.task_name, "succeeded").inc()
        finally:
            state.busy.discard(job.id)

    return Worker(
        app,
        queues=[queue],
        name=queue,
        concurrency=concurrency.get(queue, 1),
        fetch_job_polling_interval=POLL_SECONDS,
        shutdown_graceful_timeout=settings.shutdown_grace_seconds,
        delete_jobs="successful",
        additional_context={"work": work},
        install_signal_handlers=False,
        update_heartbeat_interval=settings.heartbeat_seconds,
        stalled_worker_timeout=settings.stalled_after_seconds,
        worker_middleware=[watched],
    )


def _tell_of_lost_end(job: Job, running: "asyncio.Task[Any]") -> None:
    """The library writes down how a job ended, and nobody hears when it can't; the sweep takes such a job back."""
    if not running.cancelled() and isinstance(exc := running.exception(), Exception):
        log.warning("job_end_not_stored", task=job.task_name, args=job.task_kwargs, **_fault(exc))


async def _every(seconds: float, chore: Chore) -> None:
    while True:
        try:
            await chore()
        except Exception as exc:  # noqa: BLE001 - a chore that fails now is done the next time
            log.warning("chore_failed", **_fault(exc))
        await asyncio.sleep(seconds)


async def _beat(pool: Pool, state: _State) -> None:
    # A loop that is stopping no longer beats by itself, and its jobs would be taken back while they still run.
    async with connection(pool) as conn:
        await guard.beat(conn, state.worker_ids)
    BEAT.set_to_current_time()


async def _sweep(settings: Settings, pool: Pool, work: Work, state: _State) -> None:
    """Take back the jobs of dead workers, and our own whose end could not be written down."""
    silent_seconds = settings.worker.stalled_after_seconds
    async with transaction(pool) as conn:
        workers = state.worker_ids
        now = monotonic()
        unheld = [job_id for job_id in await guard.jobs_of(conn, workers) if job_id not in state.busy]
        state.suspects = {job_id: state.suspects.get(job_id, now) for job_id in unheld}
        orphans = [job_id for job_id, since in state.suspects.items() if now - since > silent_seconds]
        stalled = await guard.stalled_jobs(
            conn, silent_seconds=silent_seconds, busy=state.busy, orphans=orphans, workers=workers
        )
        for job in stalled:
            log.warning("job_rescued", task=job.task_name, args=job.args, attempts=job.attempts + 1)
            try:
                if job.attempts + 1 < settings.worker.max_attempts:
                    await guard.put_back(conn, job.id)
                else:
                    await _abandon(job, conn, work)
                RESCUED.inc()
            except ArianeError as exc:
                log.warning("job_not_rescued", task=job.task_name, args=job.args, **_fault(exc))


async def _abandon(job: guard.StalledJob, conn: Connection, work: Work) -> None:
    # Its worker died at every try, so the task itself never got to record the loss.
    if job.task_name == TaskName.ANSWER_POST:
        await work.give_up(InboxId(job.args["inbox_id"]))
    await guard.fail(conn, job.id)


async def _measure(pool: Pool, up: Mapping[str, IsUp]) -> None:
    for part, is_up in up.items():
        if (works := is_up()) is not None:
            PART_UP.labels(part).set(works)
    PART_UP.labels("database").set(0)
    async with connection(pool) as conn:
        depths = await guard.queue_depths(conn)
        due = await guard.longest_due(conn)
    PART_UP.labels("database").set(1)
    for task in TaskName:
        for status in ("todo", "doing", "failed"):
            QUEUE_DEPTH.labels(task, status).set(depths.get((task, status), 0))
    for queue in Queue:
        QUEUE_AGE.labels(queue).set(due.get(queue, 0.0))


def _fault(exc: Exception) -> dict[str, str]:
    """What may be logged of a job's failure."""
    cause = exc.__cause__ if isinstance(exc, ConnectorException) and isinstance(exc.__cause__, Exception) else exc
    return fault(cause)


@contextmanager
def _metrics_page(settings: WorkerSettings) -> Iterator[None]:
    if settings.metrics_port == 0:
        yield
        return
    try:
        server, thread = start_http_server(settings.metrics_port, settings.metrics_host)
    except OSError as exc:
        where = f"{settings.metrics_host}:{settings.metrics_port}"
        raise Misconfigured(f"worker.metrics_port: cannot listen on {where} ({exc.strerror}); 0 turns it off") from exc
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
