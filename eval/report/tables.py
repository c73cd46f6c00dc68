"""Measures arranged as a page shows them: a verdict, bars by slice, tables side by side, times of stages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from eval.datasets.labels import NEGATIVE_SLICES
from eval.domain import Measured
from eval.measures.pairing import ANSWER
from eval.measures.table import ALL
from eval.report.content import HEADLINES, LEFT_TO_PEOPLE, Report

LANG = "lang:"
TIME = "time "
TOTAL = "total"
LEVELS = ("p50", "p95")
GRAINS = ("topic ", "post ")
MOST_COLUMNS = 9


class Kind(StrEnum):
    """What the rows and columns of a table are."""

    MEASURES = "systems by measures"
    SLICES = "systems by slices"
    MEASURE_ROWS = "measures by slices"
    SLICE_ROWS = "slices by measures"


@dataclass(frozen=True, slots=True)
class Table:
    """Cells by row and column, None where nothing was measured. `about`: the grain or measure of all cells, or ""."""

    kind: Kind
    about: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Measured | None, ...]], ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage's times in milliseconds; `middle` and `end` are where its bars end, as shares of the longest one."""

    name: str
    p50: Measured
    p95: Measured
    middle: float
    end: float


@dataclass(frozen=True, slots=True)
class Section:
    """What a page shows of one label file. `totals` are the whole times of the other systems."""

    labels: str
    n: int
    verdict: tuple[Measured, ...]
    slices: tuple[Measured, ...]
    languages: tuple[Measured, ...]
    tables: tuple[Table, ...]
    stages: tuple[Stage, ...]
    totals: tuple[Stage, ...]

    @property
    def level(self) -> str:
        """How many of 100 questions the ends of the stages' times are about."""
        return self.stages[0].p95.measure.rsplit(" ", 2)[1].removeprefix("p") if self.stages else ""


def sections(report: Report) -> list[Section]:
    """A section for each label file of the run, in its order."""
    return [_section(report, labels) for labels in report.record.labels]


def _section(report: Report, labels: str) -> Section:
    mine = report.of(labels, system=report.system)
    whole = {one.measure: one for one in mine if one.slice == ALL}
    headline = [whole[name] for name in HEADLINES[report.record.command] if name in whole]
    lead = [one for one in mine if one.slice != ALL and _leads(one, report)]
    systems = list(report.record.systems)
    shown = [one for one in report.of(labels) if not one.measure.startswith(TIME)]
    return Section(
        labels=labels,
        n=max((one.n for one in mine if one.slice == ALL and not one.measure.startswith(TIME)), default=0),
        verdict=tuple(headline),
        slices=tuple(one for one in lead if not one.slice.startswith(LANG)),
        languages=tuple(one for one in lead if one.slice.startswith(LANG)),
        tables=tuple(_side_by_side(shown, report.lead) if len(systems) > 1 else [_by_slice(shown)]),
        stages=_stages([one for one in whole.values() if one.measure.startswith(TIME)], _stage_of),
        totals=_totals(report, labels) if len(systems) > 1 else (),
    )


def _leads(one: Measured, report: Report) -> bool:
    if report.record.command == ANSWER and one.slice in NEGATIVE_SLICES:
        return one.measure == LEFT_TO_PEOPLE
    return one.measure == report.lead


def _side_by_side(measures: Sequence[Measured], lead: str) -> list[Table]:
    """Systems by measures, a table a grain; then systems by slices, of the measure that leads."""
    whole = [one for one in measures if one.slice == ALL]
    tables = []
    for grain in (*GRAINS, ""):
        some = [one for one in whole if _grain(one) == grain]
        if some:
            tables.append(_table(Kind.MEASURES, grain.strip(), some, row=_system, column=_measure))
    sliced = [one for one in measures if one.measure == lead]
    if len({one.slice for one in sliced}) > 1:
        tables.append(_table(Kind.SLICES, lead, sliced, row=_system, column=_slice))
    return tables


def _by_slice(measures: Sequence[Measured]) -> Table:
    """Measures by slices; the other way round where there are many slices: no table is much wider than a page."""
    if len({one.slice for one in measures}) > MOST_COLUMNS:
        return _table(Kind.SLICE_ROWS, "", measures, row=_slice, column=_measure)
    return _table(Kind.MEASURE_ROWS, "", measures, row=_measure, column=_slice)


def _table(
    kind: Kind,
    about: str,
    measures: Sequence[Measured],
    *,
    row: Callable[[Measured], str],
    column: Callable[[Measured], str],
) -> Table:
    cells = {(row(one), column(one)): one for one in measures}
    columns = tuple(dict.fromkeys(column(one) for one in measures))
    names = dict.fromkeys(row(one) for one in measures)
    return Table(kind, about, columns, tuple((name, tuple(cells.get((name, at)) for at in columns)) for name in names))


def _totals(report: Report, labels: str) -> tuple[Stage, ...]:
    wanted = [f"{TIME}{TOTAL} {level} ms" for level in LEVELS]
    return _stages([one for one in report.of(labels) if one.measure in wanted], _system)


def _stages(times: Sequence[Measured], name: Callable[[Measured], str]) -> tuple[Stage, ...]:
    """The times of each name that has both levels, on one scale; of a gate its 99th percentile is the end."""
    by_name: dict[str, list[Measured]] = {}
    for one in times:
        by_name.setdefault(name(one), []).append(one)
    whole = {key: (pair[0], pair[1]) for key, pair in by_name.items() if len(pair) == len(LEVELS)}
    longest = max((end.interval.value for _, end in whole.values()), default=0.0) or 1.0
    return tuple(
        Stage(key, middle, end, middle.interval.value / longest, end.interval.value / longest)
        for key, (middle, end) in whole.items()
    )


def _grain(one: Measured) -> str:
    return next((grain for grain in GRAINS if one.measure.startswith(grain)), "")


def _system(one: Measured) -> str:
    return one.system


def _measure(one: Measured) -> str:
    return one.measure


def _slice(one: Measured) -> str:
    return one.slice


def _stage_of(one: Measured) -> str:
    return one.measure.removeprefix(TIME).rsplit(" ", 2)[0]
