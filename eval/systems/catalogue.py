"""The systems by name, in the order they are shown in."""

import asyncio
from collections.abc import Sequence

from eval.datasets.parsing import one_line
from eval.systems.baselines import Bm25, Dense, Once, Rrf
from eval.systems.documents import read_documents
from eval.systems.legacy import Legacy
from eval.systems.production import Parts, Production
from eval.systems.question import Followups
from eval.systems.search import SharedSearch
from eval.systems.system import System
from eval.systems.vectors import QueryVectors
from service.answer.retrieve import BY_VECTOR
from service.errors import Rejected
from service.settings import Channel
from service.store.search import SearchStore
from service.store.topic_search import TopicSearchStore
from service.wiring.answering import Answering

BASELINES = ("bm25", "dense", "rrf")
LEGACY = "legacy"
CHANNELS = tuple(str(channel) for channel in Channel)
FUSED = "fused"
RERANKED = "reranked"
EMBEDDER_DOWN = "reranked-keywords"

SYSTEMS = (*BASELINES, LEGACY, *CHANNELS, FUSED, EMBEDDER_DOWN, RERANKED)
"""Baselines apart from the service; its legacy path, before reranking; each of its channels alone; the configured ones
fused; what it serves while the embedder is down; what it serves."""

USUAL = (*BASELINES, LEGACY, FUSED, RERANKED)
"""What is measured unless more is asked for: each channel alone takes as long again."""

EMBEDDING = frozenset({"dense", "rrf", FUSED, RERANKED, *map(str, BY_VECTOR)})
"""Those that need the questions' vectors."""


async def open_systems(
    at: Answering, names: Sequence[str], vectors: QueryVectors, followups: Followups
) -> tuple[System, ...]:
    """These systems over an open index; raises Rejected where a name is none of SYSTEMS.

    The baselines read all of the index first, and BM25 takes some seconds to index.
    """
    if unknown := [name for name in names if name not in SYSTEMS]:
        raise Rejected(f"no system is called {', '.join(map(one_line, unknown))}: there are {', '.join(SYSTEMS)}")
    settings = at.settings.retrieval
    parts = Parts(vectors, SharedSearch(SearchStore(at.pool)), at.stages.reranker, settings, followups)
    by_words = tuple(channel for channel in settings.channels if channel not in BY_VECTOR)
    made: dict[str, System] = {
        LEGACY: Legacy(TopicSearchStore(at.pool), settings, followups),
        **{str(channel): Production(str(channel), (channel,), False, parts) for channel in Channel},
        FUSED: Production(FUSED, settings.channels, False, parts),
        EMBEDDER_DOWN: Production(EMBEDDER_DOWN, by_words, True, parts),
        RERANKED: Production(RERANKED, settings.channels, True, parts),
    }
    if set(names) & set(BASELINES):
        documents = await read_documents(at.pool, vectors.profile)
        bm25 = Once(await asyncio.to_thread(Bm25, documents, followups, settings.question_chars))
        dense = Once(Dense(documents, vectors, followups, settings.question_chars))
        made |= {"bm25": bm25, "dense": dense, "rrf": Rrf(bm25, dense)}
    return tuple(made[name] for name in SYSTEMS if name in names)
