"""Calibration piece by piece: what is right, what a fit sees, areas, curves and operating points worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad
from scipy.special import expit

from eval.calibrate.auc import separations
from eval.calibrate.draws import draw
from eval.calibrate.effect import effect, place, place_as_now, place_by_top
from eval.calibrate.folds import FOLDS, deal, dealt, held_out, parts
from eval.calibrate.points import Limits, Point, choose, trade
from eval.calibrate.regression import fit
from eval.calibrate.reliability import reliability, wilson
from eval.calibrate.risk import COVERAGES, curve, differences
from eval.calibrate.sample import (
    FEATURES,
    RANKS,
    Regime,
    Sample,
    answers,
    candidates,
    sample,
    without_reranker,
    zones_of,
)
from eval.calibrate.study import study
from eval.calibrate.synthetic import EMBEDDER, RERANKER
from eval.domain import Case, Golden, Hit, Labels, Retrieved
from eval.statistics.clusters import codes
from service.domain import Borders, ScoreFeature, TopicId, Zone
from service.errors import Rejected

LIMITS = Limits(max_wrong=0.2, max_lost=0.25)


def case(name: str, *golden: tuple[int, int], part: str = "paraphrase", cluster: str = "") -> Case:
    graded = tuple(Golden(TopicId(topic), 1, grade) for topic, grade in golden)
    return Case(name, Labels.QUESTIONS, part, "en", "?", graded, cluster=cluster or name)


def retrieved(name: str, *posts: tuple[int, float | None, float | None], mode: str = "reranked") -> Retrieved:
    hits = tuple(Hit(TopicId(topic), 1 + at, 1 / (1 + at)) for at, (topic, _, _) in enumerate(posts))
    return Retrieved(
        name, hits, mode=mode, logits=tuple(logit for _, logit, _ in posts), cosines=tuple(one for _, _, one in posts)
    )


def made(scores: list[float], right: list[bool], *, clusters: list[str] | None = None) -> Sample:
    cases = [
        case(
            str(at),
            *([(1, 2)] if is_right else []),
            part="unanswerable",
            cluster=(clusters or [str(at)] * (at + 1))[at],
        )
        for at, is_right in enumerate(right)
    ]
    lists = {str(at): retrieved(str(at), (1, score, 0.5), (2, score - 1, 0.4)) for at, score in enumerate(scores)}
    return sample(cases, lists, Regime.RERANKED, zones_of(RERANKER, EMBEDDER), max_sources=6)[0]


def test_right_means_an_answering_topic_among_those_that_would_be_shown() -> None:
    found = retrieved("q", (5, 3.0, None), (5, 2.0, None), (6, 1.0, None), (7, 0.0, None)).hits
    assert answers(case("q", (7, 2)), found, max_sources=3)
    assert not answers(case("q", (7, 2)), found, max_sources=2)  # two topics, though three posts
    assert not answers(case("q", (6, 1)), found, max_sources=3)  # it only helps
    assert not answers(case("q"), found, max_sources=3)


def test_candidates_are_what_the_reranker_read() -> None:
    found = candidates(retrieved("q", (1, 0.5, 0.8), (2, None, 0.9), (3, 0.25, None)))
    assert [hit.topic_id for hit in found.hits] == [1, 3]
    assert (found.logits, found.cosines) == ((0.5, 0.25), (0.8, None))


def test_without_the_reranker_cosines_order_what_was_found() -> None:
    found = without_reranker(retrieved("q", (1, 3.0, 0.7), (2, 2.0, None), (3, 1.0, 0.9)))
    assert [hit.topic_id for hit in found.hits] == [3, 1, 2]
    assert (found.mode, found.logits) == ("reranker-down", (None, None, None))
    cases = [case("q", (3, 2))]
    judged, _ = sample(cases, {"q": found}, Regime.RERANKER_DOWN, zones_of(RERANKER, EMBEDDER), max_sources=1)
    assert judged.right.all()
    assert judged.top.tolist() == [0.9]
    assert (judged.features.shape, judged.ranks.shape) == ((1, 0), (1, 0))
    assert judged.zones == (Zone.ABSTAIN,)  # the floor of a model that nobody measured is 1


def test_a_sample_tells_kinds_apart_and_leaves_out_other_modes() -> None:
    cases = [
        case("right", (1, 2)),
        case("lost", (9, 2)),
        case("none", part="offtopic"),
        case("empty", (1, 2)),
        case("degraded", (1, 2)),
        case("not run", (1, 2)),
    ]
    lists = {
        "right": retrieved("right", (1, 2.0, 0.8), (4, -1.0, 0.7)),
        "lost": retrieved("lost", (1, -1.0, 0.8)),
        "none": retrieved("none", (1, -5.0, 0.8)),
        "empty": retrieved("empty"),
        "degraded": retrieved("degraded", (1, 2.0, None), mode="keyword"),
    }
    judged, left_out = sample(cases, lists, Regime.RERANKED, zones_of(RERANKER, EMBEDDER), max_sources=6)
    assert judged.groups == ("right", "not found", "offtopic", "not found")
    assert left_out == 2
    assert judged.top.tolist() == [2.0, -1.0, -5.0, -math.inf]
    assert judged.listed.tolist() == [True, True, True, False]
    assert judged.zones == (Zone.NORMAL, Zone.WEAK, Zone.ABSTAIN, Zone.ABSTAIN)
    assert judged.features.shape == (4, len(FEATURES))
    assert judged.features[0].tolist() == [2.0, 3.0, 0.5, 1.5, pytest.approx(math.log1p(math.exp(-3.0))), 0.8]
    assert judged.ranks[0].tolist() == [2.0] + [-1.0] * (RANKS - 1)
    keyword, _ = sample(cases, lists, Regime.KEYWORD, zones_of(RERANKER, EMBEDDER), max_sources=6)
    assert keyword.ids == ("degraded",)
    assert keyword.features.shape == (1, len(FEATURES) - 1)  # no cosine to read


def test_nothing_searched_in_a_regime_is_told() -> None:
    with pytest.raises(Rejected, match="no question was searched in mode keyword"):
        sample([case("q")], {"q": retrieved("q")}, Regime.KEYWORD, zones_of(RERANKER, EMBEDDER), max_sources=6)


def test_there_are_at_most_six_features() -> None:
    assert len(FEATURES) == 6
    assert FEATURES[0] is ScoreFeature.TOP


def test_a_regression_is_at_the_least_penalised_loss() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(80, 3)) * [1.0, 50.0, 0.01] + [5.0, 0.0, 1.0]
    truths = rng.random(80) < expit(features[:, 0] - 5 + features[:, 1] / 50)
    fitted = fit(features, truths, l2=0.5)
    scale = features.std(axis=0)

    def loss(parameters: np.ndarray) -> float:
        odds = features @ parameters[1:] + parameters[0]
        standardised = parameters[1:] * scale
        return float(np.logaddexp(0, odds).sum() - odds @ truths + 0.25 * standardised @ standardised)

    at = np.concatenate(([fitted.bias], fitted.weights))
    assert check_grad(loss, lambda _: np.zeros(4), at) < 1e-2
    assert all(loss(at + step) > loss(at) for sign in (1, -1) for step in sign * np.diag([0.1, 0.1, 0.002, 10.0]))


def test_a_feature_that_never_varies_gets_no_weight() -> None:
    features = np.column_stack([np.arange(10.0), np.full(10, 7.0)])
    fitted = fit(features, np.arange(10) % 3 > 0)
    assert fitted.weights[1] == 0.0
    assert fitted.scores(features).mean() == pytest.approx(math.log(6 / 4), abs=0.1)


@settings(max_examples=30)
@given(seed=st.integers(0, 1_000), sizes=st.lists(st.integers(1, 4), min_size=FOLDS * 2, max_size=30))
def test_no_topic_is_on_both_sides_of_a_fold(seed: int, sizes: list[int]) -> None:
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    groups = [["right", "not found"][cluster % 2] for cluster in clusters]
    fold_of = dealt(clusters, groups, np.random.default_rng(seed))
    for seen, unseen in parts(fold_of):
        assert not set(clusters[seen]) & set(clusters[unseen])
        assert (seen ^ unseen).all()
    for kind in ("right", "not found"):
        folds = [
            len(
                {
                    cluster
                    for cluster, group in zip(clusters[fold_of == fold], np.array(groups)[fold_of == fold], strict=True)
                    if group == kind
                }
            )
            for fold in range(FOLDS)
        ]
        assert max(folds) - min(folds) <= 1


def test_too_few_topics_to_learn_from_are_told() -> None:
    with pytest.raises(Rejected, match="4 topics with a question whose list is right in mode reranked, at least 5"):
        deal(made([1.0] * 20, [at < 4 for at in range(20)]), seed=1)
    with pytest.raises(Rejected, match="1 topics with a question whose list is not right"):
        deal(
            made([1.0] * 20, [at < 10 for at in range(20)], clusters=[str(at) if at < 10 else "x" for at in range(20)]),
            seed=1,
        )


def test_what_is_held_out_is_scored_by_fits_that_never_saw_it() -> None:
    """Clusters carry a label each and a feature that is nothing but the cluster's name: unseen, it tells nothing."""
    clusters = np.repeat(np.arange(40), 5)
    truths = np.random.default_rng(1).permutation(np.repeat([True, False], 20))[clusters]
    features = (clusters[:, None] == np.arange(40)).astype(float)
    groups = np.where(truths, "a", "b").tolist()
    folds = np.stack([dealt(clusters, groups, np.random.default_rng(seed)) for seed in range(4)])
    unseen = held_out(features, truths, np.ones(200, dtype=bool), folds)
    seen = fit(features, truths).scores(features)[None, :]
    draws = draw(clusters, seed=1, resamples=50)
    assert separations("seen", {"x": seen}, truths, ~truths, draws)[0].area.value == 1.0
    assert abs(separations("unseen", {"x": unseen}, truths, ~truths, draws)[0].area.value - 0.5) < 0.15


