"""`ariane bench`: measurements that anyone can run."""

import asyncio
import json
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from service.bench.backfill import bench_backfill
from service.bench.pipeline import bench_pipeline, read_questions, titles_as_questions
from service.bench.plot import draw
from service.bench.rerank import bench_rerank
from service.bench.search import Build, bench_search
from service.bench.vectors import LIKE, read_profile, read_vectors, synthetic
from service.bench.webhook import bench_webhook
from service.commands.options import config_option, configured
from service.domain import IndexKind
from service.errors import Rejected
from service.settings import Settings
from service.show import bar, table_console
from service.store.profiles import MAINTENANCE_MEMORY
from service.wiring.answering import open_answering
from service.wiring.database import database_url, open_database

INDEXES = tuple(str(one) for one in IndexKind if one is not IndexKind.EXACT)

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


@command.command("search")
@click.option(
    "--vectors", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="A dataset's vectors.npz."
)
@click.option("--profile", help="Or the vectors of this profile of the index in use.")
@click.option("--like", type=click.Choice(list(LIKE)), default="e5", show_default=True, help="Or made, with cosines.")
@click.option("--within", type=float, help="Cosine within a topic, instead of --like.")
@click.option("--between", type=float, help="Cosine between topics, instead of --like.")
@click.option(
    "--posts", default=20_000, show_default=True, type=click.IntRange(100, 2_000_000), help="How many are made."
)
@click.option("--dimensions", default=1024, show_default=True, type=click.IntRange(8, 2000))
@click.option("--sizes", help="Growth: numbers of posts, as 50000,150000,425000.")
@click.option("--queries", default=100, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--category-percent", default=2.0, show_default=True, type=click.FloatRange(0.1, 100))
@click.option("--kind", "kinds", multiple=True, type=click.Choice(INDEXES))
@click.option("--maintenance-workers", default=1, show_default=True, type=click.IntRange(0, 64), help="Of a build.")
@click.option("--maintenance-memory", default=MAINTENANCE_MEMORY, show_default=True, help="Of a build.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw recall and time into this SVG.")
@as_json
@configured
def search(
    settings: Settings,
    vectors: Path | None,
    profile: str | None,
    like: str,
    within: float | None,
    between: float | None,
    posts: int,
    dimensions: int,
    sizes: str | None,
    queries: int,
    category_percent: float,
    kinds: tuple[str, ...],
    maintenance_workers: int,
    maintenance_memory: str,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Time and recall of each kind of index beside the exact scan and numpy, in a database of its own.

    About 3 times the vectors' size is needed as disk and memory; at 425,000 posts it takes half an hour.
    """
    if vectors and profile:
        raise Rejected("--vectors and --profile: one of them")
    if (within is None) != (between is None):
        raise Rejected("--within and --between go together")
    numbers = _sizes(sizes) if sizes else ()
    cosines = (within, between) if within is not None and between is not None else LIKE[like]

    async def run() -> dict[str, Any]:
        if profile:
            async with open_database(settings, "bench") as pool:
                given, origin = await read_profile(pool, profile, queries), {"vectors": profile}
        elif vectors:
            given, origin = read_vectors(vectors, queries), {"vectors": vectors.name}
        else:
            given = synthetic(max(numbers, default=posts), dimensions, queries, within=cosines[0], between=cosines[1])
            origin = {"vectors": f"made, cosines {cosines[0]} within topics, {cosines[1]} between"}
        return await bench_search(
            await database_url(settings),
            given,
            sizes=[one for one in numbers if one < len(given.stored)] + [len(given.stored)],
            kinds=[IndexKind(one) for one in kinds or INDEXES],
            category_percent=category_percent,
            build=Build(maintenance_workers, maintenance_memory),
            about=origin,
            say=_say,
        )

    result = asyncio.run(run())
    if plot:
        draw(result, plot)
    _print(result, as_json=as_json)


@command.command("backfill")
@click.option("--posts", default=20_000, show_default=True, type=click.IntRange(10, 2_000_000), help="In bulk.")
@click.option(
    "--live-posts", default=1000, show_default=True, type=click.IntRange(1, 100_000), help="Beside each index."
)
@click.option("--dimensions", default=1024, show_default=True, type=click.IntRange(8, 2000))
@click.option(
    "--batch", default=1000, show_default=True, type=click.IntRange(1, 100_000), help="Posts of a bulk write."
)
@as_json
@configured
def backfill(settings: Settings, posts: int, live_posts: int, dimensions: int, batch: int, as_json: bool) -> None:
    """Posts a second of the writing side alone, in bulk and beside each kind of index, in a database of its own."""

    async def run() -> dict[str, Any]:
        url = await database_url(settings)
        return await bench_backfill(
            url,
            posts=posts,
            live_posts=live_posts,
            live_writers=settings.worker.index_concurrency,
            dimensions=dimensions,
            batch=batch,
            say=_say,
        )

    _print(asyncio.run(run()), as_json=as_json)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _sizes(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(one) for one in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 100 or max(numbers) > 2_000_000:
        raise Rejected(f"--sizes {text!r}: numbers of posts from 100 to 2,000,000, with commas")
    return numbers


def _print(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result))
        return
    columns = list(dict.fromkeys(column for row in result["rows"] for column in row))
    longest = max(row["p95_ms"] for row in result["rows"]) or 1.0
    table = Table(*columns, "p95", box=None, padding=(0, 2, 0, 0), header_style="dim")
    for row in result["rows"]:
        table.add_row(*(str(row.get(column, "")) for column in columns), bar(row["p95_ms"] / longest))
    console = table_console()
    console.print(table)
    used = ", ".join(f"{name} {value}" for name, value in result["settings"].items())
    console.print(f"{used}; {result['machine']['cores']} cores", style="dim")
    if result["ratio"] is not None:
        console.print(f"ratio {result['ratio']}")
