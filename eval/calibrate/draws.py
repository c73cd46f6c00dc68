"""How often each question counts when whole topics are drawn anew: what every interval of calibration rests on."""

from dataclasses import dataclass

import numpy as np

from eval.domain import Interval
from eval.statistics.bootstrap import tail
from eval.statistics.clusters import Codes, Floats

RESAMPLES = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """`weights`: shape (resamples, questions); `level`: what an end of a 95 % interval leaves out."""

    weights: Floats
    level: float

    def interval(self, value: float, drawn: Floats) -> Interval:
        """The value with the interval of what the draws made of it; draws in which nothing counted are left out."""
        if self.level == 0.0 or np.isnan(drawn).all():
            return Interval(value, float("nan"), float("nan"))
        low, high = np.nanquantile(drawn, [self.level, 1.0 - self.level])
        return Interval(value, float(low), float(high))


def draw(clusters: Codes, *, seed: int, resamples: int = RESAMPLES) -> Draws:
    """As many clusters as there are, drawn with replacement; models aren't fitted anew."""
    held = int(clusters.max()) + 1
    times = np.random.default_rng(seed).multinomial(held, np.full(held, 1.0 / held), size=resamples)
    return Draws(times.astype(np.float64)[:, clusters], tail(held))
