"""`python -m eval judge`: whether runs meet the operator's limits, recorded as what posts_pipeline goes on by."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table

from eval.runs.finding import find_run
from eval.verdict import Kept, judge, read_limits, verdict
from service.answer.activation import SWITCH_ON
from service.commands.flags import system_user
from service.commands.options import configured
from service.demo.tested import ship
from service.domain import EvaluationRun
from service.errors import Rejected
from service.settings import Settings
from service.show import table_console
from service.store.evaluations import EvaluationStore
from service.wiring.database import open_database

MISSED = 1


@click.command("judge")
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
@click.option("--limits", "file", required=True, type=click.Path(path_type=Path, dir_okay=False), help="A YAML file.")
@click.option("--by", help="Who judges; the system user by default.")
@click.option("--why", default="", help="A word on it, kept with the verdict.")
@click.option("--ship", "shipping", is_flag=True, help="Write it into this checkout as the demo's, not to a database.")
@configured
def command(
    settings: Settings, names: tuple[str, ...], file: Path, by: str | None, why: str, shipping: bool
) -> int | None:
    """Hold finished runs of one dataset against limits, and record the verdict on the present configuration.

    A RUN is its folder, its id, or the name of its command (the newest one). Every limit met: posts_pipeline can be
    switched on with `ariane flags set`. One missed: status 1, and answers under this configuration are held back.
    """
    limits = read_limits(file)
    runs = [find_run(settings, name) for name in names]
    kept = judge(runs, limits, settings)
    made = verdict(runs, kept, settings, by=by or system_user(), reason=why)
    _show(kept)
    if shipping:
        if not made.passed:
            raise Rejected(f"not shipped: {made.reason}")
        click.echo(f"written: {ship(made)}", err=True)
    else:
        asyncio.run(_record(settings, made))
        click.echo(f"recorded: {'passed' if made.passed else 'failed'}, {made.reason}", err=True)
        if made.passed:
            click.echo(f"to answer by it: {SWITCH_ON}", err=True)
    return None if made.passed else MISSED


async def _record(settings: Settings, made: EvaluationRun) -> None:
    async with open_database(settings, "eval") as pool:
        await EvaluationStore(pool).record_run(made)


def _show(kept: Sequence[Kept]) -> None:
    table = Table(
        "limit", "system", "wanted", "found", "95 %", "n", "", box=None, header_style="dim", padding=(0, 2, 0, 0)
    )
    for one in kept:
        found = one.found.interval
        ends = f"{found.low:.2f}-{found.high:.2f}"
        met = "[green]met[/]" if one.met else "[bold red]missed[/]"
        table.add_row(
            one.limit.name, one.found.system, one.limit.wanted, f"{found.value:.3f}", ends, str(one.found.n), met
        )
    table_console().print(table)
