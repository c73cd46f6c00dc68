"""The zone of an answer: how far the scores of the candidates let us go (spec P9)."""

import math
from collections.abc import Sequence
from itertools import islice
from statistics import fmean, pstdev

from service.domain import Borders, Mode, RerankerProfile, ScoreFeature, Zone, ZoneModel


def zone_of(score: float | None, borders: Borders | RerankerProfile) -> Zone:
    """Below `weak` abstain, below `normal` weak, else normal; no candidate and no number abstain."""
    if score is None or not score >= borders.weak:  # so that NaN abstains
        return Zone.ABSTAIN
    return Zone.NORMAL if score >= borders.normal else Zone.WEAK


def zone_of_list(
    logits: Sequence[float], top_cosine: float | None, profile: RerankerProfile, mode: Mode | None
) -> Zone:
    """The zone of a list, best logit first: by the profile's zone model if it has one, else by the top logit.

    The model was fitted with every part at work: without vectors, by either path, the top logit tells.
    """
    if not logits:
        return Zone.ABSTAIN
    if mode in (Mode.KEYWORD, Mode.LEGACY):
        return zone_of(logits[0], profile.keyword or profile)
    if profile.zone_model is None or top_cosine is None:
        return zone_of(logits[0], profile)
    return zone_of(list_score(logits, top_cosine, profile.zone_model), profile.zone_model.borders)


def zone_without_reranker(top_cosine: float | None, floor: float) -> Zone:
    """Weak at best: a cosine ranks, but the thresholds weren't measured on it; under the model's floor abstain."""
    return Zone.WEAK if top_cosine is not None and top_cosine >= floor else Zone.ABSTAIN


def list_score(logits: Sequence[float], top_cosine: float, model: ZoneModel) -> float:
    """The model's log-odds for logits, best first (one at least); NaN where a logit is no finite number."""
    if not all(map(math.isfinite, logits)):
        return math.nan
    features = sum(weight * score_feature(name, logits, top_cosine) for name, weight in model.features)
    ranks = sum(weight * logit for weight, logit in zip(model.ranks, by_rank(logits, len(model.ranks)), strict=True))
    return model.bias + features + ranks


def score_feature(name: ScoreFeature, logits: Sequence[float], top_cosine: float) -> float:
    """One feature of finite logits, best first (one at least)."""
    match name:
        case ScoreFeature.TOP:
            return logits[0]
        case ScoreFeature.GAP:  # to the second
            return logits[0] - logits[1] if len(logits) > 1 else 0.0
        case ScoreFeature.MEAN_5:
            return fmean(logits[:5])
        case ScoreFeature.SPREAD:  # standard deviation of the list
            return pstdev(logits)
        case ScoreFeature.LOG_SUM:  # how many compare with the best: 0 if none does, log n if all are equal
            return math.log(sum(math.exp(logit - logits[0]) for logit in logits))
        case ScoreFeature.TOP_COSINE:
            return top_cosine


def by_rank(logits: Sequence[float], ranks: int) -> list[float]:
    """The first `ranks` logits; a shorter list (one at least) goes on with its last."""
    return [*islice(logits, ranks), *[logits[-1]] * max(ranks - len(logits), 0)]
