"""95 % intervals by a bootstrap that draws whole clusters: questions of one topic stand or fall together."""

from collections.abc import Iterator

import numpy as np
from scipy import special

from eval.domain import Interval
from eval.statistics.clusters import Codes, Floats, Totals, blocks, by_clusters, ratio, totals

RESAMPLES = 10_000
TAIL = 0.025
"""What a 95 % interval leaves out on each side."""

_EXACT = 1e-9
"""Values closer than this are the same number, summed up in another order."""
_SMALLEST = 1e-12
"""A level that no draw reaches: with two or three clusters the ends are the outermost draws."""


def mean_intervals(values: Floats, clusters: Codes, *, seed: int, resamples: int = RESAMPLES) -> list[Interval]:
    """The mean of each column of `values`, shape (cases, columns), in [0, 1], with its interval; NaN doesn't count.

    BCa: percentiles of the means of as many clusters as there are, drawn with replacement, at levels corrected for bias
    and skewness (Efron, Better Bootstrap Confidence Intervals, 1987) and widened for few clusters (`tail`). Where all
    values are 0, or all are 1, drawing says nothing: the open end is then the exact binomial bound with one trial a
    cluster. From a single cluster nothing else can be said: its ends are NaN.
    """
    summed = totals(values, clusters)
    intervals = _intervals(summed, None, seed, resamples)
    for column, interval in enumerate(intervals):
        held = int((summed.counts[:, column] > 0).sum())
        if held and interval.value in (0.0, 1.0):
            reach = 1.0 - TAIL ** (1.0 / held)
            low, high = (0.0, reach) if interval.value == 0.0 else (1.0 - reach, 1.0)
            intervals[column] = Interval(interval.value, low, high)
    return intervals


def difference_intervals(
    first: Floats, second: Floats, clusters: Codes, *, seed: int, resamples: int = RESAMPLES
) -> list[Interval]:
    """The mean of each column of `first` minus that of `second`, on the same draws of clusters; NaN without both."""
    return _intervals(totals(first, clusters), totals(second, clusters), seed, resamples)


def quantile_intervals(
    values: Floats, clusters: Codes, levels: tuple[float, ...], *, seed: int, resamples: int = RESAMPLES
) -> list[Interval]:
    """Quantiles of `values`, shape (cases,), without NaN: each a value that occurs, with its percentile interval."""
    order = np.argsort(values, kind="stable")
    ranked, owners = values[order], clusters[order]
    held = int(clusters.max()) + 1
    drawn = np.empty((resamples, len(levels)))
    for part, weights in _draws(held, seed, resamples):
        reached = np.cumsum(weights[:, owners], axis=1)
        for column, level in enumerate(levels):
            needed = level * reached[:, -1:] - 1e-9
            drawn[part, column] = ranked[np.argmax(reached >= needed, axis=1)]
    points = np.quantile(values, levels, method="inverted_cdf")
    lows, highs = (
        np.quantile(drawn, [tail(held), 1 - tail(held)], axis=0) if held > 1 else np.full((2, len(levels)), np.nan)
    )
    return [Interval(*map(float, ends)) for ends in zip(points, lows, highs, strict=True)]


def tail(clusters: int) -> float:
    """The level of the lower percentile: 0.025, widened to what Student's t would leave out with few clusters.

    Percentile intervals are too narrow by sqrt((n - 1) / n) and by the normal's quantile in place of t's (Hesterberg,
    What Teachers Should Know About the Bootstrap, 2015, section 5.3).
    """
    if clusters < 2:
        return 0.0
    widened = np.sqrt(clusters / (clusters - 1)) * special.stdtrit(clusters - 1, TAIL)
    return float(special.ndtr(widened))


def _intervals(first: Totals, second: Totals | None, seed: int, resamples: int) -> list[Interval]:
    counts = first.counts if second is None else first.counts + second.counts
    points = first.means() if second is None else first.means() - second.means()
    found = [Interval(float("nan"), float("nan"), float("nan"))] * counts.shape[1]
    for counting, alike in by_clusters(counts):
        held = int(counting.sum())
        columns = [column for column in alike if not np.isnan(points[column])]
        if not columns:
            continue
        drawn = np.empty((len(columns), resamples))
        for part, weights in _draws(held, seed, resamples):
            drawn[:, part] = _means(weights, first, counting, columns).T
            if second is not None:
                drawn[:, part] -= _means(weights, second, counting, columns).T
        pulls = _without_each(first, counting, columns)
        if second is not None:
            pulls -= _without_each(second, counting, columns)
        for at, column in enumerate(columns):
            low, high = _corrected_ends(drawn[at], float(points[column]), pulls[:, at])
            found[column] = Interval(float(points[column]), low, high)
    return found


def _draws(clusters: int, seed: int, resamples: int) -> Iterator[tuple[slice, Floats]]:
    """How often each cluster is drawn, shape (part, clusters); the same draws for the same seed and number."""
    rng = np.random.default_rng(seed)
    for part in blocks(resamples, clusters):
        rounds = part.stop - part.start
        picked = rng.integers(clusters, size=(rounds, clusters))
        picked += np.arange(rounds)[:, None] * clusters
        times = np.bincount(picked.ravel(), minlength=rounds * clusters)
        yield part, times.reshape(rounds, clusters).astype(np.float64)


def _means(weights: Floats, summed: Totals, counting: np.ndarray, columns: list[int]) -> Floats:
    chosen = summed.take(columns)
    return ratio(weights @ chosen.sums[counting], weights @ chosen.counts[counting])


def _without_each(summed: Totals, counting: np.ndarray, columns: list[int]) -> Floats:
    """The means without each cluster in turn."""
    chosen = summed.take(columns)
    left_sums = chosen.sums.sum(axis=0) - chosen.sums[counting]
    return ratio(left_sums, chosen.counts.sum(axis=0) - chosen.counts[counting])


def _corrected_ends(drawn: Floats, point: float, without_each: Floats) -> tuple[float, float]:
    """The ends of a BCa interval from the draws, and from the value without each cluster in turn."""
    clusters = len(without_each)
    if clusters < 2:
        return float("nan"), float("nan")
    drawn = drawn[~np.isnan(drawn)]  # a draw in which no case counts; it is rare
    lower = (drawn < point - _EXACT).sum() + (np.abs(drawn - point) <= _EXACT).sum() / 2
    bias = special.ndtri(np.clip(lower, 1, len(drawn) - 1) / len(drawn))
    pulls = np.nanmean(without_each) - without_each[~np.isnan(without_each)]
    spread = (pulls**2).sum() ** 1.5
    skewness = (pulls**3).sum() / (6 * spread) if spread > _EXACT**3 else 0.0
    reach = bias + special.ndtri(max(tail(clusters), _SMALLEST)) * np.array([1.0, -1.0])
    levels = special.ndtr(bias + reach / np.maximum(1 - skewness * reach, _EXACT))
    low, high = np.quantile(drawn, levels)
    return float(low), float(high)
