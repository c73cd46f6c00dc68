"""`ariane backfill`: fill the index from an archive, from the forum, or from its database, with progress."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import Console

from service.commands.options import configured
from service.ingest.archive import read_categories
from service.ingest.backfill import Backfill, backfill_archive
from service.ingest.copied_vectors import Copied
from service.ingest.crawl import ForumCrawl
from service.ingest.forum_database import DatabaseBackfill
from service.ingest.ports import Census
from service.progress import ProgressBar, show_census
from service.settings import Settings
from service.store.crawl import CrawlStore
from service.wiring.crawl import open_crawler, open_forum, source_of
from service.wiring.services import Services, open_services

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("backfill")
@click.option("--archive", type=FILE, help="Topic JSON lines (the shape of /t/ID.json), gzipped or not.")
@click.option("--site", type=FILE, help="With --archive: the forum's site.json, which says what is private.")
@click.option("--public", is_flag=True, help="Instead of --site: every category is public, but those known as private.")
@click.option("--vectors", type=FILE, help="With --archive: vectors made elsewhere (.npz); the worker makes the rest.")
@click.option("--forum", is_flag=True, help="Read the forum itself (forum.base_url), as anyone may.")
@click.option("--as-bot", is_flag=True, help="With --forum: read with the bot's key, where the site wants a login.")
@click.option(
    "--forum-database",
    "database",
    is_flag=False,
    flag_value="",
    metavar="[URL]",
    help="Read the forum's own Postgres and copy its vectors; without URL, at backfill.forum_database_url.",
)
@click.option("--embedding-model-id", "model_id", type=int, help="Which of the forum's embedding models is ours.")
@configured
def command(
    settings: Settings,
    archive: Path | None,
    site: Path | None,
    public: bool,
    vectors: Path | None,
    forum: bool,
    as_bot: bool,
    database: str | None,
    model_id: int | None,
) -> None:
    """Fill the index. An interrupted run goes on where it stopped; running it twice, or beside the service, is safe."""
    if (archive is not None) + forum + (database is not None) != 1:
        raise click.UsageError("say what to read: --archive FILE, --forum or --forum-database")
    if archive is None and (site or public or vectors):
        raise click.UsageError("--site, --public and --vectors belong to --archive")
    if archive is not None and (site is None) != public:
        raise click.UsageError("say which categories the public reads: --site FILE, or --public for all")
    if as_bot and not forum:
        raise click.UsageError("--as-bot belongs to --forum")
    if model_id is not None and database is None:
        raise click.UsageError("--embedding-model-id belongs to --forum-database")
    if archive is not None:
        asyncio.run(_from_archive(settings, archive, site, vectors))
    elif database is not None:
        asyncio.run(_from_database(settings, database, model_id))
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
    counts = (
        (forum.requests, "requests to the forum"),
        (crawl.left_out.unreadable, "posts or topics that can't be read (logged)"),
        (crawl.left_out.unseen_topics, "topics that can't be seen though a list names them"),
        (crawl.left_out.unread_topics, "topics that the forum couldn't give: run it again"),
        (crawl.left_out.skipped_pages, "pages that the forum couldn't give"),
    )
    _show(census, counts, alone=alone)


async def _from_database(settings: Settings, url: str, model_id: int | None) -> None:
    async with open_services(settings, "backfill") as services:
        async with open_forum(settings, services.rules, url) as forum:
            with ProgressBar() as progress:
                at = _backfill(services, progress)
                source = source_of(settings.forum.base_url, services.rules, reader="database")
                backfill = DatabaseBackfill(source, forum, CrawlStore(services.pool), at)
                alone = await backfill.run(model_id=model_id)
        census = await services.corpus.census(services.embedder.profile)
    copied = backfill.copied or Copied()
    counts = (
        *((count, f"left in the forum's database: {reason}") for reason, count in sorted(backfill.refused.items())),
        (backfill.unreadable, "rows that can't be read (logged)"),
        (backfill.withdrawn, "posts taken out: the public doesn't see them any more"),
        (copied.verified, "vectors copied, their texts compared"),
        (copied.unverified, "vectors copied of long texts"),
        (copied.checked, "vectors embedded anew to check them"),
        (copied.other_text, "vectors left: of another text than the post has"),
        (copied.older, "vectors left: older than their post or topic"),
        (copied.malformed, "vectors left: not of our dimensions, or not of unit length"),
    )
    _show(census, counts, alone=alone, note=copied.note)


def _backfill(services: Services, progress: ProgressBar) -> Backfill:
    claims = CrawlStore(services.pool)
    return Backfill(services.corpus, services.corpus, services.embedder, services.rules, progress, claims)


def _show(census: Census, counts: Iterable[tuple[int, str]] = (), *, alone: bool = True, note: str = "") -> None:
    console = Console(stderr=True)
    show_census(census, console)
    for count, what in counts:
        if count:
            console.print(f"  {count:,} {what}", highlight=False, soft_wrap=True)
    if note:
        console.print(f"  {note}", highlight=False, soft_wrap=True)
    if not alone:
        console.print("  another process reads this forum: this one only embedded", highlight=False)
