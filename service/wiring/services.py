"""Everything a process may need: the index, the models, the forum, the ledger and the moderators' switches."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from service.answer.activation import ActivatedFlags
from service.answer.gate.in_use import GateInUse
from service.answer.pipeline import Stages
from service.answer.recall import Legacy
from service.discourse.client import DiscourseClient
from service.discourse.names import folded_name
from service.errors import Misconfigured, Transient
from service.inference.proved import Embedder, ProvedEmbedder, ProvedReranker
from service.ingest.eligibility import IndexRules
from service.settings import ForumSettings, Settings
from service.store.corpus import CorpusStore
from service.store.flags import FlagStore
from service.store.gate_rules import GateRuleStore
from service.store.inbox import InboxStore
from service.store.ledger import LedgerStore
from service.store.pool import Pool
from service.store.threads import ThreadStore
from service.store.topic_search import TopicSearchStore
from service.store.turns import TurnStore
from service.wiring.activation import activated_flags
from service.wiring.answering import open_answering
from service.wiring.embedders import Embedders
from service.wiring.members import rules_now
from service.wiring.models import IsUp


@dataclass(frozen=True, slots=True)
class Services:
    """All of it, ready to use; `embedder` is that of models.embedder."""

    settings: Settings
    pool: Pool
    inbox: InboxStore
    corpus: CorpusStore
    ledger: LedgerStore
    flags: ActivatedFlags
    embedder: Embedder
    forum: DiscourseClient
    stages: Stages
    gate: GateInUse
    turns: TurnStore
    threads: ThreadStore
    rules: IndexRules
    up: Mapping[str, IsUp]
    embedders: Embedders


@asynccontextmanager
async def open_services(settings: Settings, name: str, *, long_lived: bool = False) -> AsyncIterator[Services]:
    """The services of one process, closed in order at the end; `long_lived` as for `open_answering`."""
    async with open_answering(settings, name, long_lived=long_lived) as at, _forum(settings.forum) as forum:
        search = TopicSearchStore(at.pool, timeout_seconds=settings.database.search_timeout_seconds)
        yield Services(
            settings=settings,
            pool=at.pool,
            inbox=InboxStore(at.pool),
            corpus=at.corpus,
            ledger=LedgerStore(at.pool),
            flags=activated_flags(at.pool, settings),
            embedder=at.embedder,
            forum=forum,
            stages=replace(at.stages, legacy=Legacy(search, FlagStore(at.pool))),
            gate=GateInUse(settings.gate, GateRuleStore(at.pool)),
            turns=TurnStore(at.pool),
            threads=ThreadStore(at.pool),
            rules=await rules_now(IndexRules(_bots(settings.forum), settings.forum.index_banners), at.pool),
            up={**at.up, "forum": lambda: forum.up},
            embedders=at.embedders,
        )


async def prove_models(services: Services) -> None:
    """Prove the models before the first question needs them; one that is down is proved at its first use."""
    for model in (*services.embedders.configured, services.stages.reranker):
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
