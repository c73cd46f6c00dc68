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

from service.jobs import Queue, Work
from service.settings import WorkerSettings
from service.telemetry import JOBS, fault, log

POLL_SECONDS = 1.0
"""New jobs are announced (LISTEN/NOTIFY); a job whose retry is due is not, and is found this late at most."""


@dataclass(slots=True)
class Running:
    """What this process runs now."""

    loops: dict[Queue, Worker] = field(default_factory=dict)
    busy: set[int] = field(default_factory=set)
    suspects: dict[int, float] = field(default_factory=dict)

    @property
    def worker_ids(self) -> list[int]:
        return [worker.worker_id for worker in self.loops.values() if worker.worker_id is not None]


def job_loop(queue: Queue, app: App, settings: WorkerSettings, work: Work, running: Running) -> Worker:
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


def job_fault(exc: Exception) -> dict[str, str]:
    """What may be logged of a job's failure."""
    cause = exc.__cause__ if isinstance(exc, ConnectorException) and isinstance(exc.__cause__, Exception) else exc
    return fault(cause)


def _tell_of_lost_end(job: Job, running: "asyncio.Task[Any]") -> None:
    """The library writes down how a job ended, and nobody hears when it can't; the sweep takes such a job back."""
    if not running.cancelled() and isinstance(exc := running.exception(), Exception):
        log.warning("job_end_not_stored", task=job.task_name, args=job.task_kwargs, **job_fault(exc))
