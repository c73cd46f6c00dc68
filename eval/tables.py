"""Tables of measures for a person at a terminal."""

from collections.abc import Sequence
from math import isnan

from rich.console import Console
from rich.table import Table

from eval.domain import Interval, Measured

ALL = "all"
TIME = "time "


def show_measures(console: Console, measures: Sequence[Measured], *, lead: str) -> None:
    """For each label file: every measure with its interval, by grain; the measure `lead` by slice; times of stages."""
    for labels in dict.fromkeys(one.labels for one in measures):
        mine = [one for one in measures if one.labels == labels]
        whole = [one for one in mine if one.slice == ALL]
        for grain in dict.fromkeys(_grain(one) for one in whole if not one.measure.startswith(TIME)):
            graded = [one for one in whole if _grain(one) == grain]
            _show(console, f"{labels}, by {grain}", [(one.measure.partition(" ")[2], one) for one in graded])
        sliced = [one for one in mine if one.measure == lead and one.slice != ALL]
        _show(console, f"{labels}, {lead} by slice", [(f"{one.slice} ({one.n})", one) for one in sliced])
        times = [one for one in whole if one.measure.startswith(TIME)]
        _show_times(console, f"{labels}, milliseconds: median, 95th percentile", times)


def _grain(one: Measured) -> str:
    return one.measure.partition(" ")[0]


def _show(console: Console, title: str, columns: Sequence[tuple[str, Measured]]) -> None:
    """A row a system, a column a name."""
    if not columns:
        return
    names = list(dict.fromkeys(name for name, _ in columns))
    table = _table(title, "system", *names)
    for system in dict.fromkeys(one.system for _, one in columns):
        cells = {name: _cell(one.interval) for name, one in columns if one.system == system}
        table.add_row(system, *(cells.get(name, "") for name in names))
    console.print(table)


def _show_times(console: Console, title: str, times: Sequence[Measured]) -> None:
    if not times:
        return
    found: dict[tuple[str, str], list[str]] = {}
    for one in times:
        stage = one.measure.removeprefix(TIME).rsplit(" ", 2)[0]
        found.setdefault((one.system, stage), []).append(f"{one.interval.value:.1f}")
    table = _table(title, "system", "stage", "p50", "p95")
    for (system, stage), values in found.items():
        table.add_row(system, stage, *values)
    console.print(table)


def _table(title: str, *columns: str) -> Table:
    table = Table(*columns, title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.title_style = "bold"
    return table


def _cell(interval: Interval) -> str:
    if isnan(interval.value):
        return "–"
    ends = "" if isnan(interval.low) else f" [dim]{interval.low:.2f}–{interval.high:.2f}[/dim]"
    return f"{interval.value:.3f}{ends}"