def test_an_area_is_the_chance_of_the_right_order() -> None:
    scores = np.array([[3.0, 1.0, 1.0, 0.0, -np.inf]])
    positive = np.array([True, True, False, False, False])
    worse = np.array([[0.0, 0.0, 1.0, 1.0, 1.0]])
    draws = draw(np.arange(5), seed=1)
    first, second = separations("a / b", {"x": scores, "y": worse}, positive, ~positive, draws)
    assert first.area.value == pytest.approx(5.5 / 6)
    assert (first.positives, first.negatives, first.gain) == (2, 3, None)
    assert second.area.value == 0.0
    assert second.gain is not None
    assert second.gain.value == pytest.approx(-5.5 / 6)
    assert first.area.low <= first.area.value <= first.area.high


def test_the_interval_of_an_area_holds_the_truth() -> None:
    """Normal scores a deviation apart: the area is Phi(1 / sqrt(2)); 19 of 20 intervals hold it, here most of 60."""
    truth, held = 0.760250, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        positive = np.arange(80) < 50
        scores = rng.normal(positive.astype(float))[None, :]
        area = separations("", {"x": scores}, positive, ~positive, draw(np.arange(80), seed=seed, resamples=400))[
            0
        ].area
        held += area.low <= truth <= area.high
    assert held >= 52


