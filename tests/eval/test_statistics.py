"""The statistics against known answers: coverage, p-values under the null, power, scipy, and what must always hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from eval.domain import Interval
from eval.statistics.bootstrap import TAIL, difference_intervals, mean_intervals, quantile_intervals, tail
from eval.statistics.clusters import Codes, Floats, codes
from eval.statistics.permutation import holm, permutation_p
from eval.statistics.power import detectable_effect, standard_error

MANY = 1_000
"""Simulated data sets, one a column: a share near 0.95 is then known to about 0.014 (two standard errors)."""


def clustered(rng: np.random.Generator, clusters: int, *, largest: int = 5) -> Codes:
    """Clusters of 1 to `largest` cases."""
    return np.repeat(np.arange(clusters), rng.integers(1, largest + 1, size=clusters))


def zeros_and_ones(rng: np.random.Generator, clusters: Codes, mean: float = 0.4) -> Floats:
    """MANY columns of 0 and 1 whose cases of one cluster mostly share their fate; their true mean is `mean`."""
    fate = rng.random((clusters.max() + 1, MANY))[clusters]
    own = rng.random((len(clusters), MANY))
    return (np.where(rng.random((len(clusters), MANY)) < 0.7, fate, own) < mean).astype(np.float64)


def covered(intervals: list[Interval], truth: float) -> float:
    return float(np.mean([one.low <= truth <= one.high for one in intervals]))


@pytest.mark.parametrize("clusters", [12, 60])
def test_intervals_hold_the_true_mean_95_times_of_100(clusters: int) -> None:
    rng = np.random.default_rng(7)
    members = clustered(rng, clusters)
    share = covered(mean_intervals(zeros_and_ones(rng, members), members, seed=1, resamples=2_000), 0.4)
    assert 0.925 <= share <= 0.98


@pytest.mark.parametrize(("clusters", "mean"), [(12, 0.15), (60, 0.05)])
def test_intervals_of_rare_things_are_corrected_for_skewness(clusters: int, mean: float) -> None:
    """Plain percentiles hold these in 87 and 88 of 100 cases: their upper end is too low."""
    rng = np.random.default_rng(7)
    members = clustered(rng, clusters)
    share = covered(mean_intervals(zeros_and_ones(rng, members, mean), members, seed=1, resamples=2_000), mean)
    assert 0.9 <= share <= 0.98


def test_drawing_cases_instead_of_clusters_would_be_overconfident() -> None:
    rng = np.random.default_rng(7)
    members = clustered(rng, 60)
    values = zeros_and_ones(rng, members)
    assert covered(mean_intervals(values, np.arange(len(members)), seed=1, resamples=2_000), 0.4) < 0.9


def test_intervals_of_a_difference_hold_the_true_one() -> None:
    rng = np.random.default_rng(3)
    members = clustered(rng, 60)
    first, second = zeros_and_ones(rng, members, 0.5), zeros_and_ones(rng, members, 0.4)
    assert 0.93 <= covered(difference_intervals(first, second, members, seed=1, resamples=2_000), 0.1) <= 0.975


def test_intervals_of_a_quantile_hold_the_true_one() -> None:
    rng = np.random.default_rng(3)
    times = rng.exponential(10.0, size=(200, 200))
    intervals = [quantile_intervals(one, np.arange(200), (0.5,), seed=1, resamples=400)[0] for one in times]
    assert 0.9 <= covered(intervals, 10.0 * np.log(2)) <= 0.99


def test_without_clusters_the_interval_is_scipys() -> None:
    values = np.random.default_rng(5).beta(1, 3, size=80)
    ours = mean_intervals(values[:, None], np.arange(80), seed=1, resamples=20_000)[0]
    level = 1 - 2 * tail(80)
    theirs = stats.bootstrap((values,), np.mean, confidence_level=level, n_resamples=20_000, method="BCa", rng=2)
    assert ours.value == pytest.approx(values.mean())
    assert [ours.low, ours.high] == pytest.approx(list(theirs.confidence_interval), abs=0.003)


def test_the_tail_is_that_of_students_t_and_nears_the_nominal_one() -> None:
    assert tail(100_000) == pytest.approx(TAIL, abs=1e-4)
    assert tail(15) < tail(50) < TAIL
    assert tail(15) == pytest.approx(stats.norm.cdf(np.sqrt(15 / 14) * stats.t.ppf(TAIL, 14)))


def test_where_every_value_is_zero_the_open_end_is_the_binomials() -> None:
    clusters = np.array([0, 0, 1, 2, 3])
    never, always = mean_intervals(np.column_stack([np.zeros(5), np.ones(5)]), clusters, seed=1, resamples=100)
    bound = stats.binomtest(0, 4).proportion_ci(method="exact").high
    assert [never.value, never.low, never.high] == pytest.approx([0.0, 0.0, bound])
    assert [always.value, always.low, always.high] == pytest.approx([1.0, 1 - bound, 1.0])


def test_a_single_cluster_has_no_interval() -> None:
    one = mean_intervals(np.array([[0.0], [1.0]]), np.array([0, 0]), seed=1, resamples=100)[0]
    assert one.value == 0.5
    assert np.isnan([one.low, one.high]).all()


def test_cases_that_do_not_count_change_nothing() -> None:
    rng = np.random.default_rng(2)
    members, values = clustered(rng, 30), rng.random((200, 1))
    values = values[: len(members)]
    alone = mean_intervals(values, members, seed=4, resamples=500)[0]
    more = np.concatenate([values, np.full((5, 1), np.nan)])
    among = mean_intervals(more, np.concatenate([members, np.arange(30, 35)]), seed=4, resamples=500)[0]
    assert [among.value, among.low, among.high] == pytest.approx([alone.value, alone.low, alone.high], abs=1e-12)


def test_under_the_null_the_p_value_is_uniform() -> None:
    rng = np.random.default_rng(11)
    members = clustered(rng, 60)
    p = permutation_p(zeros_and_ones(rng, members), zeros_and_ones(rng, members), members, seed=1, rounds=2_000)
    for level in (0.05, 0.2, 0.5):
        assert (p <= level).mean() == pytest.approx(level, abs=3 * np.sqrt(level * (1 - level) / MANY) + 0.01)


def test_flipping_cases_instead_of_clusters_would_find_what_is_not_there() -> None:
    rng = np.random.default_rng(11)
    members = clustered(rng, 60)
    first, second = zeros_and_ones(rng, members), zeros_and_ones(rng, members)
    p = permutation_p(first, second, np.arange(len(members)), seed=1, rounds=2_000)
    assert (p <= 0.05).mean() > 0.08


def test_without_clusters_the_p_value_is_scipys() -> None:
    rng = np.random.default_rng(5)
    first, second = rng.random(40), rng.random(40) + 0.08
    theirs = stats.permutation_test(
        (first - second,), np.mean, permutation_type="samples", n_resamples=20_000, rng=rng, vectorized=True
    )
    ours = permutation_p(first[:, None], second[:, None], np.arange(40), seed=1, rounds=20_000)
    assert ours[0] == pytest.approx(theirs.pvalue, abs=0.015)


def test_with_few_clusters_p_is_the_share_of_all_swaps() -> None:
    """Six clusters that all agree: two of the 64 swaps are as far."""
    first, second = np.ones((6, 1)), np.zeros((6, 1))
    p = permutation_p(first, second, np.arange(6), seed=1, rounds=50_000)
    assert p[0] == pytest.approx(2 / 64, abs=0.003)


def test_shares_of_different_cases_are_compared_as_shares() -> None:
    """One system answers half as often, and errs in a quarter instead of half of what it answers."""
    first = np.full((400, 1), np.nan)
    first[:200, 0] = np.arange(200) % 4 == 0
    second = (np.arange(400) % 2 == 0).astype(np.float64)[:, None]
    interval = difference_intervals(first, second, np.arange(400), seed=1, resamples=2_000)[0]
    assert interval.value == pytest.approx(-0.25)
    assert interval.low < -0.25 < interval.high < 0
    assert permutation_p(first, second, np.arange(400), seed=1, rounds=2_000)[0] < 0.01


def test_the_standard_error_is_that_of_the_paired_difference() -> None:
    rng = np.random.default_rng(5)
    first, second = rng.random((50, 1)), rng.random((50, 1))
    assert standard_error(first, second, np.arange(50))[0] == pytest.approx(stats.sem(first - second)[0])


def test_the_smallest_detectable_effect_is_found_four_times_of_five() -> None:
    rng = np.random.default_rng(13)
    members = clustered(rng, 80)
    first, second = zeros_and_ones(rng, members), zeros_and_ones(rng, members)
    effect = float(np.mean(detectable_effect(first, second, members)))
    p = permutation_p(zeros_and_ones(rng, members, 0.4 + effect), second, members, seed=1, rounds=1_000)
    assert 0.74 <= (p <= 0.05).mean() <= 0.86


def test_nothing_is_known_of_what_could_be_detected_where_nothing_differs() -> None:
    values = np.array([[0.0], [1.0], [1.0]])
    assert np.isnan(detectable_effect(values, values, np.arange(3))).all()
    assert np.isnan(detectable_effect(values, values[::-1], np.zeros(3, dtype=np.intp))).all()


def test_holm_corrects_as_its_paper_does() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([float("nan"), 0.02]) == [pytest.approx(float("nan"), nan_ok=True), 0.02]


P_VALUES = st.lists(st.floats(0, 1), max_size=20)
COLUMN = arrays.arrays(np.float64, st.integers(1, 25), elements=st.sampled_from([0.0, 0.25, 1 / 3, 1.0, float("nan")]))


@given(P_VALUES)
def test_corrected_p_values_keep_their_order_and_are_no_smaller(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(p <= q <= 1.0 for p, q in zip(p_values, corrected, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert [corrected[at] for at in order] == sorted(corrected)


@settings(max_examples=50)
@given(COLUMN, st.integers(1, 6), st.randoms(use_true_random=False))
def test_what_holds_for_any_values(column: Floats, clusters: int, random: object) -> None:
    members = codes([f"topic {at % clusters}" for at in range(len(column))])
    values = column[:, None]
    interval = mean_intervals(values, members, seed=1, resamples=200)[0]
    if not np.isnan(interval.low):
        assert 0 <= interval.low <= interval.high <= 1
        assert interval.low <= interval.value + 1e-9
        assert interval.value - 1e-9 <= interval.high

    order = list(range(len(column)))
    random.shuffle(order)  # type: ignore[attr-defined]  # hypothesis hands over a random.Random
    shuffled = mean_intervals(values[order], members[order], seed=1, resamples=200)[0]
    ends = [interval.value, interval.low, interval.high]
    assert [shuffled.value, shuffled.low, shuffled.high] == pytest.approx(ends, nan_ok=True, abs=1e-12)

    same = difference_intervals(values, values, members, seed=1, resamples=200)[0]
    p = permutation_p(values, values, members, seed=1, rounds=200)[0]
    counted = not np.isnan(column).all()
    assert (same.value == 0.0 and p == 1.0) if counted else (np.isnan(same.value) and np.isnan(p))


@settings(max_examples=50)
@given(COLUMN, st.data())
def test_swapping_the_systems_turns_the_difference_round(column: Floats, data: st.DataObject) -> None:
    other = data.draw(arrays.arrays(np.float64, len(column), elements=st.floats(0, 1)))[:, None]
    values, members = column[:, None], codes([str(at // 2) for at in range(len(column))])
    one = difference_intervals(values, other, members, seed=1, resamples=200)[0]
    back = difference_intervals(other, values, members, seed=1, resamples=200)[0]
    ends = [-back.value, -back.high, -back.low]
    assert [one.value, one.low, one.high] == pytest.approx(ends, nan_ok=True, abs=1e-9)
    there = permutation_p(values, other, members, seed=1, rounds=200)[0]
    assert there == pytest.approx(permutation_p(other, values, members, seed=1, rounds=200)[0], nan_ok=True)


@settings(max_examples=50)
@given(arrays.arrays(np.float64, st.integers(1, 25), elements=st.floats(0, 1e6)))
def test_quantiles_are_times_that_occurred(times: Floats) -> None:
    p50, p95 = quantile_intervals(times, np.arange(len(times)), (0.5, 0.95), seed=1, resamples=100)
    assert {p50.value, p95.value} <= set(times.tolist())
    assert p50.value == np.quantile(times, 0.5, method="inverted_cdf")
    assert p50.value <= p95.value
