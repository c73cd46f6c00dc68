"""Plots as data: the places of bars, ticks and lines in an SVG, which `templates/parts/plot.html` draws."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import floor, log10

WIDTH, LEFT, TOP, BOTTOM = 440.0, 36.0, 8.0, 24.0
"""The width of every plot, and the room for the ticks' texts, in the SVG's own units."""
_HEIGHT = 180.0
_ROW = 22.0
_NAMES = 96.0
_RIGHT = 8.0
FILLS = ("warn", "cool", "accent", "bad", "edge", "good")
"""Classes of a series' colour (`fill-good`), in light and dark."""


@dataclass(frozen=True, slots=True)
class Series:
    """One kind of what is counted: its name for people, its colour's class, and a value for each place."""

    name: str
    fill: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    fill: str
    title: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A text at a place of an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Plot:
    """What an SVG of `width` x `height` shows; `lines` cross it from top to bottom.

    Ticks stand at whole numbers where things are counted.
    """

    height: float
    bars: tuple[Bar, ...]
    x_ticks: tuple[Tick, ...] = ()
    y_ticks: tuple[Tick, ...] = ()
    lines: tuple[Tick, ...] = ()
    left: float = LEFT
    bottom: float = BOTTOM
    width: float = field(default=WIDTH)


def ceiling(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50... that is not below it: where an axis ends."""
    if value <= 1:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def stacked(places: Sequence[str], series: Sequence[Series], *, every: int = 1) -> Plot:
    """Columns of these series on each other, one a place; every so many places are named, counted from the last."""
    top = ceiling(max((sum(one.values[at] for one in series) for at in range(len(places))), default=0.0))
    step = (WIDTH - LEFT - _RIGHT) / max(1, len(places))
    high = _HEIGHT - TOP - BOTTOM
    bars: list[Bar] = []
    for at, place in enumerate(places):
        under = 0.0
        for one in series:
            if value := one.values[at]:
                y = TOP + high * (1 - (under + value) / top)
                bars.append(_bar(LEFT + at * step + step * 0.1, y, step * 0.8, high * value / top, one, place, value))
                under += value
    named = range(len(places) - 1, -1, -every)
    return Plot(
        _HEIGHT,
        tuple(bars),
        x_ticks=tuple(Tick(round(LEFT + (at + 0.5) * step, 1), places[at]) for at in reversed(named)),
        y_ticks=tuple(
            Tick(round(TOP + high * (1 - part), 1), _plain(top * part)) for part in (0, 0.5, 1) if (top * part) % 1 == 0
        ),
    )


def shares(series: Sequence[Series]) -> Plot:
    """One row that these series, each of one value, share by their sizes."""
    whole = sum(one.values[0] for one in series)
    bars: list[Bar] = []
    x = 0.0
    for one in series:
        width = WIDTH * one.values[0] / whole if whole else 0.0
        if width:
            bars.append(_bar(x, 0, width, _ROW, one, "", one.values[0]))
        x += width
    return Plot(_ROW, tuple(bars), left=0, bottom=0)


def rows(names: Sequence[str], series: Sequence[Series], *, unit: str) -> Plot:
    """A row for each name, in it a bar for each series, from the same start and the later ones thinner."""
    longest = ceiling(max((value for one in series for value in one.values), default=0.0))
    wide = WIDTH - _NAMES - _RIGHT
    bars = tuple(
        _bar(_NAMES, TOP + at * _ROW + 3 + nth * 4, wide * one.values[at] / longest, _ROW - 6 - nth * 8, one, name)
        for at, name in enumerate(names)
        for nth, one in enumerate(series)
    )
    return Plot(
        TOP + _ROW * len(names) + BOTTOM,
        bars,
        x_ticks=tuple(Tick(_NAMES + wide * part, f"{_plain(longest * part)} {unit}") for part in (0, 0.5, 1)),
        y_ticks=tuple(Tick(TOP + (at + 0.5) * _ROW, name) for at, name in enumerate(names)),
        left=_NAMES,
    )


def histogram(
    edges: Sequence[float], counts: Sequence[int], *, borders: Sequence[tuple[float, str]], name: str
) -> Plot:
    """Columns between neighbouring edges, as high as their counts, and a line at each border."""
    columns = stacked([_plain(edge) for edge in edges[:-1]], [Series(name, "accent", counts)])
    wide = WIDTH - LEFT - _RIGHT

    def place(value: float) -> float:
        share = (value - edges[0]) / (edges[-1] - edges[0])
        return round(LEFT + wide * min(1.0, max(0.0, share)), 1)

    return Plot(
        columns.height,
        columns.bars,
        x_ticks=tuple(Tick(place(edge), _plain(edge)) for edge in edges[:: max(1, (len(edges) - 1) // 8)]),
        y_ticks=columns.y_ticks,
        lines=tuple(Tick(place(value), text) for value, text in borders),
    )


def _bar(x: float, y: float, width: float, height: float, one: Series, place: str, value: float | None = None) -> Bar:
    said = " ".join(part for part in (place, one.name) if part)
    title = said if value is None else f"{said}: {_plain(value)}"
    return Bar(round(x, 1), round(y, 1), round(width, 1), round(height, 1), one.fill, title)


def _plain(value: float) -> str:
    return f"{value:g}".replace("-", "−")
