"""Reading the forum itself by settings: its REST or its database, and under which terms its progress is kept."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.discourse.budget import Budget, Clock, Sleep
from service.discourse.calls import ForumCalls
from service.discourse.crawl import ForumCrawler
from service.discourse.database import ForumDatabase, open_forum_database
from service.errors import Misconfigured
from service.ingest.eligibility import IndexRules
from service.settings import Settings


@asynccontextmanager
async def open_crawler(
    settings: Settings, *, as_bot: bool, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep
) -> AsyncIterator[ForumCrawler]:
    """A reader of the configured forum, as anyone may or with the bot's key, within its share of the budget."""
    forum, share = settings.forum, settings.backfill
    per_minute = share.requests_per_minute if as_bot else share.anonymous_requests_per_minute
    budget = Budget(per_minute, clock=clock, sleep=sleep)
    calls = ForumCalls(
        forum.base_url,
        api_key=forum.api_key.get_secret_value(),
        bot_username=forum.bot_username,
        timeout_seconds=forum.timeout_seconds,
        attempts=1,
        budget=budget,
    )
    async with calls:
        yield ForumCrawler(calls, budget, as_bot=as_bot)


@asynccontextmanager
async def open_forum(settings: Settings, rules: IndexRules, url: str) -> AsyncIterator[ForumDatabase]:
    """The forum's own database at this address, or at the configured one where it is empty."""
    url = url or settings.backfill.forum_database_url.get_secret_value()
    if not url:
        raise Misconfigured("backfill.forum_database_url is not set: the address of the forum's own Postgres")
    opened = open_forum_database(
        url,
        bots=rules.bots,
        banners=rules.index_banners,
        opted_out=rules.opted_out,
        statement_timeout_seconds=settings.backfill.statement_timeout_seconds,
        connect_timeout_seconds=settings.database.connect_timeout_seconds,
    )
    async with opened as forum:
        yield forum


def source_of(place: str, rules: IndexRules, *, reader: str) -> str:
    """The name under which progress is kept: of another forum, or on other terms, it is read from its beginning."""
    terms = repr((place, reader, sorted(rules.bots), rules.index_banners))
    return hashlib.sha256(terms.encode()).hexdigest()
