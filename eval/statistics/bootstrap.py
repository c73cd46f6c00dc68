"""95 % intervals by a bootstrap that draws whole clusters: questions of one topic stand or fall together."""

from collections.abc import Iterator

import numpy as np
from scipy import special

from eval.domain import Interval
from eval.statistics.clusters import Codes, Floats, Totals, blocks, by_clusters, ratio, totals

RESAMPLES = 10_000
TAIL = 0.025
"""What a 95 % interval leaves out on each side."""


def mean_intervals(values: Floats, clusters: Codes, *, seed: int, resamples: int = RESAMPLES) -> list[Interval]:
    """The mean of each column of `values`, shape (cases, columns), in [0, 1], with its interval; NaN doesn't count.

    Percentiles of the means of as many clusters as there are, drawn with replacement, at levels widened for few
    clusters (`tail`). Where all values are 0, or all are 1, drawing says nothing: the open end is then the exact
    binomial bound with one trial a cluster. From a single cluster nothing else can be said: its ends are NaN.
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
    """Quantiles of one column of `values`, shape (cases,), without NaN, each a value that occurs, with its interval."""
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
    lows, highs = _ends(drawn, held)
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
        drawn = np.empty((resamples, len(columns)))
        for part, weights in _draws(held, seed, resamples):
            drawn[part] = _means(weights, first, counting, columns)
            if second is not None:
                drawn[part] -= _means(weights, second, counting, columns)
        lows, highs = _ends(drawn, held)
        for column, low, high in zip(columns, lows, highs, strict=True):
            found[column] = Interval(float(points[column]), float(low), float(high))
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


def _ends(drawn: Floats, clusters: int) -> tuple[Floats, Floats]:
    if clusters < 2:
        nothing = np.full(drawn.shape[1], np.nan)
        return nothing, nothing
    level = tail(clusters)
    # A draw in which no case counts has no mean; it is rare, and left out.
    lows, highs = np.nanquantile(drawn, [level, 1.0 - level], axis=0)
    return lows, highs
