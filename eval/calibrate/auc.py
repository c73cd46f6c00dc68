"""How well a score tells questions apart: the area under the ROC curve, with intervals, on the same folds for all."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eval.calibrate.draws import Draws
from eval.calibrate.sample import Truths
from eval.domain import Interval
from eval.statistics.clusters import Floats


@dataclass(frozen=True, slots=True)
class Separation:
    """One score on one contrast: the chance that a positive scores above a negative, ties half.

    `gain` is its area less that of the first score, on the same questions and draws; None for that one.
    """

    contrast: str
    score: str
    positives: int
    negatives: int
    area: Interval
    gain: Interval | None


def separations(
    contrast: str, scores: Mapping[str, Floats], positive: Truths, negative: Truths, draws: Draws
) -> list[Separation]:
    """The area of each score, of shape (repeats, questions), as its mean over the repeats; the first is the reference.

    An area is that of the questions held out, all folds of a repeat together.
    """
    found: list[Separation] = []
    above, below = draws.weights[:, positive], draws.weights[:, negative]
    pairs = above.sum(axis=1) * below.sum(axis=1)
    reference: tuple[float, Floats] | None = None
    for name, rows in scores.items():
        wins = _wins(rows, positive, negative)
        area = float(wins.mean())
        drawn = np.divide(((above @ wins) * below).sum(axis=1), pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
        gain = None if reference is None else draws.interval(area - reference[0], drawn - reference[1])
        reference = reference or (area, drawn)
        counts = int(positive.sum()), int(negative.sum())
        found.append(Separation(contrast, name, *counts, draws.interval(area, drawn), gain))
    return found


def _wins(rows: Floats, positive: Truths, negative: Truths) -> Floats:
    """How often each positive scored above each negative, over the repeats."""
    wins = np.zeros((int(positive.sum()), int(negative.sum())))
    for row in rows:
        ours, theirs = row[positive][:, None], row[negative][None, :]
        wins += (ours > theirs) + 0.5 * (ours == theirs)
    return wins / len(rows)
