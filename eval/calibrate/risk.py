"""Risk-coverage: how many answers would be wrong for each share of the right answers that is kept."""

from dataclasses import dataclass

import numpy as np

from eval.calibrate.draws import Draws
from eval.calibrate.sample import Truths
from eval.domain import Interval
from eval.statistics.clusters import Floats

COVERAGES = np.arange(1, 21) / 20
"""Shares of the right answers kept: 5 % to all."""
SHOWN = (0.5, 0.7, 0.85, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """`wrong` among the answers given, by coverage (COVERAGES), mean over the repeats, and by draw of clusters.

    `drawn` has shape (resamples, COVERAGES).
    """

    wrong: Floats
    drawn: Floats


@dataclass(frozen=True, slots=True)
class Difference:
    """A model's wrong share less that of the single threshold, at one coverage; None: the mean over all coverages."""

    coverage: float | None
    threshold: Interval
    model: Interval
    difference: Interval


def curve(scores: Floats, right: Truths, draws: Draws) -> Curve:
    """The curve of scores, shape (repeats, questions): at each coverage the highest border that keeps as much."""
    once = np.ones((1, len(right)))
    return Curve(
        np.mean([_wrong(row, right, once)[0] for row in scores], axis=0),
        np.mean([_wrong(row, right, draws.weights) for row in scores], axis=0),
    )


def differences(threshold: Curve, model: Curve, draws: Draws) -> list[Difference]:
    """Paired: the same questions, the same draws. The mean over all coverages comes first."""
    columns: dict[float | None, list[int]] = {None: list(range(len(COVERAGES)))}
    columns |= {coverage: [int(np.argmin(abs(COVERAGES - coverage)))] for coverage in SHOWN}
    return [_difference(coverage, threshold, model, at, draws) for coverage, at in columns.items()]


def _difference(coverage: float | None, threshold: Curve, model: Curve, at: list[int], draws: Draws) -> Difference:
    theirs, ours = float(threshold.wrong[at].mean()), float(model.wrong[at].mean())
    their_draws, our_draws = threshold.drawn[:, at].mean(axis=1), model.drawn[:, at].mean(axis=1)
    return Difference(
        coverage,
        draws.interval(theirs, their_draws),
        draws.interval(ours, our_draws),
        draws.interval(ours - theirs, our_draws - their_draws),
    )


def _wrong(row: Floats, right: Truths, weights: Floats) -> Floats:
    order = np.argsort(-row, kind="stable")
    ranked = row[order]
    last_of_tie = np.searchsorted(-ranked, -ranked, side="right") - 1
    answered = np.cumsum(weights[:, order], axis=1)[:, last_of_tie]
    kept = np.cumsum(weights[:, order] * right[order], axis=1)[:, last_of_tie]
    all_right = kept[:, -1:]
    found = np.full((len(weights), len(COVERAGES)), np.nan)
    for column, coverage in enumerate(COVERAGES):
        at = np.argmax(kept >= coverage * all_right - 1e-9, axis=1)[:, None]
        given = np.take_along_axis(answered, at, axis=1)
        share = np.divide(
            np.take_along_axis(kept, at, axis=1), given, out=np.full(given.shape, np.nan), where=given > 0
        )
        found[:, column] = np.where(all_right > 0, 1.0 - share, np.nan)[:, 0]
    return found
