"""Finds the run that a report is compared with: the last one of the same kind before it."""

from eval.runs import Run
from eval.runs.finding import runs_in


def last_before(run: Run) -> Run | None:
    """Of the finished runs beside this one, the last begun before it that is comparable; None without one."""
    comparable = [one for one in runs_in(run.folder.resolve().parent) if _alike(one, run)]
    return max(comparable, key=lambda one: (one.record.started, one.record.id), default=None)


def _alike(one: Run, run: Run) -> bool:
    then, now = one.record, run.record
    return (
        then.finished is not None
        and then.started < now.started
        and then.command == now.command
        and then.dataset.name == now.dataset.name
        and not set(then.labels).isdisjoint(now.labels)
        and not set(then.systems).isdisjoint(now.systems)
        and then.obedient == now.obedient
    )
