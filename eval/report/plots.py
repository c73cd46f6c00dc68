"""Where the lines and dots of a plot lie: shares from 0 to 1 on both axes, in the units of its SVG view."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval.calibrate.risk import COVERAGES
from eval.domain import Interval
from eval.report.content import Scores

LEFT, TOP, SIDE, HEIGHT = 40.0, 10.0, 308.0, 200.0
VIEW = (360, 250)
TICKS = (0, 20, 40, 60, 80, 100)
TAIL = 0.025


@dataclass(frozen=True, slots=True)
class Dot:
    """A dot with the ends of its intervals; the horizontal ones are the dot's own where there are none."""

    x: float
    y: float
    left: float
    right: float
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Plot:
    """`line` and `band` are points of SVG (a polyline, a polygon); `ticks` are (place, per cent) of each axis."""

    line: str
    band: str
    dots: tuple[Dot, ...]
    x_ticks: tuple[tuple[float, int], ...] = tuple((LEFT + SIDE * tick / 100, tick) for tick in TICKS)
    y_ticks: tuple[tuple[float, int], ...] = tuple((TOP + HEIGHT * (1 - tick / 100), tick) for tick in TICKS)
    frame: tuple[float, float, float, float] = (LEFT, TOP, LEFT + SIDE, TOP + HEIGHT)
    view: tuple[int, int] = VIEW


def risk_plot(scores: Scores) -> Plot:
    """Wrong among the answers over right answers kept, with its 95 % band; the dot is the zones as they are."""
    low, high = np.nanquantile(scores.risk.drawn, [TAIL, 1 - TAIL], axis=0)
    lost, wrong = scores.now.lost, scores.now.wrong
    kept = Interval(1 - lost.value, 1 - lost.high, 1 - lost.low)
    ends = [*zip(COVERAGES, high, strict=True), *reversed(list(zip(COVERAGES, low, strict=True)))]
    dots = () if np.isnan(wrong.value) else (_dot(kept, wrong),)
    return Plot(_points(list(zip(COVERAGES, scores.risk.wrong, strict=True))), _points(ends), dots)


def reliability_plot(scores: Scores) -> Plot:
    """The share that was right over the chance claimed, a dot a bin; the line is where both are the same."""
    dots = tuple(_dot(Interval(*[one.claimed] * 3), one.right) for one in scores.reliability.bins)
    return Plot(_points([(0, 0), (1, 1)]), "", dots)


def _dot(x: Interval, y: Interval) -> Dot:
    def known(end: float, value: float) -> float:
        return value if np.isnan(end) else end

    return Dot(
        _x(x.value),
        _y(y.value),
        _x(known(x.low, x.value)),
        _x(known(x.high, x.value)),
        _y(known(y.high, y.value)),
        _y(known(y.low, y.value)),
    )


def _points(shares: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in shares if not np.isnan(y))


def _x(share: float) -> float:
    return round(LEFT + SIDE * float(share), 1)


def _y(share: float) -> float:
    return round(TOP + HEIGHT * (1 - float(share)), 1)
