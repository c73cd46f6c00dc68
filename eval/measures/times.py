"""How long each stage takes: the median and the time that 95 of 100 questions stay under."""

from collections.abc import Mapping, Sequence

import numpy as np

from eval.domain import Answered, Case, Measured, Retrieved
from eval.measures.table import ALL
from eval.statistics.bootstrap import quantile_intervals
from eval.statistics.clusters import codes

LEVELS = {"p50": 0.5, "p95": 0.95}
TOTAL = "total"
RESAMPLES = 1_000
"""Fewer than for a measure of quality: times differ more from one machine to the next, and quantiles take longer."""


def measured_times(
    labels: str,
    system: str,
    cases: Sequence[Case],
    items: Mapping[str, Retrieved] | Mapping[str, Answered],
    *,
    seed: int,
) -> list[Measured]:
    """`time <stage> p50 ms` and `p95` of one system, and of a case's stages together (`time total`), in milliseconds.

    A stage's times are of the cases that went through it. A time that is called "total" is taken in place of the sum.
    """
    timed = [(case, items[case.id].timings_ms) for case in cases if case.id in items and items[case.id].timings_ms]
    stages = dict.fromkeys(stage for _, times in timed for stage in times if stage != TOTAL)
    found: list[Measured] = []
    for stage in (*stages, TOTAL) if timed else ():
        taken = [
            (case.cluster, times[stage] if stage in times else sum(times.values()))
            for case, times in timed
            if stage == TOTAL or stage in times
        ]
        values = np.array([ms for _, ms in taken], dtype=np.float64)
        clusters = codes([cluster for cluster, _ in taken])
        intervals = quantile_intervals(values, clusters, tuple(LEVELS.values()), seed=seed, resamples=RESAMPLES)
        found += [
            Measured(labels, system, ALL, f"time {stage} {name} ms", len(taken), interval)
            for name, interval in zip(LEVELS, intervals, strict=True)
        ]
    return found
