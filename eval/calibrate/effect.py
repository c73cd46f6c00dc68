"""What an operating point does to questions whose topics it has not seen: chosen in each fold, told for the rest."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eval.calibrate.draws import Draws
from eval.calibrate.folds import Folds, dealt, held_out, parts
from eval.calibrate.points import Limits, Point, choose
from eval.calibrate.regression import fit
from eval.calibrate.sample import Regime, Sample, Truths
from eval.domain import Interval
from eval.statistics.bootstrap import TAIL
from eval.statistics.clusters import Floats
from service.domain import Borders, Zone

INNER_SEED = 7


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """How often each question was answered at all, and as normal, over the repeats: shape (questions,), in [0, 1]."""

    answered: Floats
    normal: Floats


@dataclass(frozen=True, slots=True)
class Effect:
    """Shares: `wrong` among the answers, `wrong_normal` among the normal ones (NaN if there are none), `lost` right
    answers, `answered` questions; `zones` has abstain, weak and normal for each kind of question."""

    wrong: Interval
    wrong_normal: Interval
    lost: Interval
    answered: Interval
    zones: dict[str, tuple[int, float, float, float]]


Placing = Callable[[Truths, Truths], tuple[Floats, Borders]]
"""From the questions of a fit and those unseen: the scores of the unseen, and the borders that the fit chose."""


def place_by_top(sample: Sample, folds: Folds, limits: Limits) -> Placed:
    """The single threshold: borders chosen on the top scores of the other folds."""

    def placing(seen: Truths, unseen: Truths) -> tuple[Floats, Borders]:
        chosen = choose(sample.top[seen], sample.right[seen], limits)
        return sample.top[unseen], chosen.borders

    return _placed(folds, placing)


def place_by_model(sample: Sample, features: Floats, folds: Folds, limits: Limits) -> Placed:
    """The model: fitted on the other folds, its borders chosen there on scores that are themselves held out."""

    def placing(seen: Truths, unseen: Truths) -> tuple[Floats, Borders]:
        usable = seen & sample.listed
        groups = [group for group, is_seen in zip(sample.groups, seen, strict=True) if is_seen]
        inner = dealt(sample.clusters[seen], groups, np.random.default_rng(INNER_SEED))
        inside = held_out(features[seen], sample.right[seen], usable[seen], inner[None, :])[0]
        chosen = choose(inside, sample.right[seen], limits)
        scores = fit(features[usable], sample.right[usable]).scores(features[unseen])
        return np.where(sample.listed[unseen], scores, -np.inf), chosen.borders

    return _placed(folds, placing)


def place(scores: Floats, point: Point) -> Placed:
    """Borders as they are, on the very questions: what the fit believes of itself."""
    return Placed((scores >= point.borders.weak).astype(float), (scores >= point.borders.normal).astype(float))


def place_as_now(sample: Sample) -> Placed:
    """The zones that today's profile gives."""
    answered = np.array([zone is not Zone.ABSTAIN for zone in sample.zones], dtype=np.float64)
    return Placed(answered, np.array([zone is Zone.NORMAL for zone in sample.zones], dtype=np.float64))


def effect(sample: Sample, placed: Placed, draws: Draws) -> Effect:
    """Sum up what was given and what was lost, with intervals over topics; without the reranker nothing is normal."""
    right, wrong = sample.right.astype(float), (~sample.right).astype(float)
    groups = np.array(sample.groups)
    if sample.regime is Regime.RERANKER_DOWN:
        placed = Placed(placed.answered, np.zeros(len(right)))
    zones: dict[str, tuple[int, float, float, float]] = {}
    for group in dict.fromkeys(sample.groups):
        members = groups == group
        answered, normal = float(placed.answered[members].mean()), float(placed.normal[members].mean())
        zones[group] = (int(members.sum()), 1.0 - answered, answered - normal, normal)
    return Effect(
        wrong=_share(placed.answered * wrong, placed.answered, sample, draws),
        wrong_normal=_share(placed.normal * wrong, placed.normal, sample, draws),
        lost=_share((1.0 - placed.answered) * right, right, sample, draws),
        answered=_share(placed.answered, np.ones(len(right)), sample, draws),
        zones=zones,
    )


def _placed(folds: Folds, placing: Placing) -> Placed:
    answered, normal = np.zeros(folds.shape), np.zeros(folds.shape)
    for repeat, fold_of in enumerate(folds):
        for seen, unseen in parts(fold_of):
            if unseen.any():
                scores, borders = placing(seen, unseen)
                answered[repeat, unseen] = scores >= borders.weak
                normal[repeat, unseen] = scores >= borders.normal
    return Placed(answered.mean(axis=0), normal.mean(axis=0))


def _share(part: Floats, whole: Floats, sample: Sample, draws: Draws) -> Interval:
    """A share with its interval; of none, or of all, the far end is the exact binomial bound, one trial a topic."""
    total = whole.sum()
    if total <= 1e-12:
        return Interval(float("nan"), float("nan"), float("nan"))
    above, below = draws.weights @ part, draws.weights @ whole
    drawn = np.divide(above, below, out=np.full(len(below), np.nan), where=below > 1e-12)
    found = draws.interval(float(part.sum() / total), drawn)
    reach = 1.0 - TAIL ** (1.0 / len(np.unique(sample.clusters[whole > 0])))
    if found.value == 0.0:
        return Interval(0.0, 0.0, reach)
    return Interval(1.0, 1.0 - reach, 1.0) if found.value == 1.0 else found
