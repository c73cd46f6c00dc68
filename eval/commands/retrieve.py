"""`python -m eval retrieve`: how well each system finds the posts that answer."""

import asyncio
import json
from pathlib import Path

import click

from eval.datasets import Dataset, load_dataset, read_cases
from eval.datasets.folder import LABEL_FILES
from eval.domain import Labels
from eval.retrieval import COMMAND, Asked, retrieve
from eval.runs import Run, open_run, runs_folder
from eval.runs.shown import report
from eval.systems import SYSTEMS, USUAL, Followups
from eval.tables import show_measures
from service.commands.options import configured
from service.errors import Rejected
from service.settings import Settings
from service.show import table_console

LEAD = "topic Hit@5"
ALL = "all"
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


@click.command(COMMAND)
@click.option("--dataset", "folder", required=True, type=FOLDER, help="The dataset's folder.")
@click.option(
    "--labels",
    multiple=True,
    type=click.Choice([str(one) for one in Labels]),
    help="Label files; all there are by default.",
)
@click.option("--systems", multiple=True, type=click.Choice([*SYSTEMS, ALL]), help=f"By default {', '.join(USUAL)}.")
@click.option(
    "--followups",
    type=click.Choice([str(one) for one in Followups]),
    help="Search a follow-up in full (default), by its last message alone, or condensed by the rules.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Of the intervals' resampling; 1 by default.")
@click.option("--resume", metavar="RUN", help="Go on with an interrupted run, by its id or folder.")
@click.option("--fresh", is_flag=True, help="Make the dataset's index anew.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@configured
def command(
    settings: Settings,
    folder: Path,
    labels: tuple[str, ...],
    systems: tuple[str, ...],
    followups: str | None,
    seed: int | None,
    resume: str | None,
    fresh: bool,
    as_json: bool,
) -> None:
    """Rank every labelled question of a dataset by every system, and measure what they find.

    bm25, dense and rrf are baselines, computed apart from the service; legacy is its path by a few rare words; then
    come its channels alone, fused, and reranked, which is what it serves (reranked-keywords: while the embedder is
    down). The dataset's index is made at the first run, in a database of its own.
    """
    if resume and (labels or systems or followups or seed is not None or fresh):
        raise click.UsageError("--resume takes everything else from the run")
    dataset = load_dataset(folder)
    for warning in dataset.warnings:
        click.echo(warning, err=True)
    if resume:
        asked = _as_begun(dataset, open_run(_folder_of(settings, resume)))
    else:
        chosen = tuple(one for one in Labels if one in (labels or dataset.labels))
        asked = Asked(
            dataset=dataset,
            cases=tuple(case for one in chosen for case in read_cases(dataset, one)),
            labels=chosen,
            systems=tuple(one for one in SYSTEMS if ALL in systems or one in (systems or USUAL)),
            followups=Followups(followups or Followups.FULL),
            seed=1 if seed is None else seed,
            fresh=fresh,
        )
    if not asked.cases:
        raise Rejected(f"{folder}: no labelled questions: none of {', '.join(LABEL_FILES.values())} is there")
    outcome = asyncio.run(retrieve(settings, asked))
    if as_json:
        click.echo(json.dumps(report(outcome.run, outcome.measures, seconds=outcome.seconds)))
    else:
        show_measures(table_console(), outcome.measures, lead=LEAD)
    click.echo(", ".join(f"{part} {took} s" for part, took in outcome.seconds.items()), err=True)


def _folder_of(settings: Settings, run: str) -> Path:
    """A run by its folder, or by its id among the runs of this home."""
    return Path(run) if Path(run).is_dir() else runs_folder(settings) / Path(run).name


def _as_begun(dataset: Dataset, run: Run) -> Asked:
    """What the run was asked; raises Rejected when it is another command's, or this program has no such system."""
    record = run.record
    try:
        labels = tuple(map(Labels, record.labels))
        followups = Followups(record.options.get("followups", ""))
    except ValueError as exc:
        raise Rejected(f"{run.folder}: can't be resumed: {exc}") from exc
    if record.command != COMMAND or not set(record.systems) <= set(SYSTEMS):
        raise Rejected(f"{run.folder}: not a run of {COMMAND!r} by systems that this program has")
    return Asked(
        dataset=dataset,
        cases=tuple(case for one in labels for case in read_cases(dataset, one)),
        labels=labels,
        systems=tuple(record.systems),
        followups=followups,
        seed=record.seed,
        resumed=run,
    )
