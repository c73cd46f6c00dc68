"""The composition root: settings become the adapters behind every port; the only place that knows them all."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from service.answer.pipeline import Stages
from service.discourse.client import DiscourseClient
from service.discourse.names import folded_name
from service.embedded import ensure_running
from service.errors import Misconfigured, Transient
from service.inference.language import LanguageDetector
from service.inference.proved import Embedder, ProvedEmbedder, ProvedReranker
from service.ingest.eligibility import IndexRules
from service.settings import ForumSettings, Settings
from service.store.corpus import CorpusStore
from service.store.flags import FlagStore
from service.store.inbox import InboxStore
from service.store.ledger import LedgerStore
from service.store.migrate import check_schema, migrate
from service.store.pool import Pool, open_pool
from service.store.references import ReferenceStore
from service.store.search import SearchStore
from service.wiring.models import IsUp, open_models

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
    embedder: Embedder
    forum: DiscourseClient
    stages: Stages
    rules: IndexRules
    up: Mapping[str, IsUp]


async def database_url(settings: Settings) -> str:
    """The configured database, or the embedded one of `home`, started if need be."""
    if url := settings.database.url.get_secret_value():
        return url
    return await asyncio.to_thread(ensure_running, settings.home, idle_stop_seconds=IDLE_STOP_SECONDS)


@asynccontextmanager
async def open_database(settings: Settings, name: str) -> AsyncIterator[Pool]:
    """A pool on a database whose schema is ours; raises Misconfigured or Transient.

    The embedded database has nobody else to migrate it: that happens here.
    """
    url = await database_url(settings)
    own = bool(settings.database.url.get_secret_value())
    if not own:
        await migrate(url)
    async with open_pool(url, settings.database, application_name=f"ariane-{name}") as pool:
        if own:
            await check_schema(pool)
        yield pool


@asynccontextmanager
async def open_services(settings: Settings, name: str, *, long_lived: bool = False) -> AsyncIterator[Services]:
    """The services of one process, closed in order at the end. Models load at their first use.

    A `long_lived` process also makes the bundled embedder prove that the index is its own.
    """
    async with (
        open_database(settings, name) as pool,
        _forum(settings.forum) as forum,
        open_models(
            settings.models,
            ReferenceStore(pool),
            source_chars=settings.retrieval.evidence_chars,
            prove_bundled=long_lived,
        ) as models,
    ):
        yield Services(
            settings=settings,
            pool=pool,
            inbox=InboxStore(pool),
            corpus=CorpusStore(pool),
            ledger=LedgerStore(pool),
            flags=FlagStore(pool),
            embedder=models.embedder,
            forum=forum,
            stages=Stages(
                embedder=models.embedder,
                search=SearchStore(pool),
                reranker=models.reranker,
                answerer=models.answerer,
                detect_language=LanguageDetector(),
                settings=settings.retrieval,
                base_url=settings.forum.base_url,
            ),
            rules=IndexRules(_bots(settings.forum), settings.forum.index_banners),
            up={**models.up, "forum": lambda: forum.up},
        )


async def prove_models(services: Services) -> None:
    """Prove the models before the first question needs them; one that is down is proved at its first use."""
    for model in (services.embedder, services.stages.reranker):
        if isinstance(model, ProvedEmbedder | ProvedReranker):
            with suppress(Transient, Misconfigured):  # logged, and told by the metrics and `ariane doctor`
                await model.proving.require()


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
