"""The guards of running jobs: our workers say that they live, and jobs that nobody runs are taken back."""

from time import monotonic

from service.domain import InboxId
from service.errors import ArianeError
from service.jobs import TaskName, Work
from service.settings import WorkerSettings
from service.store import queue as guard
from service.store.pool import Connection, Pool, connection, transaction
from service.telemetry import BEAT, RESCUED, log
from service.worker.loop import Running, job_fault


async def beat(pool: Pool, running: Running) -> None:
    """Say that our workers live: a loop that is stopping doesn't by itself, and others would take its jobs back."""
    async with connection(pool) as conn:
        await guard.beat(conn, running.worker_ids)
    BEAT.set_to_current_time()


async def sweep(settings: WorkerSettings, pool: Pool, work: Work, running: Running) -> None:
    """Take back the jobs of dead workers, and our own whose end could not be written down."""
    silent_seconds = settings.stalled_after_seconds
    async with transaction(pool) as conn:
        workers = running.worker_ids
        now = monotonic()
        unheld = [job_id for job_id in await guard.jobs_of(conn, workers) if job_id not in running.busy]
        running.suspects = {job_id: running.suspects.get(job_id, now) for job_id in unheld}
        orphans = [job_id for job_id, since in running.suspects.items() if now - since > silent_seconds]
        stalled = await guard.stalled_jobs(
            conn, silent_seconds=silent_seconds, busy=running.busy, orphans=orphans, workers=workers
        )
        for job in stalled:
            log.warning("job_rescued", task=job.task_name, args=job.args, attempts=job.attempts + 1)
            try:
                if job.attempts + 1 < settings.max_attempts:
                    await guard.put_back(conn, job.id)
                else:
                    await _abandon(job, conn, work)
                RESCUED.inc()
            except ArianeError as exc:
                log.warning("job_not_rescued", task=job.task_name, args=job.args, **job_fault(exc))


async def _abandon(job: guard.StalledJob, conn: Connection, work: Work) -> None:
    # Its worker died at every try, so the task itself never got to record the loss.
    if job.task_name == TaskName.ANSWER_POST:
        await work.give_up(InboxId(job.args["inbox_id"]))
    await guard.fail(conn, job.id)
