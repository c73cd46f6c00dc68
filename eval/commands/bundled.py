"""`python -m eval bundled`: fit the bundled reranker on datasets, and say what it is worth on unseen questions."""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.table import Table

from eval.bundled.asked import asked
from eval.bundled.fit import fitted
from eval.bundled.lists import gathered
from eval.bundled.measure import Abstained, Row, abstained, hit_rows, unseen
from eval.datasets import load_dataset
from service.commands.options import configured
from service.inference.pair_features import LIST_FEATURES, PAIR_FEATURES
from service.progress import ProgressBar
from service.settings import Settings
from service.show import table_console

THRESHOLDS = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


@click.command("bundled")
@click.option("--dataset", "folders", multiple=True, required=True, type=FOLDER, help="Folders; the first counts most.")
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True, help="Of the five folds.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=1, show_default=True, help="Of draws and folds.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@configured
def command(settings: Settings, folders: tuple[Path, ...], repeats: int, seed: int, as_json: bool) -> None:
    """Fit the weights of the bundled reranker on all labelled questions of these datasets.

    Each forum is also asked questions about the others, and small talk. Prints the weights to be put into
    service/inference/bundled_reranker.py, topic Hit@5 of questions whose topics a fit hasn't seen, and how many such
    questions each threshold of the top logit lets go.
    """
    datasets = [load_dataset(folder) for folder in folders]
    with ProgressBar() as progress:
        lists = [
            one for forum in asked(datasets, seed=seed) for one in asyncio.run(gathered(settings, forum, progress))
        ]
        first = datasets[0].name
        found = unseen(lists, first=first, repeats=repeats, seed=seed, progress=progress)
    fit = fitted(lists, first=first)
    weights = {
        "pairs": dict(zip(PAIR_FEATURES, map(_short, fit.pairs), strict=True)),
        "list": dict(zip(LIST_FEATURES, map(_short, fit.whole.weights), strict=True)),
        "bias": round(fit.whole.bias, 2),
    }
    hits, zones = hit_rows(lists, found, seed=seed), abstained(lists, found, THRESHOLDS)
    if as_json:
        report = {"lists": len(lists), "weights": weights, "hits": [asdict(row) for row in hits]}
        click.echo(json.dumps(report | {"thresholds": THRESHOLDS, "abstained": [asdict(row) for row in zones]}))
        return
    click.echo(f"{len(lists)} lists")
    click.echo(json.dumps(weights, indent=1))
    console = table_console()
    console.print(_hits(hits))
    console.print(_zones(zones))


def _hits(rows: list[Row]) -> Table:
    table = Table("dataset", "labels", "system", "n", "topic Hit@5", "reranked gains", "p")
    for row in rows:
        value, gain = row.value, row.gain
        table.add_row(
            row.dataset,
            row.labels,
            row.system,
            str(row.n),
            f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]",
            f"{gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]" if gain else "",
            f"{row.p:.4f}" if row.p is not None else "",
        )
    return table


def _zones(rows: list[Abstained]) -> Table:
    table = Table("dataset", "below the threshold", "n", *(f"{border:+.2f}" for border in THRESHOLDS))
    for row in rows:
        table.add_row(row.dataset, row.part, str(row.n), *(f"{share:.2f}" for share in row.shares))
    return table


def _short(weight: float) -> float:
    return float(f"{weight:.3g}")
