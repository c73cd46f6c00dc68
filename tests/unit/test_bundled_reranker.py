import math
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.answer.zones import zone_of
from service.domain import Candidate, PostId, TopicId, TopicScores, Zone
from service.inference.bundled_reranker import LIST_WEIGHTS, NOTHING_ASKED, PAIR_WEIGHTS, BundledReranker
from service.inference.pair_features import LIST_FEATURES, PAIR_FEATURES
from service.inference.profiles import BUNDLED_RERANKER

BREAD = Candidate(
    post_id=PostId(1),
    topic_id=TopicId(1),
    post_number=2,
    title="Sourdough starter smells of acetone",
    slug="starter",
    body="Feed the starter twice a day and keep it below 26 degrees: the acetone smell goes away within a week.",
    username="anna",
    created_at=datetime(2024, 1, 1, tzinfo=UTC),
    cosine=0.90,
    bm25=12.0,
    fused=5 / 61,
    topic=TopicScores(cosine=0.90, mean=0.90, first=0.89, bm25=12.0, words=14.0),
)
QUESTION = "My sourdough starter smells of acetone, what should I do?"


def others(n: int = 10, cosine: float = 0.80) -> list[Candidate]:
    return [
        replace(
            BREAD,
            post_id=PostId(10 + i),
            topic_id=TopicId(10 + i),
            title=f"Trip report {i}",
            body="We took the early bus and walked along the river.",
            cosine=cosine - i / 1000,
            bm25=None,
            fused=1 / (62 + i),
            topic=TopicScores(cosine=cosine - i / 1000, mean=cosine - i / 1000, first=cosine - i / 1000),
        )
        for i in range(n)
    ]


def test_a_weight_for_each_feature() -> None:
    assert len(PAIR_WEIGHTS) == len(PAIR_FEATURES)
    assert len(LIST_WEIGHTS) == len(LIST_FEATURES)


async def test_the_answer_comes_first_with_a_logit_of_the_normal_zone() -> None:
    logits = await BundledReranker().rerank(QUESTION, [*others(), BREAD])
    assert logits.index(max(logits)) == len(logits) - 1
    assert zone_of(max(logits), BUNDLED_RERANKER) is Zone.NORMAL


async def test_order_of_the_candidates_changes_no_logit() -> None:
    candidates = [*others(), BREAD]
    logits = await BundledReranker().rerank(QUESTION, candidates)
    backwards = await BundledReranker().rerank(QUESTION, candidates[::-1])
    assert backwards[::-1] == pytest.approx(logits)


@pytest.mark.parametrize("question", ["What is the capital of Australia?", "Raconte-moi une blague", "who are you?"])
async def test_questions_off_the_subject_abstain(question: str) -> None:
    logits = await BundledReranker().rerank(question, others())
    assert zone_of(max(logits), BUNDLED_RERANKER) is Zone.ABSTAIN


@pytest.mark.parametrize("question", ["", "hello", "merci !", "???", "\0"])
async def test_a_question_without_words_abstains(question: str) -> None:
    assert await BundledReranker().rerank(question, [BREAD]) == [NOTHING_ASKED]


@pytest.mark.parametrize("better", [{"cosine": 0.95}, {"mean": 0.95}, {"first": 0.95}, {"bm25": 20.0}, {"words": 20.0}])
async def test_more_evidence_ranks_higher(better: dict[str, float]) -> None:
    topic = BREAD.topic or TopicScores()
    twin = replace(BREAD, post_id=PostId(2), topic_id=TopicId(2), topic=replace(topic, **better))
    plain, favoured = await BundledReranker().rerank(QUESTION, [BREAD, twin])
    assert favoured > plain


async def test_what_a_topic_lacks_tells_nothing() -> None:
    """As a first post without a vector: the topic stands where its other scores put it."""
    best, *rest = [replace(BREAD, title=BREAD.title), *others(3, cosine=0.85)]
    unknown = replace(best, topic=replace(best.topic or TopicScores(), first=None))
    logits = await BundledReranker().rerank(QUESTION, [*rest, unknown])
    assert logits.index(max(logits)) == len(rest)


async def test_candidates_without_topic_scores_are_judged_by_their_own() -> None:
    found = [replace(one, topic=None) for one in (*others(), BREAD)]
    logits = await BundledReranker().rerank(QUESTION, found)
    assert logits.index(max(logits)) == len(found) - 1


async def test_keywords_alone_are_scored() -> None:
    found = [replace(one, cosine=None, topic=TopicScores(bm25=one.bm25, words=one.bm25)) for one in (*others(), BREAD)]
    logits = await BundledReranker().rerank(QUESTION, found)
    assert logits.index(max(logits)) == len(found) - 1
    assert zone_of(max(logits), BUNDLED_RERANKER) is not Zone.NORMAL


async def test_no_candidates() -> None:
    assert await BundledReranker().rerank(QUESTION, []) == []


async def test_a_list_takes_a_few_milliseconds() -> None:
    many = [replace(one, body=(BREAD.body + " ") * 3) for one in others(25)]
    await BundledReranker().rerank(QUESTION, many)
    start = perf_counter()
    await BundledReranker().rerank(QUESTION, many)
    assert perf_counter() - start < 0.1  # 5 ms on an idle core


@given(
    question=st.text(max_size=60),
    parts=st.lists(
        st.tuples(
            st.text(max_size=60),
            st.text(max_size=60),
            st.none() | st.floats(-1, 1),
            st.none() | st.floats(0, 1e3),
            st.integers(1, 3),
        ),
        max_size=6,
    ),
)
@settings(max_examples=100)
async def test_logits_are_finite(question: str, parts: list[tuple[str, str, float | None, float | None, int]]) -> None:
    candidates = [
        replace(
            BREAD,
            title=title,
            body=body,
            cosine=cosine,
            bm25=bm25,
            fused=0.0,
            topic=None if whole == 1 else TopicScores(cosine=cosine, mean=cosine if whole == 2 else None, words=bm25),
        )
        for title, body, cosine, bm25, whole in parts
    ]
    logits = await BundledReranker().rerank(question, candidates)
    assert len(logits) == len(candidates)
    assert all(map(math.isfinite, logits))
    assert logits == await BundledReranker().rerank(question, candidates)
