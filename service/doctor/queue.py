"""Checks of the queue: somebody works, nothing waits for long, nothing was given up."""

from service.doctor.check import Finding, fail, ok, warn
from service.doctor.patient import Patient
from service.store.health import HealthStore

LATE_SECONDS = 600.0


async def worker(patient: Patient) -> Finding:
    """Some worker beat lately."""
    silent = await HealthStore(patient.pool).last_beat_seconds()
    if silent is None:
        return fail("no worker is running", "Start one: `ariane worker`.")
    detail = f"a worker was heard of {silent:.0f} s ago"
    if silent > patient.settings.worker.stalled_after_seconds:
        return fail(detail, "Start it again, `ariane worker`, and read its log for why it stopped.")
    return ok(detail)


async def queue(patient: Patient) -> Finding:
    """The job that came first has not been due for long."""
    waited = await HealthStore(patient.pool).oldest_waiting_seconds()
    if waited is None:
        return ok("no job waits")
    detail = f"the oldest job has waited for {waited:.0f} s"
    if waited > LATE_SECONDS:
        return warn(detail, "Run more workers, or raise worker.index_concurrency; a model server may be slow.")
    return ok(detail)


async def failed_jobs(patient: Patient) -> Finding:
    """No job was given up within the time that they are kept."""
    failed = await HealthStore(patient.pool).failed_jobs()
    kept = patient.settings.retention.finished_jobs_hours
    if not failed:
        return ok(f"none in {kept} h")
    told = ", ".join(f"{count} {task}" for task, count in failed.items())
    return warn(
        f"given up in the last {kept} h: {told}",
        "Read the worker's log for their errors; an edit of the post, or a new mention, makes a new job.",
    )
