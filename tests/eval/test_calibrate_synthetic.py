"""On scores whose optimum is known: it is the optimum, and the machinery finds it to within chance."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from scipy.integrate import quad
from scipy.stats import norm

from eval.calibrate.draws import draw
from eval.calibrate.points import Limits, choose
from eval.calibrate.risk import curve
from eval.calibrate.rows import proof_row
from eval.calibrate.sample import Regime, sample, zones_of
from eval.calibrate.synthetic import EMBEDDER, READINGS, RERANKER, Proof, Scores, lists, optimum, proof
from eval.calibrate.tables import show_proofs
from service.domain import Zone

LIMITS = Limits(max_wrong=0.04, max_lost=0.15)
USUAL, EVEN, VARIANCE = READINGS


@pytest.fixture(scope="module")
def proved() -> Proof:
    return proof(USUAL, LIMITS, questions=800)


def test_costs_are_those_of_the_densities() -> None:
    def right(x: float) -> float:
        return float(0.8 * norm.pdf(x, 2.5, 2.5))

    def wrong(x: float) -> float:
        return float(0.2 * norm.pdf(x, -4.0, 2.5))

    given_right, given_wrong = (quad(density, -1.0, 30.0)[0] for density in (right, wrong))
    assert USUAL.wrong(-1.0) == pytest.approx(given_wrong / (given_right + given_wrong))
    assert USUAL.lost(-1.0) == pytest.approx(quad(right, -30.0, -1.0)[0] / 0.8)


@pytest.mark.parametrize("scores", READINGS)
def test_no_border_does_better_than_the_optimum(scores: Scores) -> None:
    best = optimum(scores, LIMITS)
    borders = np.linspace(-12, 12, 1_201)
    wrong, lost = np.array([scores.wrong(one) for one in borders]), np.array([scores.lost(one) for one in borders])
    within = (wrong <= LIMITS.max_wrong) & (lost <= LIMITS.max_lost)
    assert within.any() == best.allowed
    if best.allowed:
        strain = np.maximum(wrong / LIMITS.max_wrong, lost / LIMITS.max_lost)
        assert borders[np.argmin(strain)] == pytest.approx(best.weak, abs=0.021)
    else:
        assert borders[lost <= LIMITS.max_lost].max() == pytest.approx(best.weak, abs=0.021)
    assert lost[wrong <= LIMITS.max_wrong].min() == pytest.approx(best.least_lost, abs=0.003)


def test_what_the_scores_allow_depends_on_how_many_questions_have_an_answer() -> None:
    assert [optimum(scores, LIMITS).allowed for scores in READINGS] == [True, False, True]
    assert optimum(EVEN, LIMITS).least_lost == pytest.approx(0.2263, abs=1e-4)
    assert optimum(EVEN, LIMITS).lost == pytest.approx(LIMITS.max_lost)


def test_the_machinery_finds_the_optimum_within_chance(proved: Proof) -> None:
    best, found = proved.optimum, proved.found
    assert proved.fresh_low <= best.weak <= proved.fresh_high
    assert proved.fresh_low <= found.point.borders.weak <= proved.fresh_high
    assert found.test.wrong.low <= best.wrong <= found.test.wrong.high
    assert found.test.lost.low <= best.lost <= found.test.lost.high


def test_it_keeps_both_limits_on_topics_it_has_not_seen(proved: Proof) -> None:
    assert proved.found.point.met
    assert proved.found.test.wrong.value <= LIMITS.max_wrong
    assert proved.found.test.lost.value <= LIMITS.max_lost


def test_more_questions_bring_the_border_nearer() -> None:
    def borders(questions: int) -> list[float]:
        return [_border(USUAL, questions, seed) for seed in range(40)]

    few, many = borders(200), borders(5_000)
    assert np.std(many) < np.std(few) / 2
    assert np.mean(many) == pytest.approx(optimum(USUAL, LIMITS).weak, abs=0.1)


def test_where_the_scores_allow_no_such_point_that_is_said() -> None:
    rng = np.random.default_rng(1)
    right = np.arange(4_000) < 2_000
    point = choose(rng.normal(np.where(right, 2.5, -4.0), 2.5), right, LIMITS)
    assert not point.met
    assert point.borders.weak == pytest.approx(optimum(EVEN, LIMITS).weak, abs=0.3)


def test_a_model_of_lower_scores_that_tell_nothing_does_not_pay(proved: Proof) -> None:
    assert proved.found.best is None
    for model in proved.found.models:
        gain = model.gains[0].difference
        assert abs(gain.value) < 0.005


def test_a_proof_is_shown_beside_its_optimum(proved: Proof) -> None:
    console = Console(width=120, file=StringIO())
    show_proofs([proved], LIMITS, console)
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue()
    row = proof_row(proved)
    assert row["optimum"]["weak"] == pytest.approx(-0.7418, abs=1e-4)
    assert row["found"]["limits_met"]
    for number in (row["optimum"]["weak"], row["found"]["weak"]):
        assert f"{number:+.2f}" in shown


def test_the_lists_are_what_they_are_said_to_be() -> None:
    cases, retrieved = lists(USUAL, questions=500, seed=1)
    judged, left_out = sample(cases, retrieved, Regime.RERANKED, zones_of(RERANKER, EMBEDDER), max_sources=6)
    assert (left_out, int(judged.right.sum())) == (0, 400)
    assert (judged.right == judged.answerable).all()
    assert judged.top[judged.right].mean() == pytest.approx(2.5, abs=0.4)
    assert judged.top[~judged.right].std() == pytest.approx(2.5, abs=0.4)
    assert all((zone is Zone.NORMAL) == (top >= 0) for zone, top in zip(judged.zones, judged.top, strict=True))
    drawn = curve(judged.top[None, :], judged.right, draw(judged.clusters, seed=1, resamples=100))
    assert drawn.wrong[-1] > drawn.wrong[0]


def _border(scores: Scores, questions: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    right = np.arange(questions) < round(scores.answerable * questions)
    return choose(rng.normal(np.where(right, 2.5, -4.0), scores.deviation), right, LIMITS).borders.weak
