"""What the scores of a retrieve run tell: the zones it gave, risk-coverage, reliability; by calibrate's functions."""

from collections.abc import Mapping, Sequence

from eval.calibrate.draws import draw
from eval.calibrate.effect import effect, place_as_now
from eval.calibrate.folds import deal, held_out
from eval.calibrate.reliability import reliability
from eval.calibrate.risk import curve
from eval.calibrate.sample import Regime, candidates, sample
from eval.domain import Case, Retrieved
from eval.report.content import Scores
from service.domain import Zone

REPEATS = 5
"""Of the deals to folds: one number a question is fitted here, which moves little from deal to deal."""


def has_scores(retrieved: Mapping[str, Retrieved]) -> bool:
    """Whether the system divides its lists into zones, by a reranker's logits."""
    return any(one.zone and any(logit is not None for logit in one.logits) for one in retrieved.values())


def scores_of(
    labels: str, cases: Sequence[Case], retrieved: Mapping[str, Retrieved], *, max_sources: int, seed: int
) -> Scores:
    """Everything over the lists that all parts took part in; raises Rejected where they are too few or all alike."""
    read = {case: candidates(one) for case, one in retrieved.items()}
    judged, _ = sample(cases, read, Regime.RERANKED, lambda found: Zone(found.zone), max_sources=max_sources)
    folds = deal(judged, seed=seed, repeats=REPEATS)
    draws = draw(judged.clusters, seed=seed)
    alone = held_out(judged.top[:, None], judged.right, judged.listed, folds)
    return Scores(
        labels=labels,
        n=len(judged.ids),
        now=effect(judged, place_as_now(judged), draws),
        risk=curve(judged.top[None, :], judged.right, draws),
        reliability=reliability(alone, judged.right),
    )
