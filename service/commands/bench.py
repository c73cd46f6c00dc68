"""`ariane bench`: measurements that anyone can run."""

import asyncio
import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from service.bench.pipeline import bench_pipeline, read_questions, titles_as_questions
from service.bench.rerank import bench_rerank
from service.bench.webhook import bench_webhook
from service.commands.options import config_option, configured
from service.settings import Settings
from service.show import bar
from service.wiring.answering import open_answering
from service.wiring.database import database_url

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group("bench")
@config_option
def command(config: Path | None) -> None:
    """Measure this machine: medians and ratios, each compared in one run."""
    del config  # the sub-command looks for it here


@command.command("webhook")
@click.option("--requests", default=2000, show_default=True, type=click.IntRange(1, 100_000), help="Of each system.")
@click.option("--connections", default=8, show_default=True, type=click.IntRange(1, 256))
@as_json
@configured
def webhook(settings: Settings, requests: int, connections: int, as_json: bool) -> None:
    """Deliveries a second, beside a bare endpoint that does one INSERT."""

    async def run() -> dict[str, Any]:
        return await bench_webhook(await database_url(settings), requests=requests, connections=connections)

    _print(asyncio.run(run()), as_json=as_json)


@command.command("pipeline")
@click.option(
    "--questions",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A dataset's questions.yml; titles of the index by default.",
)
@click.option("--count", default=100, show_default=True, type=click.IntRange(1, 10_000), help="Questions asked.")
@as_json
@configured
def pipeline(settings: Settings, questions: Path | None, count: int, as_json: bool) -> None:
    """Time of each stage of an answer, on the index in use."""

    async def run() -> dict[str, Any]:
        async with open_answering(settings, "bench") as services:
            texts = read_questions(questions, count) if questions else await titles_as_questions(services, count)
            return await bench_pipeline(services, texts)

    _print(asyncio.run(run()), as_json=as_json)


@command.command("rerank")
@click.option("--pairs", default=25, show_default=True, type=click.IntRange(1, 200), help="Posts scored at a time.")
@click.option("--runs", default=200, show_default=True, type=click.IntRange(1, 10_000))
@as_json
@configured
def rerank(_settings: Settings, pairs: int, runs: int, as_json: bool) -> None:
    """What our rerank adapter adds to a bare HTTP call of the same request."""
    _print(asyncio.run(bench_rerank(count=pairs, runs=runs)), as_json=as_json)


def _print(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result))
        return
    columns = list(dict.fromkeys(column for row in result["rows"] for column in row))
    longest = max(row["p95_ms"] for row in result["rows"]) or 1.0
    table = Table(*columns, "p95", box=None, padding=(0, 2, 0, 0), header_style="dim")
    for row in result["rows"]:
        table.add_row(*(str(row.get(column, "")) for column in columns), bar(row["p95_ms"] / longest))
    console = Console(highlight=False)
    console.print(table)
    used = ", ".join(f"{name} {value}" for name, value in result["settings"].items())
    console.print(f"{used}; {result['machine']['cores']} cores", style="dim")
    if result["ratio"] is not None:
        console.print(f"ratio {result['ratio']}")
