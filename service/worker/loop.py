"""The job loop of one queue: procrastinate's, with what it leaves to us noted of each job that runs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from procrastinate import App, JobContext
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.worker import Worker

from service.errors import ArianeError
from service.jobs import Queue, Work
from service.settings import WorkerSettings
from service.store import queue as guard
from service.store.pool import Pool, transaction
from service.telemetry import JOBS, fault, log

POLL_SECONDS = 1.0
"""New jobs are announced (LISTEN/NOTIFY); a job whose retry is due is not, and is found this late at most."""

UNKNOWN = "unknown"
"""What the metric calls every task that this version doesn't know."""

UNKNOWN_WAIT_SECONDS = (5.0, 300.0)
"""Shortest and longest time that a job of an unknown task is left to other workers before one may fetch it again."""

UNKNOWN_GIVE_UP_SECONDS = 24 * 3600.0
"""Age at which nobody is expected any more to know it."""


@dataclass(slots=True)
class Running:
    """What this process runs now."""

    loops: dict[Queue, Worker] = field(default_factory=dict)
    busy: set[int] = field(default_factory=set)
    suspects: dict[int, float] = field(default_factory=dict)

    @property
    def worker_ids(self) -> list[int]:
        return [worker.worker_id for worker in self.loops.values() if worker.worker_id is not None]


class JobLoop(Worker):
    """The library's loop, but for a job of a task that this version doesn't know: a newer one added it.

    The library fails such a job for good. Here it waits for a worker of that version, for a day at most.
    """

    def __init__(self, app: App, pool: Pool, **options: Any) -> None:
        super().__init__(app, **options)
        self._pool = pool

    async def _process_job(self, context: JobContext) -> None:
        if context.job.task_name in self.app.tasks or not await self._leave(context.job):
            await super()._process_job(context)

    async def _leave(self, job: Job) -> bool:
        assert job.id is not None  # noqa: S101 - a fetched job has one
        try:
            async with transaction(self._pool) as conn:
                left = await guard.leave(
                    conn, job.id, wait_seconds=UNKNOWN_WAIT_SECONDS, give_up_seconds=UNKNOWN_GIVE_UP_SECONDS
                )
        except ArianeError as exc:
            _end_not_stored(job, exc)
            return True
        JOBS.labels(UNKNOWN, "retried" if left else "failed").inc()
        tell = log.warning if left else log.error
        tell("job_task_unknown", task=job.task_name, job_id=job.id, left_to_newer_worker=left)
        return left


def job_loop(queue: Queue, app: App, pool: Pool, settings: WorkerSettings, work: Work, running: Running) -> JobLoop:
    """A loop over the jobs of this queue, to be run; it notes in `running` which it is busy with."""
    concurrency = {
        Queue.ANSWER: settings.answer_concurrency,
        Queue.INDEX: settings.index_concurrency,
    }

    async def watched(call: Callable[[], Awaitable[Any]], context: JobContext, _: Worker) -> None:
        job = context.job
        assert job.id is not None  # noqa: S101 - a fetched job has one
        running.busy.add(job.id)
        if task := asyncio.current_task():
            task.add_done_callback(partial(_tell_of_lost_end, job))
        try:
            await call()
        except asyncio.CancelledError:
            JOBS.labels(job.task_name, "stopped").inc()
            raise
        except Exception as exc:
            retried = context.task.get_retry_exception(exc, job) is not None
            JOBS.labels(job.task_name, "retried" if retried else "failed").inc()
            level = log.warning if retried else log.error
            level("job_failed", task=job.task_name, args=job.task_kwargs, attempts=job.attempts + 1, **job_fault(exc))
            raise
        else:
            JOBS.labels(job.task_name, "succeeded").inc()
        finally:
            running.busy.discard(job.id)

    return JobLoop(
        app,
        pool,
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


def job_fault(exc: Exception) -> dict[str, str]:
    """What may be logged of a job's failure."""
    cause = exc.__cause__ if isinstance(exc, ConnectorException) and isinstance(exc.__cause__, Exception) else exc
    return fault(cause)


def _tell_of_lost_end(job: Job, running: "asyncio.Task[Any]") -> None:
    """The library writes down how a job ended, and nobody hears when it can't."""
    if not running.cancelled() and isinstance(exc := running.exception(), Exception):
        _end_not_stored(job, exc)


def _end_not_stored(job: Job, exc: Exception) -> None:
    """The sweep takes such a job back."""
    log.warning("job_end_not_stored", task=job.task_name, args=job.task_kwargs, **job_fault(exc))
