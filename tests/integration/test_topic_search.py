"""Keyword search by topics against a plain reference, and what it must leave out."""

import math
from collections import Counter
from dataclasses import replace

import pytest

from service.domain import TopicId
from service.errors import Transient
from service.ingest.ports import IndexedPost, Refusal
from service.store.bm25 import K1, B
from service.store.corpus import CorpusStore
from service.store.pool import Pool
from service.store.topic_search import COMMON_POSTS, TopicSearchStore
from tests.integration.store_data import PRIVATE, PUBLIC, TOPIC, indexed, post

BASIL = replace(TOPIC, id=TopicId(11), title="Basil", slug="basil")
STAFF = replace(TOPIC, id=TopicId(12), title="Staff", slug="staff", category_id=PRIVATE.id)
POSTS = [
    indexed(post(1), "red fruit cracks"),
    indexed(post(2), "red red skin"),
    indexed(post(3, topic_id=BASIL.id, post_number=1), "green leaf and red stem of a plant"),
    indexed(post(4, topic_id=BASIL.id, post_number=2), "fruit"),
    indexed(post(5, topic_id=STAFF.id, post_number=1), "red fruit"),
    indexed(post(6, topic_id=BASIL.id, post_number=3), "", refusal=Refusal.HIDDEN),
]


@pytest.fixture
async def search(pool: Pool) -> TopicSearchStore:
    corpus = CorpusStore(pool)
    await corpus.put_categories([PUBLIC, replace(PRIVATE, read_restricted=False)])
    await corpus.put_topics([TOPIC, BASIL, STAFF])
    await corpus.put_posts(POSTS)
    await corpus.put_categories([PUBLIC, PRIVATE])  # private from now on
    return TopicSearchStore(pool)


def reference(words: list[str], posts: list[IndexedPost]) -> dict[int, float]:
    """BM25 of topics as single texts, the words weighted by how few posts hold them."""
    stored = [one for one in POSTS if one.refusal is None]
    frequencies = Counter(word for one in stored for word in one.terms)
    mean = sum(one.length for one in stored) / len({one.post.topic_id for one in stored})
    scores: dict[int, float] = {}
    for topic_id in {one.post.topic_id for one in posts}:
        mine = [one for one in posts if one.post.topic_id == topic_id]
        length = sum(one.length for one in mine)
        for word in words:
            if tf := sum(one.terms.get(word, 0) for one in mine):
                idf = math.log(1 + (len(stored) - frequencies[word] + 0.5) / (frequencies[word] + 0.5))
                score = idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / mean))
                scores[topic_id] = scores.get(topic_id, 0.0) + score
    return scores


async def test_bm25_of_whole_topics_is_the_reference(search: TopicSearchStore) -> None:
    found = await search.keyword_topics(["red", "fruit", "unknown"], 10, words=5)
    expected = reference(["red", "fruit"], POSTS[:4])
    assert {one.candidate.topic_id: one.candidate.bm25 for one in found} == pytest.approx(expected)
    assert [one.candidate.topic_id for one in found] == sorted(expected, key=lambda topic: -expected[topic])
    assert [one.candidate.post_id for one in found if one.candidate.topic_id == TOPIC.id] == [POSTS[1].post.id]
    for one in found:
        assert set(one.weights) == {"red", "fruit"}
        assert one.asked == pytest.approx(sum(one.weights.values()))


async def test_a_topic_comes_with_the_post_that_answers_and_not_the_one_that_asks(
    search: TopicSearchStore, pool: Pool
) -> None:
    asked = [
        indexed(post(20, topic_id=BASIL.id, post_number=4), "why does basil wilt? does basil wilt in pots?"),
        indexed(post(21, topic_id=BASIL.id, post_number=5), "a basil will wilt where its roots stand in water."),
        indexed(post(22, topic_id=BASIL.id, post_number=6), "thanks."),
    ]
    await CorpusStore(pool).put_posts(asked)
    [one] = await search.keyword_topics(["basil", "wilt"], 10, words=5)
    assert one.candidate.post_id == asked[1].post.id
    [rest] = await search.keyword_topics(["basil", "wilt"], 10, words=5, exclude_post=(BASIL.id, 5))
    assert rest.candidate.post_id == asked[0].post.id


async def test_only_the_rarest_words_are_asked(search: TopicSearchStore) -> None:
    [one] = await search.keyword_topics(["red", "fruit", "cracks"], 10, words=1)
    assert set(one.weights) == {"cracks"}


async def test_what_is_excluded_is_no_part_of_its_topic(search: TopicSearchStore) -> None:
    words = ["red", "fruit"]
    later = await search.keyword_topics(words, 10, words=5, exclude_from=(TOPIC.id, 2))
    one_post = await search.keyword_topics(words, 10, words=5, exclude_post=(TOPIC.id, 1))
    for found, left in ((later, [POSTS[0], *POSTS[2:4]]), (one_post, POSTS[1:4])):
        assert {one.candidate.topic_id: one.candidate.bm25 for one in found} == pytest.approx(reference(words, left))


async def test_nothing_asked_or_stored_finds_nothing(search: TopicSearchStore) -> None:
    assert await search.keyword_topics([], 10, words=5) == []
    assert await search.keyword_topics(["unknown"], 10, words=5) == []


async def test_common_words_are_asked_only_where_no_other_is_known(search: TopicSearchStore, pool: Pool) -> None:
    many = [indexed(post(n, topic_id=BASIL.id), f"common thing {n}") for n in range(100, 100 + COMMON_POSTS)]
    await CorpusStore(pool).put_posts([*many, indexed(post(99, topic_id=BASIL.id), "common rest")])
    [one] = await search.keyword_topics(["common", "thing", "rest"], 10, words=5)
    assert set(one.weights) == {"thing", "rest"}
    [one] = await search.keyword_topics(["common", "unknown"], 10, words=5)
    assert set(one.weights) == {"common"}


async def test_a_search_that_takes_too_long_is_transient(search: TopicSearchStore, pool: Pool) -> None:
    async with pool.connection() as conn, conn.transaction():
        await conn.execute("LOCK TABLE posts")  # nobody can read it: as slow as a search can be
        with pytest.raises(Transient, match="statement timeout"):
            await TopicSearchStore(pool, timeout_seconds=0.05).keyword_topics(["red"], 5, words=5)
    assert len(await search.keyword_topics(["red"], 5, words=5)) == 2
