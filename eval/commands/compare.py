"""`python -m eval compare`: two runs, or the systems of one, side by side with intervals and p-values."""

import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.commands.options import configured
from service.settings import Settings

if TYPE_CHECKING:
    from eval.measures.comparison import Change, Difference
    from eval.measures.pairing import Comparison
    from eval.runs import Run

MOST_CHANGES = 10
"""Changed questions shown to a person, for each pair of systems and label file; machines get all."""
SURE = 0.05


@click.command("compare")
@click.argument("run_a")
@click.argument("run_b", required=False)
@click.option("--baseline", metavar="SYSTEM", help="A system of RUN_A that every system is compared with.")
@click.option("--dataset", type=click.Path(path_type=Path, file_okay=False), help="The runs' dataset, if it moved.")
@click.option("--slice", "part", default="all", show_default=True, help='One slice, or a language as "lang:fr".')
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@configured
def command(
    settings: Settings,
    run_a: str,
    run_b: str | None,
    baseline: str | None,
    dataset: Path | None,
    part: str,
    as_json: bool,
) -> None:
    """Compare RUN_A, before, with RUN_B, after; or, with --baseline, the systems of RUN_A alone.

    A run is its folder, its id, or its command (the newest of it). Shown are each measure in both, the difference with
    its 95 % interval, the p-value of a paired test, what is left of it after correction for all systems and label
    files, and the smallest difference that so many questions would likely show; then the questions that changed most.
    """
    from eval.datasets import load_dataset, read_cases
    from eval.domain import Labels
    from eval.measures.pairing import compare_runs
    from eval.runs.finding import dataset_folder, find_run

    before = find_run(settings, run_a)
    after = find_run(settings, run_b) if run_b else before
    labelled = load_dataset(dataset or dataset_folder(before))
    compared = compare_runs(
        before,
        after,
        lambda labels: read_cases(labelled, Labels(labels)),
        baseline=baseline,
        base_url=settings.forum.base_url,
        part=part,
    )
    warnings = list(compared.warnings)
    if labelled.checksum != after.record.dataset.checksum:
        warnings.append(f"{labelled.folder}: changed since the run {after.record.id}: judged by the labels of now")
    if as_json:
        click.echo(json.dumps(report(before, after, compared, warnings, part), ensure_ascii=False))
    else:
        for warning in warnings:
            click.echo(warning, err=True)
        _show(before, after, compared)


def report(before: "Run", after: "Run", compared: "Comparison", warnings: list[str], part: str) -> dict[str, Any]:
    """What `--json` prints; a number that isn't known is null."""
    return {
        "command": "compare",
        "runs": [before.record.id, after.record.id],
        "dataset": after.record.dataset.model_dump(),
        "slice": part,
        "seed": before.record.seed,
        "differs": list(compared.differs),
        "warnings": warnings,
        "rows": [_row(one) for one in compared.differences],
        "changes": [_change(one) for one in compared.changes],
    }


def _row(one: "Difference") -> dict[str, Any]:
    from eval.measures.rows import number

    return {
        "labels": one.labels,
        "slice": one.slice,
        "before": one.before,
        "after": one.after,
        "measure": one.measure,
        "n": one.n,
        "value_before": number(one.value_before),
        "value_after": number(one.value_after),
        "difference": number(one.interval.value),
        "low": number(one.interval.low),
        "high": number(one.interval.high),
        "p": number(one.p),
        "p_corrected": number(one.corrected),
        "detectable": number(one.detectable),
    }


def _change(one: "Change") -> dict[str, Any]:
    return {
        "labels": one.labels,
        "id": one.id,
        "slice": one.slice,
        "before": {"system": one.before, "found": one.then},
        "after": {"system": one.after, "found": one.now},
    }


def _show(before: "Run", after: "Run", compared: "Comparison") -> None:
    from service.show import table_console

    # Wide enough for every figure, also where the output is no terminal.
    console = table_console()
    one = before.folder == after.folder
    console.print(before.record.id if one else f"{before.record.id} -> {after.record.id}", style="bold", markup=False)
    for line in compared.differs:
        console.print(f"  {line}", markup=False, style="dim")

    def pair(of: "Difference | Change") -> tuple[str, str, str]:
        return of.labels, of.before, of.after

    changes = {key: list(some) for key, some in groupby(sorted(compared.changes, key=pair), key=pair)}
    for key, rows in groupby(compared.differences, key=pair):
        labels, first, second = key
        console.print()
        console.print(f"{labels}: {first}" + (f" -> {second}" if first != second else ""), style="bold", markup=False)
        console.print(_table(list(rows)))
        _show_changes(console, changes.get(key, []))


def _table(rows: "list[Difference]") -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1), header_style="dim")
    for name in ("measure", "n", "before", "after", "difference", "95 % interval", "p", "corrected", "detectable"):
        table.add_column(name, justify="left" if name == "measure" else "right", no_wrap=True)
    for one in rows:
        cells = [
            one.measure,
            str(one.n),
            _figure(one.value_before),
            _figure(one.value_after),
            _figure(one.interval.value, sign=True),
            f"[{_figure(one.interval.low, sign=True)}, {_figure(one.interval.high, sign=True)}]",
            _figure(one.p, digits=4),
            _figure(one.corrected, digits=4),
            _figure(one.detectable),
        ]
        style = "bold" if one.corrected <= SURE else ""
        table.add_row(*(Text(cell, style=style) for cell in cells))
    return table


def _show_changes(console: Any, changes: "list[Change]") -> None:
    if not changes:
        console.print("  no question changed", style="dim")
        return
    console.print(f"  {len(changes)} questions changed; most:", style="dim")
    for one in changes[:MOST_CHANGES]:
        console.print(f"    {one.id} ({one.slice}): {_place(one.then)} -> {_place(one.now)}", markup=False)


def _place(found: int | str | None) -> str:
    return "not found" if found is None else f"rank {found}" if isinstance(found, int) else found


def _figure(value: float, *, sign: bool = False, digits: int = 3) -> str:
    if value != value:  # NaN: not known
        return "-"
    return f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
