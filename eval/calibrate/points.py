"""Where the borders of the zones lie: chosen from a stated risk and coverage, on scores and what was right."""

from dataclasses import dataclass
from math import ceil

import numpy as np

from eval.calibrate.sample import Truths
from eval.statistics.clusters import Floats
from service.domain import Borders

NORMAL_SHARE = 0.5
"""What is said without a caution may be wrong this much as often as `max_wrong`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_wrong`: wrong answers among the answers given; `max_lost`: right answers not given; shares in (0, 1)."""

    max_wrong: float
    max_lost: float

    @property
    def max_wrong_normal(self) -> float:
        return self.max_wrong * NORMAL_SHARE


@dataclass(frozen=True, slots=True)
class Point:
    """Borders chosen, whether both limits could be met, and whether any answer may be normal."""

    borders: Borders
    met: bool
    has_normal: bool


@dataclass(frozen=True, slots=True, eq=False)
class Trade:
    """What answering from each score on costs, the lowest first: `wrong` among the `answered`, and `lost`."""

    levels: Floats
    answered: Floats
    wrong: Floats
    lost: Floats

    def border(self, at: int) -> float:
        """A plain number between that level and the one below; the lowest level itself."""
        return _between(float(self.levels[at - 1]), float(self.levels[at])) if at else float(self.levels[0])


def trade(scores: Floats, right: Truths) -> Trade:
    """Every level that parts the questions differently; minus infinity is never answered. One score at least."""
    order = np.argsort(scores, kind="stable")
    levels, firsts = np.unique(scores[order], return_index=True)
    listed = np.isfinite(levels)
    answered = (len(scores) - firsts).astype(np.float64)
    kept = np.cumsum(right[order][::-1])[::-1][firsts].astype(np.float64)
    held = float(right.sum())
    return Trade(
        levels[listed],
        answered[listed],
        ((answered - kept) / answered)[listed],
        ((held - kept) / max(1.0, held))[listed],
    )


def choose(scores: Floats, right: Truths, limits: Limits) -> Point:
    """The operating point.

    weak: of the borders that meet both limits the one furthest inside them, where the larger of wrong / max_wrong and
    lost / max_lost is least. If none meets both, the highest that keeps `max_lost`: a weak answer says itself that it
    may miss, and one that abstains from nearly everything helps nobody.
    normal: from the lowest border on, not below weak, with at most half of `max_wrong` wrong above it, counted on
    enough answers to tell (one wrong one among them stays within the limit). If there is none, nothing is normal: the
    border lies beyond the highest score by as much as the scores span.
    """
    costs = trade(scores, right)
    within = (costs.wrong <= limits.max_wrong) & (costs.lost <= limits.max_lost)
    strain = np.maximum(costs.wrong / limits.max_wrong, costs.lost / limits.max_lost)
    met = bool(within.any())
    at = int(np.argmin(strain)) if met else int(np.flatnonzero(costs.lost <= limits.max_lost)[-1])
    sure = (costs.wrong <= limits.max_wrong_normal) & (costs.answered >= ceil(1 / limits.max_wrong_normal))
    sure[:at] = False
    lowest, highest = float(costs.levels[0]), float(costs.levels[-1])
    normal = costs.border(int(np.argmax(sure))) if sure.any() else round(2 * highest - lowest + 0.01, 2)
    return Point(Borders(costs.border(at), normal), met, bool(sure.any()))


def _between(low: float, high: float) -> float:
    """The middle, with as few decimals as still lie above `low` and not above `high`."""
    middle = low + (high - low) / 2
    for digits in range(2, 17):
        rounded = round(middle, digits)
        if low < rounded <= high:
            return rounded
    return high