def test_a_risk_curve_by_hand() -> None:
    right = np.array([True, False, True, True, False])
    draws = draw(np.arange(5), seed=1, resamples=50)
    found = curve(np.array([[5.0, 4.0, 3.0, 3.0, 2.0]]), right, draws)
    shares = dict(zip(COVERAGES.round(2).tolist(), found.wrong.tolist(), strict=True))
    assert shares[0.3] == 0.0  # the first answer alone
    assert shares[0.35] == pytest.approx(1 / 4)  # equal scores come together
    assert shares[1.0] == pytest.approx(1 / 4)
    other = curve(np.array([[5.0, 1.0, 3.0, 3.0, 2.0]]), right, draws)
    mean, *_, whole = differences(found, other, draws)
    assert (mean.coverage, whole.coverage) == (None, 1.0)
    assert whole.difference.value == pytest.approx(-1 / 4)
    same = differences(found, found, draws)[0].difference
    assert (same.value, same.low, same.high) == (0.0, 0.0, 0.0)


def test_the_cost_of_each_border() -> None:
    costs = trade(np.array([1.0, 3.0, 3.0, -np.inf, 2.0]), np.array([True, True, False, False, True]))
    assert costs.levels.tolist() == [1.0, 2.0, 3.0]
    assert costs.answered.tolist() == [4.0, 3.0, 2.0]
    assert costs.wrong.tolist() == [pytest.approx(1 / 4), pytest.approx(1 / 3), 0.5]
    assert costs.lost.tolist() == [0.0, pytest.approx(1 / 3), pytest.approx(2 / 3)]
    assert costs.border(0) == 1.0
    assert costs.border(1) == 1.5


