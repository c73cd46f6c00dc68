"""`python -m eval new`: draft a dataset from a forum's own index, or write a dataset's manifest."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import click

from eval.datasets import load_dataset
from eval.datasets.folder import LABEL_FILES
from eval.domain import Labels
from eval.new.asked import MAX_QUESTIONS, read_questions
from eval.new.check import faults_of
from eval.new.from_forum import Made, Order, check_free, draft_dataset
from eval.new.manifest import write_manifest
from service.commands.options import configured
from service.errors import Rejected
from service.inference.profile_files import load_profiles
from service.progress import ProgressBar
from service.settings import Settings
from service.wiring.answering import open_answering

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


@click.command("new")
@click.option("--from-forum", is_flag=True, help="Draft a dataset from the configured index.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Where to; by default eval/datasets/HOST in the data folder."
)
@click.option("--archive", type=FILE, help="Topic JSON lines of this forum, for links and accepted answers.")
@click.option("--questions", type=FILE, help="Questions to judge: text, one a line, or a YAML list.")
@click.option(
    "--titles",
    type=click.IntRange(1, MAX_QUESTIONS),
    default=50,
    show_default=True,
    help="Else: so many titles of topics.",
)
@click.option(
    "--depth", type=click.IntRange(1, 50), default=10, show_default=True, help="Posts of each search to be judged."
)
@click.option("--manifest", type=FOLDER, metavar="FOLDER", help="Check this dataset and write its manifest anew.")
@configured
def command(
    settings: Settings,
    from_forum: bool,
    out: Path | None,
    archive: Path | None,
    questions: Path | None,
    titles: int,
    depth: int,
    manifest: Path | None,
) -> None:
    """Make a dataset of your own forum; its questions are then judged by hand. Prints the folder."""
    if from_forum == (manifest is not None):
        raise click.UsageError("say what to do: --from-forum, or --manifest FOLDER")
    if manifest is not None:
        _write(manifest, settings)
        return
    wanted = read_questions(questions) if questions else []
    folder = out or settings.home / "eval" / "datasets" / (urlsplit(settings.forum.base_url).hostname or "forum")
    check_free(folder)
    made = asyncio.run(_draft(settings, Order(folder, archive, wanted, titles, depth)))
    _tell(made, folder, archive)
    click.echo(folder)


def _write(folder: Path, settings: Settings) -> None:
    """Write the manifest, then say what is wrong in the folder; raises Rejected where something is."""
    known = load_profiles(settings.models.profiles_file).embedders.values()
    written = write_manifest(folder)
    faults = list(faults_of(load_dataset(folder), [one.profile for one in known]))
    for fault in faults[1:]:
        click.echo(fault, err=True)
    if faults:
        raise Rejected(faults[0])
    click.echo(f"{written.name}: {', '.join(written.files)}", err=True)
    click.echo(folder)


async def _draft(settings: Settings, order: Order) -> Made:
    async with open_answering(settings, "eval-new") as at:
        with ProgressBar() as progress:
            return await draft_dataset(at, order, progress)


def _tell(made: Made, folder: Path, archive: Path | None) -> None:
    lines = [
        f"{made.posts:,} public posts, {made.vectors:,} vectors, {made.links:,} links, "
        f"{made.accepted:,} accepted answers; languages: {', '.join(made.manifest.languages)}",
        *(f"went without: {note}" for note in made.notes),
    ]
    if made.vectors and made.vectors < made.posts:
        lines.append(f"{made.posts - made.vectors:,} posts have no vector yet: run the worker, then draft again")
    if archive is None:
        lines.append("links are those written out in the text, accepted answers are unknown: --archive FILE has both")
    draft = folder / LABEL_FILES[Labels.QUESTIONS]
    lines.append(f"now judge the {made.questions:,} questions in {draft}: its head says how")
    for line in lines:
        click.echo(line, err=True)
