"""Clusters: whoever shares a topic that answers or helps is in one, however long the chain, and nobody else."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from eval.datasets import load_dataset, read_cases
from eval.datasets.clusters import clustered
from eval.domain import Case, Golden, Labels
from service.domain import TopicId
from tests.eval.dataset_files import ASKED, FOUND, write_folder

GOLDENS = st.lists(st.tuples(st.integers(1, 12), st.sampled_from([1, 2])), max_size=4)


def case(name: str, *golden: tuple[int, int]) -> Case:
    graded = tuple(Golden(TopicId(topic), None, grade) for topic, grade in golden)
    return Case(name, Labels.QUESTIONS, "paraphrase", "en", "?", graded, name)


def clusters(*cases: Case) -> list[str]:
    return [one.cluster for one in clustered(cases)]


def test_questions_that_share_any_answering_topic_are_together() -> None:
    assert clusters(case("a", (5, 2), (9, 2)), case("b", (9, 2)), case("c", (3, 2))) == ["5", "5", "3"]


def test_a_chain_is_one_cluster_whatever_the_order() -> None:
    chain = [case("a", (8, 2), (9, 2)), case("b", (2, 2), (3, 2)), case("c", (3, 2), (8, 2)), case("d", (9, 2))]
    assert clusters(*chain) == clusters(*reversed(chain)) == ["2"] * 4


def test_a_topic_that_helps_ties_but_not_to_a_question_without_an_answer() -> None:
    assert clusters(case("a", (5, 2), (9, 1)), case("b", (9, 2)), case("9", (9, 1))) == ["5", "5", "question 9"]


@given(st.lists(GOLDENS, max_size=12))
def test_together_means_joined_by_topics(goldens: list[list[tuple[int, int]]]) -> None:
    """Against the definition: reach grows by whoever shares a topic, until it doesn't."""
    cases = [case(f"q{at}", *golden) for at, golden in enumerate(goldens)]
    found = clusters(*cases)
    topics = [
        {topic for topic, _ in golden} if one.answerable else set() for one, golden in zip(cases, goldens, strict=True)
    ]
    for at in range(len(cases)):
        reached = {at}
        while (
            more := {other for other, its in enumerate(topics) if any(its & topics[one] for one in reached)} - reached
        ):
            reached |= more
        assert {other for other, cluster in enumerate(found) if cluster == found[at]} == reached


def test_every_label_file_is_clustered(tmp_path: Path) -> None:
    shared = {"golden": [{"topic": 400, "grade": 2}, {"topic": 109, "grade": 2}]}
    other = {"golden": [{"topic_id": 45}, {"topic_id": 99}], "topic_id": 52}
    folder = write_folder(
        tmp_path,
        questions__yml=[ASKED | {"golden": [{"topic": 500, "grade": 2}, {"topic": 400, "grade": 2}]},
                        ASKED | {"id": "q2"} | shared],
        links__jsonl=[FOUND, FOUND | other, FOUND | {"golden": [{"topic_id": 99}], "topic_id": 53}],
    )  # fmt: skip
    dataset = load_dataset(folder)
    assert [one.cluster for one in read_cases(dataset, Labels.QUESTIONS)] == ["109", "109"]
    assert [one.cluster for one in read_cases(dataset, Labels.LINKS)] == ["44", "44", "44"]