def test_the_point_lies_furthest_inside_both_limits() -> None:
    scores = np.arange(20.0)
    right = scores >= 6
    point = choose(scores, right, LIMITS)
    assert point.met
    assert 5 < point.borders.weak <= 6
    assert point.has_normal
    assert point.borders.normal == point.borders.weak  # none wrong of 14, and 10 are enough to tell 10 %


def test_where_no_border_keeps_both_limits_it_keeps_the_right_answers() -> None:
    scores, right = np.arange(40.0), np.arange(40) % 2 == 0
    point = choose(scores, right, LIMITS)
    assert (point.met, point.has_normal) == (False, False)
    assert (right & (scores < point.borders.weak)).sum() == 5  # a quarter of 20
    assert point.borders.normal > 2 * scores.max() - scores.min()


def test_too_few_answers_are_no_ground_for_normal() -> None:
    scores, right = np.arange(40.0), np.arange(40) >= 32
    right[:12] = [True] * 12
    assert not choose(scores, right, LIMITS).has_normal  # eight right ones on top; ten answers can tell 10 %
    right[31] = True
    assert choose(scores, right, LIMITS).has_normal  # nine, and one wrong


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.floats(-30, 30) | st.just(-math.inf), st.booleans()), min_size=1, max_size=60).filter(
        lambda pairs: any(math.isfinite(score) for score, _ in pairs)
    ),
    st.floats(0.01, 0.9),
    st.floats(0.01, 0.9),
)
def test_a_point_keeps_what_it_says(pairs: list[tuple[float, bool]], max_wrong: float, max_lost: float) -> None:
    scores = np.array([score for score, _ in pairs])
    right = np.array([is_right and math.isfinite(score) for score, is_right in pairs])
    limits = Limits(max_wrong, max_lost)
    point = choose(scores, right, limits)
    assert math.isfinite(point.borders.weak) and point.borders.weak <= point.borders.normal < math.inf
    answered, normal = scores >= point.borders.weak, scores >= point.borders.normal
    assert (right & ~answered).sum() <= max_lost * right.sum() + 1e-9
    if point.met:
        assert (answered & ~right).sum() <= max_wrong * answered.sum() + 1e-9
    assert normal.any() == point.has_normal
    if point.has_normal:
        assert (normal & ~right).sum() <= limits.max_wrong_normal * normal.sum() + 1e-9


