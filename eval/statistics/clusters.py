"""Values of cases summed up by cluster, since those cases stand together: what every statistic here works on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
"""The number of each case's cluster, from 0 without gaps: shape (cases,)."""

_CELLS = 2_000_000
"""Random numbers held at once: 16 MB a matrix."""


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """By cluster and column (clusters, columns): the sum of the values that count, and how many those are."""

    sums: Floats
    counts: Floats

    def means(self) -> Floats:
        """The mean of every column over its cases; NaN where no case counts."""
        return ratio(self.sums.sum(axis=0), self.counts.sum(axis=0))

    def take(self, columns: Sequence[int]) -> "Totals":
        return Totals(self.sums[:, columns], self.counts[:, columns])


def codes(clusters: Sequence[str]) -> Codes:
    """The clusters' names as numbers from 0 on."""
    return np.unique(np.asarray(clusters, dtype=np.str_), return_inverse=True)[1].reshape(-1)


def totals(values: Floats, clusters: Codes) -> Totals:
    """Sum up `values`, shape (cases, columns), by cluster; a case that is NaN in a column doesn't count there."""
    held = int(clusters.max()) + 1 if clusters.size else 0
    counting = ~np.isnan(values)
    sums, counts = np.zeros((held, values.shape[1])), np.zeros((held, values.shape[1]))
    np.add.at(sums, clusters, np.where(counting, values, 0.0))
    np.add.at(counts, clusters, counting)
    return Totals(sums, counts)


def by_clusters(counts: Floats) -> Iterator[tuple[NDArray[np.bool_], list[int]]]:
    """Columns in which the same clusters count, with those clusters: what shares its random draws."""
    groups: dict[bytes, list[int]] = {}
    counting = counts > 0
    for column in range(counts.shape[1]):
        groups.setdefault(counting[:, column].tobytes(), []).append(column)
    for columns in groups.values():
        yield counting[:, columns[0]], columns


def blocks(rounds: int, clusters: int) -> Iterator[slice]:
    """`rounds` in parts whose matrices of (part, clusters) fit into memory."""
    step = max(1, _CELLS // max(1, clusters))
    for start in range(0, rounds, step):
        yield slice(start, min(start + step, rounds))


def ratio(above: Floats, below: Floats) -> Floats:
    """Divide, NaN where nothing counts."""
    divided: Floats = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0)
    return divided
