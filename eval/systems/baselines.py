"""Baselines computed apart from the service: BM25 by bm25s, exact cosine by numpy, and both fused post by post."""

import asyncio
import logging
from collections.abc import Mapping
from time import perf_counter

import bm25s
import numpy as np
from numpy.typing import NDArray

from eval.domain import Case, Hit, Retrieved
from eval.systems.documents import Documents
from eval.systems.question import Followups, asked_text
from eval.systems.system import System
from eval.systems.tasks import Memory
from service.answer.ports import QueryEmbedder
from service.domain import TopicId, Vector

STOP_WORDS = "english"

RRF_K = 60
RRF_DEPTH = 50
"""Reciprocal rank fusion as its authors set it, over the first 50 of each: what is usually compared with."""


class Bm25:
    """bm25s with its defaults (Lucene's BM25, k1 1.5, b 0.75; no stemming) and English stop words, over the posts."""

    name = "bm25"
    switches: Mapping[str, object] = {"method": "lucene", "k1": 1.5, "b": 0.75, "stop_words": STOP_WORDS}

    def __init__(self, documents: Documents, followups: Followups, max_chars: int) -> None:
        """Index the documents: some seconds for tens of thousands."""
        self._documents = documents
        self._followups = followups
        self._max_chars = max_chars
        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it tells of every index at debug level
        self._index = bm25s.BM25()
        tokens = bm25s.tokenize(list(documents.texts), stopwords=STOP_WORDS, show_progress=False)
        self._index.index(tokens, show_progress=False)

    async def rank(self, case: Case) -> Retrieved:
        text = asked_text(case, self._followups, self._max_chars)
        start = perf_counter()
        hits = await asyncio.to_thread(self._best, text, case)
        return Retrieved(case.id, hits, (text,), timings_ms={"bm25": (perf_counter() - start) * 1000})

    def _best(self, text: str, case: Case) -> tuple[Hit, ...]:
        (words,) = bm25s.tokenize([text], stopwords=STOP_WORDS, show_progress=False, return_ids=False)
        known = [word for word in words if word in self._index.vocab_dict]
        if not known:
            return ()
        scores: NDArray[np.float32] = self._index.get_scores(known)
        return self._documents.best(np.where(scores > 0, scores, -np.inf), case)


class Dense:
    """Exact cosine of the question's vector with every stored one, the best passage counting for its post."""

    name = "dense"

    def __init__(self, documents: Documents, embedder: QueryEmbedder, followups: Followups, max_chars: int) -> None:
        self.switches: Mapping[str, object] = {"embedder": embedder.profile.name}
        self._documents = documents
        self._embedder = embedder
        self._followups = followups
        self._max_chars = max_chars
        self._firsts = np.flatnonzero(np.diff(documents.owners, prepend=-1))  # each post's first passage

    async def rank(self, case: Case) -> Retrieved:
        text = asked_text(case, self._followups, self._max_chars)
        vector = await self._embedder.embed_query(text)
        start = perf_counter()
        hits = await asyncio.to_thread(self._best, vector, case)
        cosines = tuple(hit.score for hit in hits)
        return Retrieved(case.id, hits, (text,), cosines=cosines, timings_ms={"dense": (perf_counter() - start) * 1000})

    def _best(self, vector: Vector, case: Case) -> tuple[Hit, ...]:
        best = np.full(len(self._documents.topics), -np.inf, dtype=np.float32)
        if len(self._firsts):
            cosines = self._documents.vectors @ vector
            best[self._documents.owners[self._firsts]] = np.maximum.reduceat(cosines, self._firsts)
        return self._documents.best(best, case)


class Once:
    """A system that ranks each case once, for itself and for what is made of it."""

    def __init__(self, system: System) -> None:
        self.name = system.name
        self.switches = system.switches
        self._system = system
        self._memory = Memory()

    async def rank(self, case: Case) -> Retrieved:
        return await self._memory.once(case.id, lambda: self._system.rank(case))


class Rrf:
    """Reciprocal rank fusion of the posts that `bm25` and `dense` find."""

    name = "rrf"

    def __init__(self, bm25: System, dense: System) -> None:
        self.switches: Mapping[str, object] = {"k": RRF_K, "depth": RRF_DEPTH, "of": [bm25.name, dense.name]}
        self._parts = (bm25, dense)

    async def rank(self, case: Case) -> Retrieved:
        rankings = await asyncio.gather(*(part.rank(case) for part in self._parts))
        sums: dict[tuple[TopicId, int], float] = {}
        for ranking in rankings:
            for rank, hit in enumerate(ranking.hits[:RRF_DEPTH], start=1):
                key = (hit.topic_id, hit.post_number)
                sums[key] = sums.get(key, 0.0) + 1 / (RRF_K + rank)
        hits = tuple(Hit(*key, score) for key, score in sorted(sums.items(), key=lambda item: (-item[1], item[0])))
        return Retrieved(case.id, hits, rankings[0].queries)
