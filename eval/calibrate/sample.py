"""Judged lists: each question's scores, whether the forum answers it, and whether what would be shown does."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from eval.domain import ANSWERS, Case, Hit, Retrieved
from eval.statistics.clusters import Codes, Floats, codes
from service.answer.zones import by_rank, score_feature, zone_of_list, zone_without_reranker
from service.domain import EmbeddingProfile, Mode, RerankerProfile, ScoreFeature, TopicId, Zone
from service.errors import Rejected

FEATURES = tuple(ScoreFeature)
"""Fixed before any was tried: six that read height, lead, breadth and shape of a list (service.answer.zones)."""
RANKS = 25
RIGHT = "right"
NOT_FOUND = "not found"

Truths = NDArray[np.bool_]
ZoneNow = Callable[[Retrieved], Zone]
"""The zone that the service gives a list, with the profiles that are in use."""


class Regime(StrEnum):
    """What is at work when a zone is chosen, in service's words for it."""

    RERANKED = Mode.RERANKED.value
    KEYWORD = Mode.KEYWORD.value
    RERANKER_DOWN = Mode.RERANKER_DOWN.value


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The questions of one regime, all arrays in the same order.

    `right`: a topic that answers (grade 2) is among the topics that would be shown. `groups` tells them apart: right,
    not found (the forum answers it, the list doesn't), or the slice of a question that the forum doesn't answer. `top`
    is the score that the borders lie on, minus infinity for an empty list; such a list has zeros for `features`, shape
    (questions, FEATURES), and `ranks`, (questions, RANKS). Where only cosines are there, those two have no columns.
    `zones` are those that today's profile gives.
    """

    regime: Regime
    ids: tuple[str, ...]
    clusters: Codes
    groups: tuple[str, ...]
    answerable: Truths
    right: Truths
    top: Floats
    cosine: Floats
    features: Floats
    ranks: Floats
    zones: tuple[Zone, ...]

    @property
    def listed(self) -> Truths:
        return np.isfinite(self.top)


def sample(
    cases: Sequence[Case], retrieved: Mapping[str, Retrieved], regime: Regime, zone_now: ZoneNow, *, max_sources: int
) -> tuple[Sample, int]:
    """The cases whose `candidates` were found in this regime, and how many were not: another part was down.

    Raises Rejected where no case was.
    """
    known = [(case, retrieved[case.id]) for case in cases if case.id in retrieved]
    kept = [(case, found) for case, found in known if _fits(found, regime)]
    if not kept:
        raise Rejected(f"calibrate: no question was searched in mode {regime}")
    right = [answers(case, found.hits, max_sources) for case, found in kept]
    lists = [_logits(found) for _, found in kept]
    cosines = [_top_cosine(found) for _, found in kept]
    down = regime is Regime.RERANKER_DOWN
    tops = cosines if down else [scores[0] if scores else None for scores in lists]
    names = () if down else tuple(one for one in FEATURES if one is not ScoreFeature.TOP_COSINE or _has_cosines(regime))
    return (
        Sample(
            regime=regime,
            ids=tuple(case.id for case, _ in kept),
            clusters=codes([case.cluster for case, _ in kept]),
            groups=tuple(_group(case, is_right) for (case, _), is_right in zip(kept, right, strict=True)),
            answerable=np.array([case.answerable for case, _ in kept]),
            right=np.array(right),
            top=_or_nothing(tops),
            cosine=_or_nothing(cosines),
            features=np.array(
                [
                    [score_feature(name, scores, cosine or 0.0) if scores else 0.0 for name in names]
                    for scores, cosine in zip(lists, cosines, strict=True)
                ]
            ).reshape(len(kept), len(names)),
            ranks=np.array([by_rank(scores or [0.0], 0 if down else RANKS) for scores in lists]),
            zones=tuple(zone_now(found) for _, found in kept),
        ),
        len(cases) - len(kept),
    )


def candidates(found: Retrieved) -> Retrieved:
    """The posts that the reranker read, of a list that goes on after them."""
    read = [at for at, logit in enumerate(found.logits) if logit is not None]
    return _taken(found, read)


def without_reranker(found: Retrieved) -> Retrieved:
    """The same candidates as they are without a reranker: ordered by cosine, as service.answer.rerank does."""
    order = sorted(range(len(found.hits)), key=lambda at: -_known(found.cosines[at]))
    return replace(_taken(found, order), mode=Mode.RERANKER_DOWN.value, logits=(None,) * len(order))


def zones_of(reranker: RerankerProfile, embedder: EmbeddingProfile) -> ZoneNow:
    """The service's own rule (service.answer.zones) with these profiles."""

    def zone_now(found: Retrieved) -> Zone:
        if found.mode == Mode.RERANKER_DOWN:
            return zone_without_reranker(_top_cosine(found), embedder.cosine_floor)
        return zone_of_list(_logits(found), _top_cosine(found), reranker, Mode(found.mode))

    return zone_now


def answers(case: Case, hits: Iterable[Hit], max_sources: int) -> bool:
    """Whether a topic with a golden that answers is among the first `max_sources` topics: those that would be shown."""
    shown: dict[TopicId, None] = dict.fromkeys(hit.topic_id for hit in hits)
    answering = {golden.topic_id for golden in case.golden if golden.grade >= ANSWERS}
    return not answering.isdisjoint(list(shown)[:max_sources])


def _taken(found: Retrieved, order: Sequence[int]) -> Retrieved:
    return replace(
        found,
        hits=tuple(found.hits[at] for at in order),
        logits=tuple(found.logits[at] for at in order),
        cosines=tuple(found.cosines[at] for at in order),
    )


def _fits(found: Retrieved, regime: Regime) -> bool:
    return found.mode == regime and (not found.hits or not _has_cosines(regime) or _top_cosine(found) is not None)


def _has_cosines(regime: Regime) -> bool:
    return regime is not Regime.KEYWORD


def _logits(found: Retrieved) -> list[float]:
    return sorted((logit for logit in found.logits if logit is not None), reverse=True)


def _top_cosine(found: Retrieved) -> float | None:
    return max((cosine for cosine in found.cosines if cosine is not None), default=None)


def _known(score: float | None) -> float:
    return float("-inf") if score is None else score


def _or_nothing(scores: Iterable[float | None]) -> Floats:
    return np.array([_known(score) for score in scores])


def _group(case: Case, right: bool) -> str:
    if case.answerable:
        return RIGHT if right else NOT_FOUND
    return case.slice
