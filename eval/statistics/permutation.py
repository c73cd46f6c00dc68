"""Whether two systems differ by more than chance: a paired test that swaps them, cluster by cluster."""

from collections.abc import Sequence

import numpy as np

from eval.statistics.clusters import Codes, Floats, blocks, by_clusters, ratio, totals

ROUNDS = 10_000
_EXACT = 1e-9
"""Differences closer than this are the same number, summed up in another order."""


def permutation_p(first: Floats, second: Floats, clusters: Codes, *, seed: int, rounds: int = ROUNDS) -> Floats:
    """The two-sided p-value of each column's difference of means: shape (columns,), NaN where no case counts.

    Were the systems alike, then swapping their values in any cluster would change nothing: p is how often random swaps
    differ at least as much as what was seen, itself counted in, so that p is never 0 (Phipson and Smyth, 2010).
    With equal cases on both sides this is the sign-flip test of the paired differences, summed by cluster.
    """
    one, other = totals(first, clusters), totals(second, clusters)
    found = np.full(first.shape[1], np.nan)
    for counting, columns in by_clusters(one.counts + other.counts):
        if not counting.any():
            continue
        left, right = one.take(columns), other.take(columns)
        sums, counts = left.sums[counting] - right.sums[counting], left.counts[counting] - right.counts[counting]
        all_sums, all_counts = (left.sums + right.sums).sum(axis=0), (left.counts + right.counts).sum(axis=0)
        seen = np.abs(left.means() - right.means())
        as_far = np.zeros(len(columns))
        rng = np.random.default_rng(seed)
        for part in blocks(rounds, len(sums)):
            signs = rng.integers(2, size=(part.stop - part.start, len(sums)), dtype=np.int8) * 2.0 - 1.0
            swapped, moved = signs @ sums, signs @ counts
            apart = ratio(all_sums + swapped, all_counts + moved) - ratio(all_sums - swapped, all_counts - moved)
            # Swaps that leave one side without any case have no difference; they count as far, which is cautious.
            as_far += (~(np.abs(apart) < seen - _EXACT * np.maximum(1.0, seen))).sum(axis=0)
        found[columns] = np.where(np.isnan(seen), np.nan, (1.0 + as_far) / (1.0 + rounds))
    return found


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of one family of comparisons, corrected (Holm, 1979): at most 5 % of families then err.

    NaN, a comparison that couldn't be made, stays NaN and doesn't count.
    """
    made = sorted((p, place) for place, p in enumerate(p_values) if not np.isnan(p))
    corrected = [float("nan")] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(made):
        largest = max(largest, min(1.0, p * (len(made) - rank)))
        corrected[place] = largest
    return corrected
