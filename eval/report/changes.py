"""What a comparison says to a reader: better, worse or unclear, then every figure, then the questions that moved."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from eval.measures.comparison import Change, Difference, corrected
from eval.report.content import LESS_IS_BETTER, Report

SURE = 0.05
MOST_MOVED = 10


@dataclass(frozen=True, slots=True)
class Moved:
    """The questions of a label file that changed most, of `n` in all."""

    labels: str
    shown: tuple[Change, ...]
    n: int


@dataclass(frozen=True, slots=True)
class Told:
    """`verdicts` are of the measures that lead, each with the key of its text; `tables` are by (system, labels)."""

    verdicts: tuple[tuple[str, Difference], ...]
    tables: tuple[tuple[str, str, tuple[Difference, ...]], ...]
    others: tuple[tuple[str, str, tuple[Difference, ...]], ...]
    moved: tuple[Moved, ...]


def told_differences(report: Report) -> Told | None:
    """The differences from the run before, those of the system in use first; None without a run before.

    Its p-values are corrected for the label files alone: which system the report is about was known beforehand.
    """
    if report.differences is None:
        return None
    compared = report.differences.compared
    mine = corrected(one for one in compared.differences if one.after == report.system)
    others = [one for one in compared.differences if one.after != report.system]
    changes = [one for one in compared.changes if one.after == report.system]
    return Told(
        verdicts=tuple((_verdict(one), one) for one in mine if one.measure == report.lead),
        tables=_tables(mine),
        others=_tables(others),
        moved=tuple(
            Moved(labels, tuple(some[:MOST_MOVED]), len(some))
            for labels in dict.fromkeys(one.labels for one in mine)
            for some in [[one for one in changes if one.labels == labels]]
        ),
    )


def _verdict(one: Difference) -> str:
    if one.interval.value == 0 and (isnan(one.interval.low) or one.interval.low == one.interval.high == 0):
        return "change_same"
    if isnan(one.corrected) or one.corrected > SURE or isnan(one.interval.value):
        return "change_unclear"
    return "change_better" if (one.interval.value > 0) != (one.measure in LESS_IS_BETTER) else "change_worse"


def _tables(rows: Sequence[Difference]) -> tuple[tuple[str, str, tuple[Difference, ...]], ...]:
    kinds = dict.fromkeys((one.after, one.labels) for one in rows)
    return tuple(
        (system, labels, tuple(one for one in rows if (one.after, one.labels) == (system, labels)))
        for system, labels in kinds
    )