def test_an_effect_counts_what_was_given_and_what_was_lost() -> None:
    judged = made([3.0, 2.0, 1.0, -5.0, -6.0], [True, False, True, True, False])
    placed = place(judged.top, Point(Borders(weak=0.0, normal=9.0), met=True, has_normal=False))
    shares = effect(judged, placed, draw(judged.clusters, seed=1))
    assert shares.wrong.value == pytest.approx(1 / 3)
    assert shares.lost.value == pytest.approx(1 / 3)
    assert shares.answered.value == pytest.approx(3 / 5)
    assert math.isnan(shares.wrong_normal.value)
    assert shares.zones == {
        "right": (3, pytest.approx(1 / 3), pytest.approx(2 / 3), 0.0),
        "unanswerable": (2, 0.5, 0.5, 0.0),
    }
    now = effect(judged, place_as_now(judged), draw(judged.clusters, seed=1))  # weak from -4, normal from 0
    assert now.wrong.value == pytest.approx(1 / 3)
    assert now.wrong_normal.value == pytest.approx(1 / 3)


def test_a_share_of_none_is_no_certainty() -> None:
    judged = made([3.0] * 10 + [-5.0] * 10, [True] * 10 + [False] * 10)
    shares = effect(
        judged, place(judged.top, Point(Borders(0.0, 9.0), met=True, has_normal=False)), draw(judged.clusters, seed=1)
    )
    assert (shares.wrong.value, shares.wrong.low) == (0.0, 0.0)
    assert shares.wrong.high == pytest.approx(0.3085, abs=1e-4)  # Clopper and Pearson, none of ten


def test_without_the_reranker_nothing_is_normal() -> None:
    cases = [case(str(at), *([(1, 2)] if at % 2 else [])) for at in range(40)]
    lists = {one.id: without_reranker(retrieved(one.id, (1, 1.0, 0.9 if one.golden else 0.5))) for one in cases}
    judged, _ = sample(cases, lists, Regime.RERANKER_DOWN, zones_of(RERANKER, EMBEDDER), max_sources=6)
    found = study(judged, 0, LIMITS, seed=1, repeats=2)
    assert not found.point.has_normal
    assert math.isnan(found.test.wrong_normal.value)
    assert (found.test.wrong.value, found.test.lost.value) == (0.0, 0.0)
    assert 0.5 < found.point.borders.weak <= 0.9
    assert found.models == ()


def test_the_test_part_is_placed_by_borders_that_never_saw_it() -> None:
    """One cluster alone is right below the rest: its own border would keep it, the others' can't know of it."""
    right = [True] * 12 + [False] * 12
    scores = [10.0 + at for at in range(11)] + [-9.0] + [at / 10 for at in range(12)]
    judged = made(scores, right)
    placed = place_by_top(judged, deal(judged, seed=1, repeats=3), Limits(0.6, 0.01))
    assert placed.answered[11] == 0.0
    assert place(judged.top, choose(judged.top, judged.right, Limits(0.6, 0.01))).answered[11] == 1.0


def test_reliability_bins_hold_equal_counts() -> None:
    chances = np.linspace(0.05, 0.95, 100)
    right = np.random.default_rng(2).random(100) < chances
    odds = np.log(chances / (1 - chances))
    found = reliability(odds[None, :], right)
    assert [one.n for one in found.bins] == [20] * 5
    assert [one.claimed for one in found.bins] == sorted(one.claimed for one in found.bins)
    assert found.bins[0].right.value == right[:20].mean()
    assert found.brier < found.brier_of_share


def test_wilsons_interval() -> None:
    found = wilson(8, 10)
    assert (found.value, round(found.low, 4), round(found.high, 4)) == (0.8, 0.4902, 0.9433)
    assert wilson(0, 20).low == 0.0
    assert wilson(20, 20).high == pytest.approx(1.0)


def test_codes_of_clusters_follow_the_cases() -> None:
    judged = made([1.0, 2.0, 3.0], [True, False, True], clusters=["b", "a", "b"])
    assert judged.clusters.tolist() == codes(["b", "a", "b"]).tolist() == [1, 0, 1]
