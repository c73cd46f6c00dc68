"""Whole runs measured: every label file, system, slice and measure with its interval, and their rows for machines."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from eval.domain import Answered, Case, Measured, Retrieved
from eval.measures.answers import answer_values
from eval.measures.retrieval import retrieval_values
from eval.measures.safety import gate_values
from eval.measures.table import PerCase, Unit, summed_up
from eval.measures.times import measured_times
from eval.statistics.bootstrap import RESAMPLES

DIGITS = 6
"""Of a value in a row: what arithmetic may change between machines is further behind."""

GATE = "gate"
SAFETY = "safety"

Item = TypeVar("Item", Retrieved, Answered)


def measured(
    cases: Sequence[Case],
    retrieved: Mapping[str, Mapping[str, Retrieved]],
    *,
    seed: int,
    resamples: int = RESAMPLES,
) -> list[Measured]:
    """Retrieval measures and times of every system, `retrieved` being by system and case id; by label file, in order.

    The same cases, values and seed give the same intervals, whatever other systems are measured beside.
    """
    return _measured(cases, retrieved, retrieval_values, seed, resamples)


def measured_answers(
    cases: Sequence[Case],
    answered: Mapping[str, Mapping[str, Answered]],
    *,
    base_url: str,
    seed: int,
    resamples: int = RESAMPLES,
) -> list[Measured]:
    """Measures of whole answers and times of every system, `answered` being by system and case id.

    `base_url` is the forum's, which the links of posts start with.
    """

    def values(some: Sequence[Case], items: Mapping[str, Answered]) -> PerCase:
        return answer_values(some, items, base_url=base_url)

    return _measured(cases, answered, values, seed, resamples)


def measured_gate(
    messages: Sequence[Unit],
    expected: Mapping[str, bool],
    declined: Mapping[str, Mapping[str, bool]],
    *,
    seed: int,
    resamples: int = RESAMPLES,
) -> list[Measured]:
    """Measures of the gate by message id: whether each is to be declined, and by system whether it was."""
    tables = {system: gate_values(messages, expected, found) for system, found in declined.items()}
    return summed_up(GATE, tables, seed=seed, resamples=resamples)


def rows(measures: Iterable[Measured]) -> list[dict[str, Any]]:
    """What the commands print for machines; an end that nothing is known of is null."""
    return [
        {
            "labels": str(one.labels),
            "system": one.system,
            "slice": one.slice,
            "measure": one.measure,
            "n": one.n,
            "value": number(one.interval.value),
            "low": number(one.interval.low),
            "high": number(one.interval.high),
        }
        for one in measures
    ]


def number(value: float) -> float | None:
    """A value of a row: rounded, None where there is none."""
    return None if math.isnan(value) else round(value, DIGITS)


def _measured(
    cases: Sequence[Case],
    found: Mapping[str, Mapping[str, Item]],
    values: Callable[[Sequence[Case], Mapping[str, Item]], PerCase],
    seed: int,
    resamples: int,
) -> list[Measured]:
    measures: list[Measured] = []
    for labels in dict.fromkeys(case.labels for case in cases):
        some = [case for case in cases if case.labels == labels]
        tables = {system: values(some, items) for system, items in found.items()}
        measures += summed_up(labels, tables, seed=seed, resamples=resamples)
        for system, items in found.items():
            measures += measured_times(labels, system, some, items, seed=seed)
    return measures
