"""Plots as data: everything has its place within the drawing, and the sizes are true."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.moderation.plots import FILLS, LEFT, WIDTH, Plot, Series, ceiling, histogram, rows, shares, stacked

COUNTS = st.lists(st.integers(0, 10**9), min_size=3, max_size=3)
SERIES = st.lists(COUNTS, min_size=1, max_size=6).map(
    lambda found: [Series(f"s{at}", FILLS[at % len(FILLS)], values) for at, values in enumerate(found)]
)


@pytest.mark.parametrize(("value", "top"), [(0, 1), (1, 1), (1.1, 2), (3, 5), (7, 10), (10, 10), (11, 20), (999, 1000)])
def test_an_axis_ends_at_a_round_number(value: float, top: float) -> None:
    assert ceiling(value) == top


def within(plot: Plot) -> None:
    for bar in plot.bars:
        assert bar.x >= 0
        assert bar.y >= 0
        assert bar.x + bar.width <= plot.width + 0.2
        assert bar.y + bar.height <= plot.height - plot.bottom + 0.2


@given(SERIES)
def test_columns_stand_on_each_other_within_the_drawing(series: list[Series]) -> None:
    plot = stacked(["a", "b", "c"], series)
    within(plot)
    assert len(plot.bars) == sum(value > 0 for one in series for value in one.values)
    assert [tick.text for tick in plot.x_ticks] == ["a", "b", "c"]


@given(SERIES)
def test_rows_and_shares_stay_within_the_drawing(series: list[Series]) -> None:
    within(rows(["a", "b", "c"], series[:2], unit="ms"))
    plot = shares([Series(one.name, one.fill, one.values[:1]) for one in series])
    within(plot)
    if plot.bars:
        assert sum(bar.width for bar in plot.bars) == pytest.approx(WIDTH, abs=0.6)


def test_heights_are_to_scale() -> None:
    plot = stacked(["a", "b"], [Series("x", "good", [10, 5]), Series("y", "bad", [0, 5])])
    whole, half, other = plot.bars
    assert half.height == other.height == pytest.approx(whole.height / 2, abs=0.1)
    assert other.y == whole.y
    assert [tick.text for tick in plot.y_ticks] == ["0", "5", "10"]
    assert whole.title == "a x: 10"


def test_every_seventh_place_is_named_and_the_last() -> None:
    plot = stacked([str(n) for n in range(10)], [Series("x", "good", [1] * 10)], every=7)
    assert [tick.text for tick in plot.x_ticks] == ["2", "9"]


def test_borders_stand_where_their_values_are() -> None:
    plot = histogram([-2, -1, 0, 1, 2], [1, 2, 3, 4], borders=[(-2, "weak"), (0, "normal"), (9, "far")], name="n")
    weak, normal, far = plot.lines
    assert (weak.at, far.at) == (LEFT, WIDTH - 8)
    assert normal.at == pytest.approx((weak.at + far.at) / 2)
    assert [tick.text for tick in plot.x_ticks] == ["−2", "−1", "0", "1", "2"]


def test_nothing_is_drawn_of_nothing() -> None:
    assert stacked([], []).bars == shares([Series("x", "good", [0])]).bars == rows([], [], unit="ms").bars == ()
