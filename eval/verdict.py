"""The verdict on runs: whether the operator's limits are met, and its record, by which posts_pipeline goes on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from eval.datasets.parsing import Entry, Line, yaml_items
from eval.domain import Measured
from eval.runs import Run
from eval.runs.record import differing
from service.domain import EvaluationRun, RunKind
from service.errors import Rejected
from service.settings import Channel, Settings
from service.wiring.configuration import configuration

PIPELINE = "answer"
"""The command that asks the whole pipeline: its one system is what is configured."""

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Limit(Entry):
    """One line of a limits file: a measure of the configured system over a slice, and its least or greatest value."""

    measure: Annotated[Line, Field(min_length=1)]
    labels: Line = "questions"
    slice: Line = "all"
    at_least: Finite | None = None
    at_most: Finite | None = None

    @model_validator(mode="after")
    def _one_side(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("a limit has either at_least or at_most")
        return self

    @property
    def name(self) -> str:
        return " ".join((self.labels, *([] if self.slice == "all" else [self.slice]), self.measure))

    @property
    def wanted(self) -> str:
        return f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"

    def met_by(self, value: float) -> bool:
        """Whether the value keeps the limit; a value that isn't known (NaN) does not."""
        return value >= self.at_least if self.at_least is not None else value <= (self.at_most or 0.0)


@dataclass(frozen=True, slots=True)
class Kept:
    """A limit, what was found, and whether that keeps it."""

    limit: Limit
    found: Measured

    @property
    def met(self) -> bool:
        return self.limit.met_by(self.found.interval.value)

    def __str__(self) -> str:
        return f"{self.limit.name} {self.found.interval.value:.3f}, {self.limit.wanted} wanted"


def read_limits(path: Path) -> tuple[Limit, ...]:
    """The limits of a YAML list, at least one; raises Rejected with the file, the item and what is wrong."""
    limits: dict[str, Limit] = {}
    for where, limit in yaml_items(path, Limit):
        if limit.name in limits:
            raise Rejected(f"{where}: a second limit on {limit.name}")
        limits[limit.name] = limit
    if not limits:
        raise Rejected(f"{path}: no limit in it")
    return tuple(limits.values())


def judge(runs: Sequence[Run], limits: Sequence[Limit], settings: Settings) -> list[Kept]:
    """Each limit against what these finished runs measured of the configured system.

    Raises Rejected for runs of several datasets, of another configuration than that of the settings, of only a part of
    the questions, or that lack a measure.
    """
    present = configuration(settings)
    parts = {name: part.sha256 for name, part in present.parts.items()}
    for run in runs:
        if run.record.finished is None:
            raise Rejected(f"{run.folder}: this run is not finished")
        if run.record.signature != present.sha256:
            other = ", ".join(differing(run.record.parts, parts))
            raise Rejected(
                f"{run.folder}: made under another configuration than the present one ({other}): run it again"
            )
        if run.record.limit is not None:
            raise Rejected(f"{run.folder}: only a part of the questions was asked: run it without --limit")
    if len({run.record.dataset.checksum for run in runs}) != 1:
        raise Rejected("a verdict is on runs of one dataset, in one state of its files")
    measures = [one for run in runs for one in run.measures() if one.system == configured_system(run, settings)]
    return [Kept(limit, _found(limit, measures)) for limit in limits]


def verdict(
    runs: Sequence[Run], kept: Sequence[Kept], settings: Settings, *, by: str, reason: str = ""
) -> EvaluationRun:
    """What is to be recorded (service.store.evaluations.record_run) of these runs, judged by `judge`."""
    missed = [str(one) for one in kept if not one.met]
    told = f"missed: {'; '.join(missed)}" if missed else f"{len(kept)} limits met"
    dataset = runs[0].record.dataset
    return EvaluationRun(
        configuration(settings),
        RunKind.EVAL,
        passed=not missed,
        by=by,
        reason=f"{reason} ({told})" if reason else told,
        dataset=dataset.name,
        dataset_sha256=dataset.checksum,
        limits={one.limit.name: one.limit.wanted for one in kept},
        figures={one.limit.name: one.found.interval.value for one in kept},
    )


def configured_system(run: Run, settings: Settings) -> str | None:
    """The system of a run that is what these settings configure: the pipeline, or retrieval over the same channels."""
    if run.record.command == PIPELINE:
        return next(iter(run.record.systems), None)
    channels = {str(Channel(one)) for one in settings.retrieval.channels}
    return next(
        (
            name
            for name, switches in run.record.systems.items()
            if "reranker" in switches and {str(one) for one in switches.get("channels", ())} == channels
        ),
        None,
    )


def _found(limit: Limit, measures: Sequence[Measured]) -> Measured:
    for one in measures:
        if (one.labels, one.slice, one.measure) == (limit.labels, limit.slice, limit.measure):
            return one
    there = sorted({one.measure for one in measures if (one.labels, one.slice) == (limit.labels, limit.slice)})
    raise Rejected(f"no run measured {limit.name!r} of the configured system; there are: {', '.join(there) or 'none'}")
