"""`ariane backfill`: fill the index from an archive, with progress."""

import asyncio
from pathlib import Path

import click
from rich.console import Console

from service.commands.options import configured
from service.ingest.archive import read_categories
from service.ingest.backfill import Backfill, backfill_archive
from service.ingest.ports import Census
from service.progress import ProgressBar, show_census
from service.settings import Settings
from service.wiring.services import open_services

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("backfill")
@click.option("--archive", required=True, type=FILE, help="Topic JSON lines (the shape of /t/ID.json), gzipped or not.")
@click.option("--site", type=FILE, help="The forum's site.json: its categories, and which of them are private.")
@click.option("--public", is_flag=True, help="Instead of --site: every category is public, but those known as private.")
@click.option("--vectors", type=FILE, help="Vectors made elsewhere (.npz); what they miss is left to the worker.")
@configured
def command(settings: Settings, archive: Path, site: Path | None, public: bool, vectors: Path | None) -> None:
    """Fill the index from an archive. An interrupted run goes on where it stopped; running it twice is safe."""
    if (site is None) != public:
        raise click.UsageError("say which categories the public reads: --site FILE, or --public for all")
    census = asyncio.run(_backfill(settings, archive, site, vectors))
    show_census(census, Console(stderr=True))


async def _backfill(settings: Settings, archive: Path, site: Path | None, vectors: Path | None) -> Census:
    categories = read_categories(site) if site else None
    async with open_services(settings, "backfill") as services:
        with ProgressBar() as progress:
            at = Backfill(services.corpus, services.corpus, services.embedder, services.rules, progress)
            return await backfill_archive(archive, categories=categories, vectors=vectors, at=at)
