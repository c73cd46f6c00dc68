"""Retrieval measured: the index opened, questions embedded meanwhile, every system asked every case, a run written."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter

import click

from eval.datasets import Dataset
from eval.domain import Case, Labels, Measured, Retrieved
from eval.index import open_index
from eval.measures.rows import measured
from eval.runs import DatasetUsed, Run, new_run
from eval.runs.resuming import gone_on_with
from eval.systems import (
    EMBEDDING,
    Followups,
    QueryVectors,
    System,
    open_systems,
    question_embedder,
    question_of,
    rank_all,
)
from service.progress import ProgressBar
from service.settings import Settings
from service.wiring.answering import Answering

COMMAND = "retrieve"


@dataclass(frozen=True, slots=True)
class Asked:
    """What to measure; `fresh` makes the index anew, `resumed` is the run to go on with."""

    dataset: Dataset
    cases: tuple[Case, ...]
    labels: tuple[Labels, ...]
    systems: tuple[str, ...]
    followups: Followups = Followups.FULL
    seed: int = 1
    fresh: bool = False
    resumed: Run | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The run and what it measures; `seconds` says where its time went."""

    run: Run
    measures: list[Measured]
    seconds: dict[str, float] = field(default_factory=dict)


async def retrieve(settings: Settings, asked: Asked) -> Outcome:
    """Rank every case by every system, and measure; raises what opening, reading and ranking raise.

    What was ranked before a fault or a kill stays in the run, which can be resumed.
    """
    seconds: dict[str, float] = {}
    embedding = _Embedding(settings, asked)
    with ProgressBar() as progress:
        try:
            opening = open_index(
                settings,
                asked.dataset,
                fresh=asked.fresh,
                progress=progress,
                say=_say,
                opened=lambda at: embedding.start(at, progress),
            )
            start = perf_counter()
            async with opening as at:
                seconds["index"] = round(perf_counter() - start, 1)
                with _timed("systems", seconds):
                    systems = await open_systems(at, asked.systems, embedding.vectors(at), asked.followups)
                run = _run(settings, asked, systems)
                click.echo(f"run {run.folder}", err=True)
                with run, _timed("ranking", seconds):
                    await rank_all(run, asked.cases, systems, progress)
        finally:
            await embedding.stop()
    with run, _timed("measures", seconds):
        measures = _finish(run, asked.cases)
    return Outcome(run, measures, seconds)


class _Embedding:
    """Embeds the questions in the background, from the moment that the models are open."""

    def __init__(self, settings: Settings, asked: Asked) -> None:
        self._folder = settings.home / "eval" / "vectors"
        chars = settings.retrieval.question_chars
        wanted = asked.cases if EMBEDDING & set(asked.systems) else ()
        self._texts = [query for case in wanted for query in question_of(case, asked.followups, chars).queries]
        self._vectors: QueryVectors | None = None
        self._closing = AsyncExitStack()
        self._task: asyncio.Task[None] | None = None

    def vectors(self, at: Answering) -> QueryVectors:
        if self._vectors is None:
            self._vectors = QueryVectors(question_embedder(at, self._closing), self._folder)
        return self._vectors

    def start(self, at: Answering, progress: ProgressBar) -> None:
        def told(done: int, total: int) -> None:
            progress("questions embedded", done, total)

        self._task = asyncio.create_task(self.vectors(at).embed_all(self._texts, told))

    async def stop(self) -> None:
        """End what is left of it; a fault was met by the system that waited for the vector."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._closing.aclose()


def _run(settings: Settings, asked: Asked, systems: Sequence[System]) -> Run:
    """A new run, or the one to go on with, if it was begun in the same way."""
    dataset = DatasetUsed(name=asked.dataset.name, checksum=asked.dataset.checksum)
    switches = {system.name: dict(system.switches) for system in systems}
    if asked.resumed is None:
        return new_run(
            settings,
            command=COMMAND,
            dataset=dataset,
            labels=asked.labels,
            systems=switches,
            seed=asked.seed,
            options={"dataset": str(asked.dataset.folder.resolve()), "followups": str(asked.followups)},
            now=datetime.now(UTC),
        )
    return gone_on_with(asked.resumed, settings, dataset=dataset, systems=switches)


def _finish(run: Run, cases: Sequence[Case]) -> list[Measured]:
    found: dict[str, dict[str, Retrieved]] = {}
    for system in run.record.systems:
        found[system] = {}
        for labels in run.record.labels:
            by_case = run.retrieved(labels, system)
            found[system] |= by_case
            ordered = [by_case[case.id] for case in cases if case.labels == labels and case.id in by_case]
            run.write_trec(labels, system, ordered)
    measures = measured(cases, found, seed=run.record.seed)
    run.finish(measures, now=datetime.now(UTC))
    return measures


@contextmanager
def _timed(part: str, seconds: dict[str, float]) -> Iterator[None]:
    start = perf_counter()
    yield
    seconds[part] = round(perf_counter() - start, 1)


def _say(line: str) -> None:
    click.echo(line, err=True)
