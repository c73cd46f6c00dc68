"""Whether a chance that a score claims is the share that turns out right: in bins, with how many each holds."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from eval.calibrate.sample import Truths
from eval.domain import Interval
from eval.statistics.clusters import Floats

MOST_BINS = 10
LEAST_IN_BIN = 20
Z = 1.96


@dataclass(frozen=True, slots=True)
class Bin:
    """`n` questions of like chance: the mean chance claimed, and the share that was right with Wilson's interval."""

    n: int
    claimed: float
    right: Interval


@dataclass(frozen=True, slots=True)
class Reliability:
    """`brier` is the mean squared error of the chances, `brier_of_share` that of always claiming the overall share."""

    bins: tuple[Bin, ...]
    brier: float
    brier_of_share: float


def reliability(log_odds: Floats, right: Truths) -> Reliability:
    """Log-odds held out, shape (repeats, questions), as chances averaged over the repeats, in bins of equal count."""
    chances = expit(log_odds).mean(axis=0)
    order = np.argsort(chances, kind="stable")
    bins = np.array_split(order, max(1, min(MOST_BINS, len(order) // LEAST_IN_BIN)))
    share = right.mean()
    return Reliability(
        tuple(Bin(len(held), float(chances[held].mean()), wilson(int(right[held].sum()), len(held))) for held in bins),
        float(np.mean((chances - right) ** 2)),
        float(share * (1 - share)),
    )


def wilson(hits: int, n: int) -> Interval:
    """A share with Wilson's 95 % interval (JASA 22, 1927), n > 0."""
    share, spread = hits / n, Z * Z / n
    middle = (share + spread / 2) / (1 + spread)
    reach = Z / (1 + spread) * (share * (1 - share) / n + spread / (4 * n)) ** 0.5
    return Interval(share, max(0.0, middle - reach), min(1.0, middle + reach))
