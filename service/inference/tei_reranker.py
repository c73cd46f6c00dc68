"""Scores (question, candidate) pairs with TEI's /rerank."""

import math
from collections.abc import Sequence
from enum import StrEnum

from service.domain import Candidate, RerankerProfile, TextFailure
from service.errors import Rejected, Transient
from service.inference.batching import in_batches
from service.inference.embedding import PROBE
from service.inference.pairs import UNSCORABLE, PairOptions, pairs
from service.inference.tei import TeiServer
from service.telemetry import log

LEAST_PROBABILITY = 1e-6
TIE_SPREAD = 1e-3
MOST_LOGIT = 1e6
"""A cross-encoder's logits have two digits; infinite ones, and integers that no float holds, are no scores."""


class Scores(StrEnum):
    """What the server gives for `raw_scores: true`: logits, or (older deployments) their sigmoid all the same."""

    RAW = "raw"
    SIGMOID = "sigmoid"


class TeiReranker:
    """Reranker of a profile; its thresholds are logits, so no score ever passes through a sigmoid here."""

    def __init__(
        self, server: TeiServer, profile: RerankerProfile, options: PairOptions, scores: Scores = Scores.RAW
    ) -> None:
        self.profile = profile
        self._server = server
        self._options = options
        self._scores = scores

    async def rerank(self, question: str, candidates: Sequence[Candidate]) -> list[float]:
        """Its calls, however small the server's batches are, share the deadline of one."""
        if not candidates:
            return []
        limit = (await self._server.info()).max_batch
        until = self._server.deadline()
        query, texts = pairs(question, candidates, self._options)

        async def call(batch: Sequence[str]) -> list[float | TextFailure]:
            return await self._score(query, batch, suspect=True, until=until)

        async def probe() -> None:
            if isinstance((await self._score(PROBE, [PROBE], suspect=False, until=until))[0], TextFailure):
                raise Transient(f"{self._server.name}: no finite score for any pair")

        scores = await in_batches(texts, call, limit=limit, probe=probe)
        failed = sum(isinstance(score, TextFailure) for score in scores)
        if failed == len(scores):
            raise Rejected(f"{self.profile.name} fails on every pair of this question")
        if failed:
            log.warning("pairs_not_scored", reranker=self.profile.name, pairs=failed)
        return [UNSCORABLE if isinstance(score, TextFailure) else self._logit(score) for score in scores]

    async def _score(
        self, query: str, texts: Sequence[str], *, suspect: bool, until: float
    ) -> list[float | TextFailure]:
        body = {"query": query, "texts": list(texts), "raw_scores": True, "truncate": True, "return_text": False}
        ranks = await self._server.post("/rerank", body, urgent=True, suspect=suspect, until=until)
        return placed(ranks, len(texts))

    def _logit(self, score: float) -> float:
        return logit(score) if self._scores is Scores.SIGMOID else score


def placed(ranks: object, count: int) -> list[float | TextFailure]:
    """The scores in the order of the request; raises Transient unless each text has exactly one."""
    found: dict[int, float | TextFailure] = {}
    for rank in ranks if isinstance(ranks, list) else []:
        match rank:
            case {"index": int(index), "score": int() | float() as score} if _is_score(score):
                found[index] = float(score)
            case {"index": int(index), "score": _}:  # NaN is null in JSON
                found[index] = TextFailure("no finite score")
    if not isinstance(ranks, list) or len(ranks) != count or found.keys() != set(range(count)):
        raise Transient(f"/rerank gave {len(found)} scores for {count} texts")
    return [found[index] for index in range(count)]


def _is_score(value: float) -> bool:
    return not isinstance(value, bool) and -MOST_LOGIT <= value <= MOST_LOGIT


def logit(probability: float) -> float:
    """The logit whose sigmoid a server gave: exact between the clamps 1e-6 and 1 - 1e-6 (13.8 either way).

    Beyond them it grows by at most 1e-3, so that the order of different scores is kept where a sigmoid saturates.
    Raises Rejected outside [0, 1]: that is no sigmoid.
    """
    if not 0.0 <= probability <= 1.0:
        raise Rejected(f"the score {probability:g} is no sigmoid: set this reranker's scores to raw")
    clamped = min(max(probability, LEAST_PROBABILITY), 1.0 - LEAST_PROBABILITY)
    beyond = (probability - clamped) / LEAST_PROBABILITY
    return math.log(clamped / (1.0 - clamped)) + TIE_SPREAD * beyond
