"""Scores whose optimum is known: what the machinery must find, to within its sampling error."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from eval.calibrate.points import Limits, Point, choose
from eval.calibrate.sample import RANKS, Regime, sample, zones_of
from eval.calibrate.study import Study, study
from eval.domain import Case, Golden, Hit, Labels, Retrieved
from service.domain import EmbeddingProfile, Mode, RerankerProfile, TopicId

QUESTIONS = 2_000
SEED = 1
FRESH = 200
"""Samples drawn anew to see how far a border found in one lies from the optimum by chance."""
RERANKER = RerankerProfile("synthetic", weak=-4.0, normal=0.0, provisional=True)
EMBEDDER = EmbeddingProfile("synthetic", 100, 1, dimensions=1, window_tokens=1)
"""Today's borders in this proof: the ones that a cross-encoder of such logits was calibrated to elsewhere."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Top scores: answerable N(2.5, deviation), with the right topic first; not answerable N(-4, deviation).

    `answerable` is their share of the questions.
    """

    deviation: float
    answerable: float

    def wrong(self, border: float) -> float:
        """Wrong answers among the answers at and above a border."""
        right = self.answerable * norm.sf(border, 2.5, self.deviation)
        wrong = (1 - self.answerable) * norm.sf(border, -4.0, self.deviation)
        return float(wrong / (right + wrong))

    def lost(self, border: float) -> float:
        """Right answers under a border."""
        return float(norm.cdf(border, 2.5, self.deviation))


READINGS = (Scores(2.5, 0.8), Scores(2.5, 0.5), Scores(sqrt(2.5), 0.8))
"""N(mean, standard deviation) at four answerable questions in five, as a labelled forum has them, and at one in two;
N(mean, variance) at four in five."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """From the densities: where `choose` would lie given endless questions, and what that costs.

    `least_lost` is what keeping max_wrong alone costs at least, `allowed` whether that keeps max_lost too.
    """

    weak: float
    wrong: float
    lost: float
    least_lost: float
    allowed: bool


def optimum(scores: Scores, limits: Limits) -> Optimum:
    """Solve for the border; the odds of right against wrong rise with the score, so no other rule does better.

    (Neyman and Pearson 1933: both kinds have the same deviation.)
    """
    safe = float(brentq(lambda border: scores.wrong(border) - limits.max_wrong, -20.0, 20.0))
    kept = float(norm.ppf(limits.max_lost, 2.5, scores.deviation))
    allowed = safe <= kept

    def strain(border: float) -> float:
        return scores.wrong(border) / limits.max_wrong - scores.lost(border) / limits.max_lost

    weak = float(brentq(strain, safe, kept)) if allowed else kept
    return Optimum(weak, scores.wrong(weak), scores.lost(weak), scores.lost(safe), allowed)


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """What was found on one sample, and the middle 95 % of the borders found on FRESH ones of the same size."""

    scores: Scores
    optimum: Optimum
    found: Study
    fresh_low: float
    fresh_high: float


def proof(scores: Scores, limits: Limits, *, seed: int = SEED, questions: int = QUESTIONS, repeats: int = 2) -> Proof:
    """Draw lists, run the whole machinery over them, and lay it beside the optimum."""
    cases, retrieved = lists(scores, questions=questions, seed=seed)
    judged, left_out = sample(cases, retrieved, Regime.RERANKED, zones_of(RERANKER, EMBEDDER), max_sources=6)
    found = study(judged, left_out, limits, seed=seed, repeats=repeats)
    borders = [_point(scores, limits, questions, seed + 1 + other).borders.weak for other in range(FRESH)]
    low, high = np.quantile(borders, [0.025, 0.975])
    return Proof(scores, optimum(scores, limits), found, float(low), float(high))


def lists(scores: Scores, *, questions: int, seed: int) -> tuple[list[Case], dict[str, Retrieved]]:
    """Cases, each with a topic of its own, and lists of 25 whose lower scores tell nothing."""
    answerable, tops, falls = _drawn(scores, questions, seed)
    cases, retrieved = [], {}
    for at in range(questions):
        name, topic = f"synthetic-{at}", TopicId(at + 1)
        golden = (Golden(topic, 1),) if answerable[at] else ()
        kind = "answerable" if answerable[at] else "unanswerable"
        cases.append(Case(name, Labels.QUESTIONS, kind, "en", "?", golden, cluster=str(at)))
        logits = [float(logit) for logit in tops[at] - falls[at]]
        topics = [topic if not rank else TopicId(questions + rank) for rank in range(RANKS)]
        retrieved[name] = Retrieved(
            name,
            tuple(Hit(topic_id, 1, logit) for topic_id, logit in zip(topics, logits, strict=True)),
            mode=Mode.RERANKED.value,
            logits=tuple(logits),
            cosines=(0.5,) * RANKS,
        )
    return cases, retrieved


def _drawn(scores: Scores, questions: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    answerable = np.arange(questions) < round(scores.answerable * questions)
    tops = rng.normal(np.where(answerable, 2.5, -4.0), scores.deviation)
    falls = np.sort(abs(rng.normal(0.0, 2.0, size=(questions, RANKS))), axis=1)
    falls[:, 0] = 0.0
    return answerable, tops, falls


def _point(scores: Scores, limits: Limits, questions: int, seed: int) -> Point:
    answerable, tops, _ = _drawn(scores, questions, seed)
    return choose(tops, answerable, limits)
