"""The systems by name, in the order they are shown in."""

import asyncio
from collections.abc import Callable, Sequence

from eval.systems.baselines import Bm25, Dense
from eval.systems.documents import read_documents
from eval.systems.legacy import Legacy
from eval.systems.production import Parts, Production
from eval.systems.question import Followups
from eval.systems.search import SharedSearch
from eval.systems.system import System
from eval.systems.vectors import QueryVectors
from service.settings import Channel
from service.store.topic_search import TopicSearchStore
from service.wiring.answering import Answering

BASELINES = ("bm25", "dense")

_PRODUCTION: dict[str, Callable[[Parts], System]] = {
    "keyword": lambda parts: Production("keyword", (Channel.KEYWORD,), False, parts),
    "vector": lambda parts: Production("vector", (Channel.VECTOR,), False, parts),
    "rrf": lambda parts: Production("rrf", (Channel.VECTOR, Channel.KEYWORD), False, parts),
    "keyword-reranked": lambda parts: Production("keyword-reranked", (Channel.KEYWORD,), True, parts),
    "reranked": lambda parts: Production("reranked", parts.settings.channels, True, parts),
}

EMBEDDING = frozenset({"dense", "vector", "rrf", "reranked"})
"""Those that need the questions' vectors."""

LEGACY = "legacy"

SYSTEMS = (*BASELINES, LEGACY, *_PRODUCTION)
"""bm25 and dense are baselines apart from the service; legacy is its path without the posts pipeline, before reranking;
keyword-reranked is what serves while the embedder is down, reranked what serves as configured."""


async def open_systems(
    at: Answering, names: Sequence[str], vectors: QueryVectors, followups: Followups
) -> tuple[System, ...]:
    """These systems over an open index; the baselines read all of it first, and BM25 takes some seconds to index."""
    max_chars = at.settings.retrieval.question_chars
    parts = Parts(vectors, SharedSearch(at.stages.search), at.stages.reranker, at.settings.retrieval, followups)
    made: dict[str, System] = {name: make(parts) for name, make in _PRODUCTION.items() if name in names}
    if LEGACY in names:
        made[LEGACY] = Legacy(TopicSearchStore(at.pool), at.settings.retrieval, followups)
    if set(names) & set(BASELINES):
        documents = await read_documents(at.pool, vectors.profile)
        if "bm25" in names:
            made["bm25"] = await asyncio.to_thread(Bm25, documents, followups, max_chars)
        if "dense" in names:
            made["dense"] = Dense(documents, vectors, followups, max_chars)
    return tuple(made[name] for name in SYSTEMS if name in made)
