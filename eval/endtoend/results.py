"""What the commands of this package print: one JSON shape for machines, tables for people."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from eval.domain import Measured
from eval.measures.table import ALL
from eval.runs import Run

if TYPE_CHECKING:
    from rich.table import Table

MOST_COLUMNS = 10

MILLISECONDS = " ms"
"""How the name of a time ends."""


def warn(lines: Iterable[str]) -> None:
    """Tell a person, on stderr."""
    for line in lines:
        click.echo(line, err=True)


def show_measures(run: Run, measures: Sequence[Measured]) -> None:
    """For each system a line a measure and a column a slice, or the other way where there are many; then its times."""
    from rich.text import Text

    from service.show import table_console

    console = table_console()
    console.print(Text(f"{run.record.id}: {run.record.dataset.name}", style="bold"))
    for system in dict.fromkeys(one.system for one in measures):
        its = [one for one in measures if one.system == system]
        console.print()
        console.print(_values(system, [one for one in its if not one.measure.endswith(MILLISECONDS)]))
        if times := [one for one in its if one.measure.endswith(MILLISECONDS)]:
            console.print()
            console.print(_times(times))


def show_faults(title: str, lines: Sequence[str]) -> None:
    """What went wrong, a line each, under their number."""
    from rich.text import Text

    from service.show import table_console

    console = table_console()
    console.print()
    console.print(Text(f"{title}: {len(lines) or 'none'}", style="bold"))
    for line in lines:
        console.print(Text(f"  {line}"), soft_wrap=True)


def _values(system: str, measures: Sequence[Measured]) -> "Table":
    slices = list(dict.fromkeys(one.slice for one in measures))
    names = list(dict.fromkeys(one.measure for one in measures))
    found = {(one.measure, one.slice): one for one in measures}
    if len(slices) > MOST_COLUMNS:
        table = _table(system, *(heading for name in names for heading in (name, "95 %", "n")))
        for part in slices:
            table.add_row(part, *(cell for name in names for cell in _cells(found.get((name, part)), whole=True)))
        return table
    table = _table(
        system, *(heading for part in slices for heading in ((part, "95 %", "n") if part == ALL else (part,)))
    )
    for name in names:
        table.add_row(name, *(cell for part in slices for cell in _cells(found.get((name, part)), whole=part == ALL)))
    return table


def _cells(one: Measured | None, *, whole: bool) -> list[str]:
    """A value, and where it is to be shown `whole` its interval and the number of its cases."""
    if one is None:
        return [""] * (3 if whole else 1)
    value = f"{one.interval.value:.3f}"
    return [value, f"{one.interval.low:.2f}-{one.interval.high:.2f}", str(one.n)] if whole else [value]


def _times(measures: Sequence[Measured]) -> "Table":
    """A line a stage: `time <stage> <quantile> ms`."""
    by_stage: dict[str, dict[str, float]] = {}
    for one in measures:
        stage, _, quantile = one.measure.removeprefix("time ").removesuffix(MILLISECONDS).rpartition(" ")
        by_stage.setdefault(stage, {})[quantile] = one.interval.value
    quantiles = list(dict.fromkeys(name for times in by_stage.values() for name in times))
    table = _table("time, ms", *quantiles)
    for stage, times in by_stage.items():
        table.add_row(stage, *(_milliseconds(times[name]) if name in times else "" for name in quantiles))
    return table


def _milliseconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _table(first: str, *others: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table
