"""`python -m eval report`: a run as one page to read."""

from pathlib import Path

import click

from service.commands.options import configured
from service.errors import Rejected
from service.settings import Settings

LANGUAGES = ("en", "fr")
FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command("report")
@click.argument("name", metavar="RUN")
@click.option("--against", metavar="RUN", help="The run to compare with; the last one like it by default.")
@click.option("--dataset", type=FOLDER, help="The run's dataset, if it moved.")
@click.option("--out", type=FOLDER, help="Where to write report.html and report.md; the run's folder by default.")
@click.option("--lang", type=click.Choice(LANGUAGES), default="en", show_default=True, help="The language of the page.")
@configured
def command(
    settings: Settings, name: str, against: str | None, dataset: Path | None, out: Path | None, lang: str
) -> None:
    """Write a finished run as one page for people, in HTML and in Markdown, and print where.

    RUN is its folder, its id, or its command (the newest of it). The page tells the verdict, every figure with its
    interval, what the scores tell, how long it takes, what changed since the last run, and what went worst. It needs no
    other file and no network.
    """
    from eval.datasets import load_dataset
    from eval.report.gather import finished_measures, gather
    from eval.report.previous import last_before
    from eval.report.render import PAGES
    from eval.runs.finding import dataset_folder, find_run
    from service.progress import ProgressBar

    run = find_run(settings, name)
    finished_measures(run)
    before = find_run(settings, against) if against else last_before(run)
    if against and before and before.record.finished is None:
        raise Rejected(f"{before.folder}: this run is not finished: nothing can be compared with it")
    labelled = load_dataset(dataset or dataset_folder(run))
    for warning in labelled.warnings:
        click.echo(warning, err=True)
    with ProgressBar() as progress:
        report = gather(run, before, labelled, settings, progress)
    folder = out or run.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, written in PAGES.items():
            (folder / file).write_text(written(report, lang), encoding="utf-8")
            click.echo(folder / file)
    except OSError as exc:
        raise Rejected(f"{folder}: can't be written: {exc.strerror}") from exc
