"""`ariane backfill`: fill the index from an archive, from the forum, or from its database, with progress."""

import asyncio
from pathlib import Path

import click
from rich.console import Console

from service.commands.options import configured
from service.ingest.archive import read_categories
from service.ingest.backfill import Backfill, backfill_archive
from service.ingest.crawl import Crawled, ForumCrawl
from service.ingest.ports import Census
from service.progress import ProgressBar, show_census
from service.settings import Settings
from service.store.crawl import CrawlStore
from service.wiring.crawl import open_crawler, source_of
from service.wiring.services import Services, open_services

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("backfill")
@click.option("--archive", type=FILE, help="Topic JSON lines (the shape of /t/ID.json), gzipped or not.")
@click.option("--site", type=FILE, help="With --archive: the forum's site.json, which says what is private.")
@click.option("--public", is_flag=True, help="Instead of --site: every category is public, but those known as private.")
@click.option("--vectors", type=FILE, help="With --archive: vectors made elsewhere (.npz); the worker makes the rest.")
@click.option("--forum", is_flag=True, help="Read the forum itself (forum.base_url), as anyone may.")
@click.option("--as-bot", is_flag=True, help="With --forum: read with the bot's key, where the site wants a login.")
@configured
def command(
    settings: Settings,
    archive: Path | None,
    site: Path | None,
    public: bool,
    vectors: Path | None,
    forum: bool,
    as_bot: bool,
) -> None:
    """Fill the index. An interrupted run goes on where it stopped; running it twice, or beside the service, is safe."""
    if (archive is not None) + forum != 1:
        raise click.UsageError("say what to read: --archive FILE, or --forum")
    if archive is None and (site or public or vectors):
        raise click.UsageError("--site, --public and --vectors belong to --archive")
    if archive is not None and (site is None) != public:
        raise click.UsageError("say which categories the public reads: --site FILE, or --public for all")
    if as_bot and not forum:
        raise click.UsageError("--as-bot belongs to --forum")
    if archive is not None:
        asyncio.run(_from_archive(settings, archive, site, vectors))
    else:
        asyncio.run(_from_forum(settings, as_bot=as_bot))


async def _from_archive(settings: Settings, archive: Path, site: Path | None, vectors: Path | None) -> None:
    categories = read_categories(site) if site else None
    async with open_services(settings, "backfill") as services:
        with ProgressBar() as progress:
            at = _backfill(services, progress)
            census = await backfill_archive(archive, categories=categories, vectors=vectors, at=at)
    _show(census)


async def _from_forum(settings: Settings, *, as_bot: bool) -> None:
    async with open_services(settings, "backfill") as services, open_crawler(settings, as_bot=as_bot) as forum:
        with ProgressBar() as progress:
            at = _backfill(services, progress)
            reader = settings.forum.bot_username if as_bot else "anyone"
            source = source_of(settings.forum.base_url, services.rules, reader=reader)
            crawl = ForumCrawl(source, forum, CrawlStore(services.pool), at)
            alone = await crawl.run()
        census = await services.corpus.census(services.embedder.profile)
    _show(census, crawl.left_out, requests=forum.requests, alone=alone)


def _backfill(services: Services, progress: ProgressBar) -> Backfill:
    claims = CrawlStore(services.pool)
    return Backfill(services.corpus, services.corpus, services.embedder, services.rules, progress, claims)


def _show(census: Census, left_out: Crawled | None = None, *, requests: int = 0, alone: bool = True) -> None:
    console = Console(stderr=True)
    show_census(census, console)
    if not alone:
        console.print("  another process reads this forum: this one only embedded", highlight=False)
    if left_out is None:
        return
    for count, what in (
        (requests, "requests to the forum"),
        (left_out.unreadable, "posts or topics that can't be read (logged)"),
        (left_out.unseen_topics, "topics that can't be seen though a list names them"),
        (left_out.skipped_pages, "pages that the forum couldn't give"),
    ):
        if count:
            console.print(f"  {count:,} {what}", highlight=False)
