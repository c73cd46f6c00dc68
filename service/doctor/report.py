"""The checks as text for people, aligned and coloured, with a verdict in the last line; and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.doctor.check import Check, Status

MARKS = {Status.OK: ("✓", "green"), Status.WARN: ("!", "yellow"), Status.FAIL: ("✗", "bold red")}


def passed(checks: Sequence[Check]) -> bool:
    """Whether nothing failed; a warning is no failure."""
    return all(check.status is not Status.FAIL for check in checks)


def as_json(checks: Sequence[Check]) -> dict[str, Any]:
    """{"ok", "checks": [{"name", "status", "detail", "mend"}]}"""
    return {"ok": passed(checks), "checks": [asdict(check) for check in checks]}


def show_checks(checks: Sequence[Check], console: Console) -> None:
    """One line a check, what mends it below, and the verdict."""
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        mark, style = MARKS[check.status]
        said = Text(check.detail, style="" if check.status is Status.OK else style)
        if check.mend:
            said.append(f"\n→ {check.mend}", style="default not bold")
        table.add_row(Text(mark, style=style), Text(check.name, style="bold"), said)
    console.print(table)
    console.print(_verdict(checks))


def _verdict(checks: Sequence[Check]) -> Text:
    failed = [check.name for check in checks if check.status is Status.FAIL]
    warned = sum(check.status is Status.WARN for check in checks)
    warnings = f"{warned} warning{'s' * (warned != 1)}"
    if failed:
        return Text(f"{len(failed)} of {len(checks)} checks failed ({', '.join(failed)}), {warnings}", "bold red")
    if warned:
        return Text(f"nothing failed, {warnings}", "bold yellow")
    return Text("all is well", "bold green")
