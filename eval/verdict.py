"""The verdict on runs: whether the operator's limits are met, and its record, by which posts_pipeline goes on."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isnan
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from eval.datasets.parsing import Entry, Line, yaml_items
from eval.domain import Measured
from eval.measures.rows import GATE, SAFETY
from eval.runs import Run
from eval.runs.record import differing
from service.domain import EvaluationRun, RunKind
from service.errors import Rejected
from service.settings import Channel, Settings
from service.wiring.configuration import configuration

_ONE_SYSTEM = ("answer", GATE)
"""The commands that ask the whole pipeline, or its gate: their one system is what is configured."""

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Limit(Entry):
    """One line of a limits file: a measure of the configured system over a slice, and its least or greatest value.

    `system` is a setting of a safety run, such as "default.gate-on"; without it the configured prompt has to keep the
    limit with the gate off and on.
    """

    measure: Annotated[Line, Field(min_length=1)]
    labels: Line = "questions"
    slice: Line = "all"
    system: Line = ""
    at_least: Finite | None = None
    at_most: Finite | None = None

    @model_validator(mode="after")
    def _one_side(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("a limit has either at_least or at_most")
        return self

    @property
    def name(self) -> str:
        parts = (self.labels, self.system, "" if self.slice == "all" else self.slice, self.measure)
        return " ".join(part for part in parts if part)

    @property
    def wanted(self) -> str:
        return f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"

    def margin(self, value: float) -> float:
        """How far inside the limit a value is; what isn't known (NaN) is furthest outside."""
        inside = value - self.at_least if self.at_least is not None else (self.at_most or 0.0) - value
        return -inf if isnan(inside) else inside

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
    the questions, of another model than the configured one, or that lack a measure.
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
        if run.record.obedient:
            raise Rejected(f"{run.folder}: an obedient program was in the model's place: run it without --obedient")
    if len({run.record.dataset.checksum for run in runs}) != 1:
        raise Rejected("a verdict is on runs of one dataset, in one state of its files")
    measures = [_of_configured(run, settings) for run in runs]
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
    """The system of a run that is what these settings configure: the pipeline, its gate, retrieval by these channels.

    None for a run of safety: whether the gate is on is a switch, and none of the settings.
    """
    if run.record.command in _ONE_SYSTEM:
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


def _of_configured(run: Run, settings: Settings) -> list[Measured]:
    """What the run measured of the configured system; of a safety run, with its prompt, the gate off and on."""
    if run.record.command == SAFETY:
        prompt = f"{settings.models.answerer.prompt_variant}."
        return [one for one in run.measures() if one.system.startswith(prompt)]
    configured = configured_system(run, settings)
    return [one for one in run.measures() if one.system == configured]


def _found(limit: Limit, runs: Sequence[Sequence[Measured]]) -> Measured:
    """What the first run that measured it found; of several settings the one that keeps the limit least."""
    for measures in runs:
        of_it = [
            one
            for one in measures
            if (one.labels, one.slice, one.measure) == (limit.labels, limit.slice, limit.measure)
            and limit.system in ("", one.system)
        ]
        if of_it:
            return min(of_it, key=lambda one: limit.margin(one.interval.value))
    there = [one for measures in runs for one in measures]
    names = {one.measure for one in there if (one.labels, one.slice) == (limit.labels, limit.slice)}
    told = sorted(names) or [f"labels {labels}" for labels in sorted({one.labels for one in there})]
    raise Rejected(f"no run measured {limit.name!r} of the configured system; there are: {', '.join(told) or 'none'}")
