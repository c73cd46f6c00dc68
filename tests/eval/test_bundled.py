"""Fitting the bundled reranker: known weights are found again, unseen means unseen, and what is asked of each forum."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import eval.demo
from eval.bundled.asked import FOREIGN, FOREIGN_SLICE, SMALL_TALK, SMALL_TALK_SLICE, asked
from eval.bundled.fit import conditional, first_right, fitted
from eval.bundled.lists import FUSED, List
from eval.bundled.measure import NOTHING, abstained, hit_rows, unseen
from eval.datasets import load_dataset
from eval.domain import Labels
from service.inference.pair_features import LIST_FEATURES, PAIR_FEATURES
from tests.eval.dataset_files import ASKED, FOUND, write_folder

DEMO = Path(eval.demo.__file__).parent
TRUE = np.array([3.0, -1.0, 0.0, 2.0, 0.5])


def made(chance: np.random.Generator, n: int, *, cluster: str = "", answerable: bool = True) -> List:
    """A list of ten candidates, of which softmax over TRUE draws the right one; a list that answers scores higher."""
    pairs = chance.normal(size=(10, len(PAIR_FEATURES)))
    odds = np.exp(pairs @ TRUE)
    right = np.arange(10) == chance.choice(10, p=odds / odds.sum())
    whole = chance.normal(size=len(LIST_FEATURES)) + (1.5 if answerable else -1.5)
    place = int(np.argmax(right)) + 1
    ranks = {FUSED: place, "dense": None} if answerable else {}
    return List(Labels.QUESTIONS, "one", "paraphrase" if answerable else "offtopic", cluster or str(n), answerable,
                pairs, whole, right & answerable, ranks)  # fmt: skip


@pytest.fixture(scope="module")
def lists() -> list[List]:
    chance = np.random.default_rng(5)
    return [made(chance, n, answerable=n % 3 > 0) for n in range(400)]


def test_the_weights_that_made_the_choices_are_found_again(lists: list[List]) -> None:
    found = conditional([one for one in lists if one.right.any()], first="one")
    assert found[2] == pytest.approx(0, abs=0.2)
    assert np.corrcoef(found, TRUE)[0, 1] > 0.98  # smaller, for the penalty


def test_the_fit_is_at_the_minimum(lists: list[List]) -> None:
    """The loss, written down again from its definition, is flat there."""
    some = [one for one in lists if one.right.any()][:60]
    scale = np.std(np.vstack([one.pairs - one.pairs.mean(axis=0) for one in some]), axis=0)

    def loss(weights: np.ndarray) -> float:
        told = 0.0
        for one in some:
            odds = np.exp(one.pairs @ (weights / scale))
            told -= float(np.log(odds[one.right].sum() / odds.sum()))
        return told + 10.0 / 2 * float(weights @ weights)

    at = conditional(some, first="one") * scale
    assert approx_fprime(at, loss, 1e-6) == pytest.approx(np.zeros(len(at)), abs=0.02)


def test_a_list_counts_by_its_labels_and_its_dataset(lists: list[List]) -> None:
    some = [one for one in lists if one.right.any()]
    against = [replace(one, pairs=-one.pairs, labels=Labels.ACCEPTED, dataset="two") for one in some]
    assert conditional([*some, *against], first="one")[0] > 1
    assert conditional([*some, *against], first="two")[0] < conditional(some, first="one")[0]


def test_a_feature_that_never_varies_gets_no_weight(lists: list[List]) -> None:
    flat = [replace(one, pairs=one.pairs * [1, 1, 0, 1, 1]) for one in lists if one.right.any()]
    assert conditional(flat, first="one")[2] == 0


def test_the_best_candidate_has_the_log_odds_of_its_list(lists: list[List]) -> None:
    fit = fitted(lists, first="one")
    for one in lists[:20]:
        logits = fit.logits(one)
        assert logits.max() == pytest.approx(float(one.whole @ fit.whole.weights + fit.whole.bias))
    answering, not_answering = (
        [fit.logits(one).max() for one in lists if one.answerable is truth] for truth in (True, False)
    )
    assert np.mean(answering) > np.mean(not_answering) + 1


def test_the_first_right_candidate() -> None:
    one = made(np.random.default_rng(1), 1)
    order = np.zeros(10)
    assert first_right(one, order) == int(np.argmax(one.right)) + 1
    assert first_right(replace(one, right=np.zeros(10, dtype=bool)), order) is None


def test_unseen_means_that_the_topic_was_not_fitted_on() -> None:
    """Each topic's lists have a feature of their own by which a fit that has seen them would know the right one."""
    chance = np.random.default_rng(2)
    lists = []
    for n in range(120):
        one = made(chance, n, cluster=str(n // 2))
        lists.append(replace(one, right=np.arange(10) == chance.integers(10)))
    found = unseen(lists, first="one", repeats=3, seed=1, progress=lambda *_: None)
    assert found.hits.mean() == pytest.approx(0.5, abs=0.12)  # five of ten by chance


def test_rows_and_shares(lists: list[List]) -> None:
    nothing = replace(lists[0], pairs=np.empty((0, len(PAIR_FEATURES))), right=np.empty(0, dtype=bool))
    told: list[tuple[str, int, int]] = []
    some = [*lists[:120], nothing]
    found = unseen(some, first="one", repeats=2, seed=1, progress=lambda *now: told.append(now))
    assert told == [("folds", 1, 2), ("folds", 2, 2)]
    assert (found.tops[:, -1] == NOTHING).all()
    served, fused, dense = hit_rows(some, found, seed=1)
    assert (served.system, fused.system, dense.system) == ("reranked, unseen", FUSED, "dense")
    assert served.value.value > fused.value.value > dense.value.value == 0
    assert fused.gain is not None
    assert fused.gain.value == pytest.approx(served.value.value - fused.value.value)
    assert dense.p is not None
    assert dense.p < 0.01
    offtopic, kept = abstained(some, found, (-100.0, 100.0))
    assert (offtopic.part, offtopic.shares, kept.shares) == ("offtopic", (0.0, 1.0), (1.0, 0.0))


def test_each_forum_is_asked_about_the_others_too() -> None:
    demo = load_dataset(DEMO)
    (alone,) = asked([demo], seed=1)
    assert {case.slice for case in alone.foreign} == {SMALL_TALK_SLICE}
    first, second = asked([demo, demo], seed=1)
    assert first.own == second.own == alone.own
    parts = [case.slice for case in first.foreign]
    assert (parts.count(FOREIGN_SLICE), parts.count(SMALL_TALK_SLICE)) == (FOREIGN, len(SMALL_TALK))
    assert not any(case.answerable for case in first.foreign)
    assert len({case.id for case in (*first.own, *first.foreign)}) == len(first.own) + len(first.foreign)
    assert asked([demo, demo], seed=1)[0] == first


def test_forums_that_share_ids_and_topics_stay_apart(tmp_path: Path) -> None:
    """Two other forums with a q1 about their own topic 7: two questions, of two clusters."""
    question = {"id": "q1", "slice": "paraphrase", "question": "?", "golden": [{"topic": 7, "grade": 2}]}
    others = [load_dataset(write_folder(tmp_path / name, questions__yml=[question])) for name in ("left", "right")]
    about = asked([load_dataset(DEMO), *others], seed=1)[0]
    foreign = [case for case in about.foreign if case.slice == FOREIGN_SLICE]
    assert {case.id for case in foreign} == {"foreign left q1", "foreign right q1"}
    assert len({case.cluster for case in foreign}) == 2


def test_label_files_of_one_forum_are_kept_together_by_their_topics(tmp_path: Path) -> None:
    """The topics that one link is about are those of two questions: no fold may hold one and leave another out."""
    questions = [ASKED | {"id": f"q{topic}", "golden": [{"topic": topic, "grade": 2}]} for topic in (44, 45, 46)]
    folder = write_folder(tmp_path / "plot", questions__yml=questions, links__jsonl=[FOUND])
    (about,) = asked([load_dataset(folder)], seed=1)
    assert [case.cluster for case in about.own] == ["44", "44", "46", "44"]


def test_wordings_of_one_foreign_question_are_one_cluster(tmp_path: Path) -> None:
    wordings = [ASKED | {"id": name} for name in ("a", "b")]
    other = load_dataset(write_folder(tmp_path / "plot", questions__yml=wordings))
    about = asked([load_dataset(DEMO), other], seed=1)[0]
    assert len({case.cluster for case in about.foreign if case.slice == FOREIGN_SLICE}) == 1
