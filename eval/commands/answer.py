"""`python -m eval answer`: the whole pipeline on labelled questions, nothing posted."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import click

from eval.domain import Labels
from service.commands.options import configured
from service.settings import Settings


@click.command("answer")
@click.option(
    "--dataset", "folder", required=True, type=click.Path(path_type=Path, file_okay=False), help="A dataset folder."
)
@click.option("--labels", type=click.Choice([str(one) for one in Labels]), default="questions", show_default=True)
@click.option("--limit", type=click.IntRange(min=1), help="Ask only the first so many.")
@click.option("--resume", metavar="RUN", help="Go on with an interrupted run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@configured
def command(
    settings: Settings, folder: Path, labels: str, limit: int | None, resume: str | None, as_json: bool
) -> None:
    """Answer the questions of a dataset with the configured models, as members would be answered.

    Each answer, its sources and its draft are kept in a run. A question during which a server failed counts as failed.
    """
    asyncio.run(_answer(settings, folder, Labels(labels), limit, resume, as_json=as_json))


async def _answer(
    settings: Settings, folder: Path, labels: Labels, limit: int | None, resume: str | None, *, as_json: bool
) -> None:
    from eval.datasets import load_dataset, read_cases
    from eval.endtoend.recording import recording
    from eval.endtoend.replies import SYSTEM, answer_all
    from eval.endtoend.results import show_measures, warn
    from eval.index import open_index
    from eval.measures import measured_answers
    from eval.runs.shown import report
    from service.progress import ProgressBar

    dataset = load_dataset(folder)
    warn(dataset.warnings)
    cases = read_cases(dataset, labels)[:limit]
    run = recording(
        settings,
        dataset,
        command="answer",
        labels=labels,
        systems={SYSTEM: {}},
        options={"limit": limit},
        resume=resume,
        now=datetime.now(UTC),
    )
    warn([f"run {run.record.id}: if it is interrupted, go on with --resume {run.record.id}"])
    with run, ProgressBar() as progress:
        async with open_index(settings, dataset, progress=progress, say=lambda line: warn([line])) as at:
            at_once = settings.worker.answer_concurrency
            answered = await answer_all(run, cases, labels, at.stages, at_once=at_once, progress=progress)
        measures = measured_answers(cases, {SYSTEM: answered}, base_url=settings.forum.base_url, seed=run.record.seed)
        run.finish(measures, now=datetime.now(UTC))
    if as_json:
        click.echo(json.dumps(report(run, measures), ensure_ascii=False))
    else:
        show_measures(run, measures)
