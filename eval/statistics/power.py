"""How small a difference a paired comparison could have seen: what tells "the same" from "too few questions"."""

import numpy as np
from scipy import special

from eval.statistics.clusters import Codes, Floats, ratio, totals

LEVEL = 0.05
POWER = 0.8


def detectable_effect(first: Floats, second: Floats, clusters: Codes) -> Floats:
    """The smallest true difference found at 5 % with 80 % probability, of each column: shape (columns,).

    (t(0.975) + t(0.8)) times the clustered standard error of the paired difference (Bloom, Minimum Detectable Effects,
    1995), degrees of freedom being the clusters less one. NaN with fewer than two clusters, or where the two never
    differ: nothing is then known of how differences spread.
    """
    one, other = totals(first, clusters), totals(second, clusters)
    held = ((one.counts + other.counts) > 0).sum(axis=0)
    spread = standard_error(first, second, clusters)
    freedom = np.maximum(held - 1, 1)
    reach = special.stdtrit(freedom, 1 - LEVEL / 2) + special.stdtrit(freedom, POWER)
    effect: Floats = np.where((held < 2) | (spread == 0), np.nan, reach * spread)
    return effect


def standard_error(first: Floats, second: Floats, clusters: Codes) -> Floats:
    """The clustered standard error of each column's difference of means, linearised: shape (columns,)."""
    one, other = totals(first, clusters), totals(second, clusters)
    held = ((one.counts + other.counts) > 0).sum(axis=0)
    pull = np.zeros_like(one.sums)
    for side, sign in ((one, 1.0), (other, -1.0)):
        left_over = side.sums - side.means() * side.counts
        pull += sign * ratio(left_over, np.broadcast_to(side.counts.sum(axis=0), left_over.shape))
    squares = (pull**2).sum(axis=0)
    error: Floats = np.sqrt(squares * ratio(held.astype(np.float64), held - 1.0))
    return error
