"""Values of measures, case by case, and what they come to over the slices of a label file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval.domain import Case, Interval, Measured
from eval.statistics.bootstrap import RESAMPLES, mean_intervals
from eval.statistics.clusters import Floats, codes

ALL = "all"


@dataclass(frozen=True, slots=True)
class Unit:
    """What a value belongs to: a case, or a message to the gate; `cluster` as in eval.domain.Case."""

    id: str
    slice: str
    lang: str
    cluster: str


@dataclass(frozen=True, slots=True, eq=False)
class PerCase:
    """Values in [0, 1] of each measure, shape (units,), aligned with `units`; NaN where a unit doesn't count for it."""

    units: tuple[Unit, ...]
    values: Mapping[str, Floats]


def units(cases: Sequence[Case]) -> tuple[Unit, ...]:
    """The cases as what values belong to."""
    return tuple(Unit(case.id, case.slice, case.lang, case.cluster) for case in cases)


def slices(units: Sequence[Unit]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Name and members of "all", of each slice, and of each language as "lang:fr": these where there are several."""
    yield ALL, np.ones(len(units), dtype=np.bool_)
    named = [[unit.slice for unit in units], [f"lang:{unit.lang}" for unit in units]]
    for names in named:
        kinds = list(dict.fromkeys(names))
        for kind in kinds if len(kinds) > 1 else ():
            yield kind, np.array([name == kind for name in names])


def summed_up(labels: str, tables: Mapping[str, PerCase], *, seed: int, resamples: int = RESAMPLES) -> list[Measured]:
    """Every measure of every system over every slice, its mean with its interval; what no case counts for is left out.

    `tables` are by system, all over the same units in the same order.
    """
    columns = [(system, measure) for system, table in tables.items() for measure in table.values]
    if not columns:
        return []
    held = next(iter(tables.values())).units
    matrix = np.column_stack([tables[system].values[measure] for system, measure in columns])
    found: list[tuple[int, str, int, Interval]] = []
    for name, members in slices(held):
        part = matrix[members]
        clusters = codes([unit.cluster for unit, kept in zip(held, members, strict=True) if kept])
        intervals = mean_intervals(part, clusters, seed=seed, resamples=resamples)
        counted = (~np.isnan(part)).sum(axis=0)
        found += [(at, name, int(counted[at]), interval) for at, interval in enumerate(intervals) if counted[at]]
    found.sort(key=lambda item: list(tables).index(columns[item[0]][0]))
    return [Measured(labels, columns[at][0], name, columns[at][1], n, interval) for at, name, n, interval in found]
