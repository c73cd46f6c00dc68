"""`python -m eval corrections`: moderators' corrections as labelled questions of a dataset."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import click

from eval.new.corrections import FILE, write_corrections
from service.commands.options import configured
from service.errors import Rejected
from service.settings import Settings
from service.store.checked_questions import CheckedQuestion, CheckedQuestionStore
from service.wiring.database import open_database


@click.command("corrections")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Which dataset; by default eval/datasets/HOST in the data folder."
)
@configured
def command(settings: Settings, out: Path | None) -> None:
    """Put the test questions that moderators made of answers into a dataset's questions.yml. Prints the folder.

    What the file has before them stays; a manifest has to be written anew: python -m eval new --manifest FOLDER.
    """
    folder = out or settings.home / "eval" / "datasets" / (urlsplit(settings.forum.base_url).hostname or "forum")
    questions = asyncio.run(_all(settings))
    try:
        count = write_corrections(folder, questions)
    except (OSError, UnicodeDecodeError) as exc:
        raise Rejected(f"{folder / FILE}: can't be written: {exc}") from exc
    click.echo(f"{count:,} corrections in {folder / FILE}", err=True)
    click.echo(folder)


async def _all(settings: Settings) -> list[CheckedQuestion]:
    async with open_database(settings, "eval-corrections") as pool:
        return await CheckedQuestionStore(pool).all()
