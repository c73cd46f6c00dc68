"""One regime from its judged lists to an operating point: what scores tell, what borders cost, whether a model pays."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from eval.calibrate.auc import Separation, separations
from eval.calibrate.draws import Draws, draw
from eval.calibrate.effect import Effect, effect, place, place_as_now, place_by_model, place_by_top
from eval.calibrate.folds import REPEATS, Folds, deal, held_out
from eval.calibrate.points import Limits, Point, choose
from eval.calibrate.regression import Linear, fit
from eval.calibrate.reliability import Reliability, reliability
from eval.calibrate.risk import Curve, Difference, curve, differences
from eval.calibrate.sample import RANKS, Regime, Sample
from eval.statistics.clusters import Floats

TOP = "top score"
COSINE = "top cosine"
FEATURES = "features"
ALL_SCORES = "all scores"

NESTED_REPEATS = 5
"""Of those whose borders are chosen on scores held out within each fit: five times the fits."""


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A regression over a whole list against the single threshold: `scores` held out, `fitted` on all questions.

    `gains` are paired, the mean over all coverages first; `point` lies on its log-odds.
    """

    name: str
    fitted: Linear
    scores: Floats
    curve: Curve
    gains: tuple[Difference, ...]
    reliability: Reliability
    point: Point
    test: Effect

    @property
    def pays(self) -> bool:
        """Clearly better: fewer wrong answers over all coverages, the whole interval below zero."""
        return self.gains[0].difference.high < 0


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """`now` is the effect of today's profile, `seen` that of the chosen borders on the very questions they were chosen
    on, `test` that of borders chosen without them."""

    sample: Sample
    left_out: int
    separations: tuple[Separation, ...]
    curve: Curve
    reliability: Reliability
    point: Point
    now: Effect
    seen: Effect
    test: Effect
    models: tuple[Model, ...]

    @property
    def best(self) -> Model | None:
        """The model that a profile should carry, if any: in the full regime only, and only one that pays."""
        paying = [model for model in self.models if model.pays and self.sample.regime is Regime.RERANKED]
        return min(paying, key=lambda model: model.gains[0].model.value, default=None)


def study(
    judged: Sample,
    left_out: int,
    limits: Limits,
    *,
    seed: int,
    repeats: int = REPEATS,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Study:
    """Work through one regime. Raises Rejected where too few questions were right, or too few were not."""
    folds = deal(judged, seed=seed, repeats=repeats)
    draws = draw(judged.clusters, seed=seed)
    regressions = _regressions(judged)
    steps = len(regressions) + 1
    progress(judged.regime, 0, steps)
    by_top = curve(judged.top[None, :], judged.right, draws)
    point = choose(judged.top, judged.right, limits)
    if judged.regime is Regime.RERANKER_DOWN:  # weak at best, whatever its cosine
        point = replace(point, has_normal=False)
    test = effect(judged, place_by_top(judged, folds, limits), draws)
    alone = held_out(judged.top[:, None], judged.right, judged.listed, folds)
    models = []
    for done, (name, features) in enumerate(regressions.items(), start=1):
        progress(judged.regime, done, steps)
        models.append(_model(judged, name, features, folds, limits, by_top, draws))
    found = Study(
        sample=judged,
        left_out=left_out,
        separations=tuple(_separations(judged, regressions, models, folds, draws)),
        curve=by_top,
        reliability=reliability(alone, judged.right),
        point=point,
        now=effect(judged, place_as_now(judged), draws),
        seen=effect(judged, place(judged.top, point), draws),
        test=test,
        models=tuple(models),
    )
    progress(judged.regime, steps, steps)
    return found


def _regressions(judged: Sample) -> dict[str, Floats]:
    """The features always; all scores by rank where the rarer outcome has as many questions as there are ranks."""
    if judged.regime is Regime.RERANKER_DOWN:
        return {}
    found = {FEATURES: judged.features}
    if min(judged.right.sum(), (~judged.right).sum()) >= RANKS:
        found[ALL_SCORES] = judged.ranks
    return found


def _model(
    judged: Sample, name: str, features: Floats, folds: Folds, limits: Limits, by_top: Curve, draws: Draws
) -> Model:
    scores = held_out(features, judged.right, judged.listed, folds)
    curved = curve(scores, judged.right, draws)
    return Model(
        name=name,
        fitted=fit(features[judged.listed], judged.right[judged.listed]),
        scores=scores,
        curve=curved,
        gains=tuple(differences(by_top, curved, draws)),
        reliability=reliability(scores, judged.right),
        point=choose(scores.mean(axis=0), judged.right, limits),
        test=effect(judged, place_by_model(judged, features, folds[:NESTED_REPEATS], limits), draws),
    )


def _separations(
    judged: Sample, regressions: dict[str, Floats], models: list[Model], folds: Folds, draws: Draws
) -> list[Separation]:
    """Right lists against all others, then what the forum answers against each kind that it doesn't.

    A model is fitted to what its row tells apart: to right lists, or to answerable questions.
    """
    plain = {TOP: judged.top[None, :]}
    if judged.regime is Regime.RERANKED:
        plain[COSINE] = judged.cosine[None, :]
    fitted = {model.name: model.scores for model in models}
    found = separations("right / not right", plain | fitted, judged.right, ~judged.right, draws)
    if len(np.unique(judged.clusters[~judged.answerable])) < 2 or not judged.answerable.any():
        return found
    fitted = {
        name: held_out(features, judged.answerable, judged.listed, folds) for name, features in regressions.items()
    }
    groups = np.array(judged.groups)
    kinds = sorted(set(groups[~judged.answerable]))
    for kind in kinds:
        found += separations(f"answerable / {kind}", plain | fitted, judged.answerable, groups == kind, draws)
    if len(kinds) > 1:
        everything = "answerable / no answer"
        found += separations(everything, plain | fitted, judged.answerable, ~judged.answerable, draws)
    return found
