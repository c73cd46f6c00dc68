"""What the tests of the fallback table look at: metrics, the worker's log, tasks that die unseen."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from time import monotonic
from typing import Any

from prometheus_client import REGISTRY

from service.fallbacks.row import Counted, Part

SLACK_SECONDS = 4.0
"""What an answer takes without any fault, on a machine that does other things too."""
ARIANES = ("Transient", "Busy", "Unsure", "Misconfigured", "Rejected", "_Again")
"""How the errors that we raise on purpose begin in the log."""


@dataclass
class Log:
    """What the program said, whichever module said it."""

    said: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def info(self, event: str, **fields: Any) -> None:
        self.said.append((event, fields))

    warning = error = info

    def failed(self) -> list[dict[str, Any]]:
        """The jobs that failed."""
        return [fields for event, fields in self.said if event == "job_failed"]

    def foreign(self) -> list[dict[str, Any]]:
        """Those that failed for another reason than ours say."""
        return [fields for fields in self.failed() if not str(fields["error"]).startswith(ARIANES)]


@contextmanager
def unhandled() -> Iterator[None]:
    """No task of this loop dies unseen."""
    loop, seen = asyncio.get_running_loop(), list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, context: seen.append(context))
    try:
        yield
    finally:
        loop.set_exception_handler(None)
    said = [f"{context['message']}: {context.get('exception')!r} in {context.get('future')}" for context in seen]
    assert not said, said


def value(counted: Counted) -> float:
    """What is counted there, over every value that a label may have."""
    choices = [[(name, one) for one in values.split("|")] for name, values in counted.labels]
    return sum(REGISTRY.get_sample_value(counted.name, dict(labels)) or 0.0 for labels in product(*choices))


def values(rows: Iterable[Counted]) -> dict[str, float]:
    return {str(one): value(one) for one in rows}


def gave_up() -> float:
    names = [("answer_post", "failed"), ("index_post", "failed")]
    return sum(value(Counted("ariane_jobs_total", (("task", task), ("result", word)))) for task, word in names)


def part_up(part: Part) -> float | None:
    return REGISTRY.get_sample_value("ariane_part_up", {"part": part})


async def grown(rows: Sequence[Counted], before: dict[str, float], *, seconds: float = 20.0) -> None:
    """Wait until each of them has grown."""
    deadline = monotonic() + seconds
    while still := [str(one) for one in rows if value(one) <= before[str(one)]]:
        assert monotonic() < deadline, f"not counted: {still}"
        await asyncio.sleep(0.02)
