"""The channels of whole topics against plain references, what they leave out, and that they are kept current."""

import asyncio
import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from pgvector import HalfVector

from service.domain import CategoryId, Post, PostId, TopicHit, TopicId
from service.ingest.ports import IndexedPost, Refusal
from service.store import topic_channels
from service.store.bm25 import K1, B
from service.store.corpus import CorpusStore
from service.store.ledger import LedgerStore
from service.store.migrate import migrations_folder
from service.store.pool import Pool, connection
from service.store.search import SearchStore
from service.store.topic_search import TopicSearchStore
from tests.integration.store_data import (
    POST,
    PRIVATE,
    PROFILE,
    PUBLIC,
    TOPIC,
    indexed,
    later,
    passage,
    post,
    rows,
    unit,
)

OTHER = replace(TOPIC, id=TopicId(11), title="Basil", slug="basil")
THIRD = replace(TOPIC, id=TopicId(12), title="Chervil", slug="chervil")
TOPICS = (TOPIC, OTHER, THIRD)
SECOND_PROFILE = replace(PROFILE, version=2, dimensions=3)


@pytest.fixture
async def corpus(pool: Pool) -> CorpusStore:
    store = CorpusStore(pool)
    await store.put_categories([PUBLIC, PRIVATE])
    await store.put_topics(TOPICS)
    return store


@pytest.fixture
def search(pool: Pool) -> SearchStore:
    return SearchStore(pool)


def post_of(topic: TopicId, number: int, **changes: object) -> IndexedPost:
    """Post `number` of a topic; its words are given by the caller."""
    body = str(changes.pop("body", "red"))
    one = replace(POST, id=PostId(int(topic) * 1000 + number), topic_id=topic, post_number=number, **changes)  # type: ignore[arg-type]  # by name
    return indexed(one, body)


def topic_bm25(posts: list[IndexedPost], lexemes: list[str]) -> dict[TopicId, float]:
    """Okapi BM25 with Lucene's idf over topics, word for word from its definition."""
    words: dict[TopicId, Counter[str]] = defaultdict(Counter)
    for one in posts:
        words[one.post.topic_id].update(one.terms)
    mean = sum(count.total() for count in words.values()) / len(words)
    scores: dict[TopicId, float] = {}
    for lexeme in set(lexemes):
        holding = [topic for topic, count in words.items() if count[lexeme]]
        idf = math.log(1 + (len(words) - len(holding) + 0.5) / (len(holding) + 0.5))
        for topic in holding:
            tf = words[topic][lexeme]
            score = idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * words[topic].total() / mean))
            scores[topic] = scores.get(topic, 0.0) + score
    return scores


def scores(found: list[TopicHit]) -> dict[TopicId, float]:
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    return {hit.topic_id: hit.score for hit in found}


async def test_words_of_whole_topics_are_the_reference(corpus: CorpusStore, search: SearchStore) -> None:
    chance = random.Random(3)
    posts = [
        post_of(topic.id, n, body=" ".join(chance.choices("abcdefgh", range(1, 9), k=chance.randint(2, 12))))
        for topic in TOPICS
        for n in range(1, 6)
    ]
    await corpus.put_posts(posts)
    for asked in (["a"], ["h", "h", "b"], ["a", "c", "unknown"], ["unknown"], []):
        assert scores(await search.keyword_topics(asked, 10)) == pytest.approx(topic_bm25(posts, asked))
    without = [one for one in posts if one.post.topic_id != OTHER.id or one.post.post_number < 3]
    found = scores(await search.keyword_topics(["g", "h"], 10, exclude_from=(OTHER.id, 3)))
    # The corpus's own size and mean length stay what they are: they move with the whole index.
    assert found.keys() == topic_bm25(without, ["g", "h"]).keys()
    whole = scores(await search.keyword_topics(["g", "h"], 10, exclude_from=(OTHER.id, 1)))
    assert OTHER.id not in whole
    one_less = scores(await search.keyword_topics(["g", "h"], 10, exclude_post=(OTHER.id, 1)))
    assert OTHER.id in one_less
    assert one_less[OTHER.id] != scores(await search.keyword_topics(["g", "h"], 10))[OTHER.id]


async def vectors_of(pool: Pool, grain: str) -> Mapping[tuple[int, int], np.ndarray]:
    found = await rows(pool, "SELECT profile_id, topic_id, embedding FROM topic_embeddings WHERE grain = %s", grain)
    return {(profile, topic): vector.to_numpy().astype(np.float64) for profile, topic, vector in found}


async def check_current(pool: Pool) -> None:
    """The stored lengths and vectors of topics are what the posts as they are now give."""
    stored = await rows(
        pool,
        "SELECT profile_id, topic_id, post_number, embedding FROM embeddings JOIN posts USING (post_id)"
        " ORDER BY profile_id, topic_id, post_id",
    )
    groups: dict[tuple[int, int], list[np.ndarray]] = defaultdict(list)
    firsts: dict[tuple[int, int], np.ndarray] = {}
    for profile, topic, number, vector in stored:
        value = vector.to_numpy().astype(np.float64)
        groups[profile, topic].append(value)
        if number == 1:
            firsts.setdefault((profile, topic), value)
    means = await vectors_of(pool, "mean")
    assert means.keys() == groups.keys()
    for key, values in groups.items():
        mean = np.mean(values, axis=0)
        assert means[key] == pytest.approx(mean / np.linalg.norm(mean), abs=5e-3)
    first = await vectors_of(pool, "first")
    assert first.keys() == firsts.keys()
    assert all(first[key] == pytest.approx(value) for key, value in firsts.items())
    lengths = dict(await rows(pool, "SELECT topic_id, length FROM topics"))
    counted = dict(await rows(pool, "SELECT topic_id, sum(length) FROM posts WHERE refusal IS NULL GROUP BY topic_id"))
    assert lengths == {topic: counted.get(topic, 0) for topic in lengths}
    assert await rows(
        pool, "SELECT count(*) FROM postings JOIN posts USING (post_id) WHERE postings.topic_id <> posts.topic_id"
    ) == [(0,)]


def near(one: IndexedPost, chance: random.Random, dimensions: int = 4) -> list[float]:
    return [abs(chance.gauss(0, 1)) + 0.01 for _ in range(dimensions)]


def worded(one: Post, words: list[str]) -> IndexedPost:
    return IndexedPost(one, None, "...", Counter(words), len(words))


async def test_topics_are_current_whatever_writers_do_at_once(corpus: CorpusStore, pool: Pool) -> None:
    """Writers put, move, refuse, remove and embed the same posts of three topics, under two profiles."""

    async def write(seed: int) -> None:
        chance = random.Random(seed)
        for step in range(12):
            moment = later(step * 8 + seed)
            batch = [
                worded(
                    post(n, topic_id=chance.choice(TOPICS).id, updated_at=moment, post_number=chance.randint(1, 3)),
                    chance.choices("abcdef", k=chance.choice((0, 5))),
                )
                for n in chance.sample(range(1, 20), 4)
            ]
            await corpus.put_posts(batch)
            for profile in (PROFILE, SECOND_PROFILE):
                made = [passage(one.post, *near(one, chance, profile.dimensions)) for one in batch[:3]]
                await corpus.put_passages(profile, made)
            gone = post(chance.randrange(1, 20), topic_id=chance.choice(TOPICS).id, updated_at=moment)
            match step % 4:
                case 1:
                    await corpus.remove_post(gone.id, updated_at=moment)
                case 2:
                    await corpus.put_posts([indexed(gone, refusal=Refusal.HIDDEN)])
                case 3 if seed == 1:
                    await corpus.remove_topic(THIRD.id)

    await asyncio.gather(*map(write, range(5)))
    assert await vectors_of(pool, "mean")
    await check_current(pool)


async def put_three(corpus: CorpusStore) -> None:
    """Topic 10's mean is (1, 1, 0, 0), its first post (1, 0, 0, 0); topic 11 is all (0, 0, 1, 0)."""
    posts = [post_of(TOPIC.id, 1), post_of(TOPIC.id, 2), post_of(OTHER.id, 1), post_of(OTHER.id, 2)]
    await corpus.put_posts(posts)
    vectors = [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 1, 0)]
    await corpus.put_passages(PROFILE, [passage(one.post, *v) for one, v in zip(posts, vectors, strict=True)])


async def test_a_moved_post_without_words_leaves_nothing_in_its_topic(corpus: CorpusStore, pool: Pool) -> None:
    """Its vectors go with it, into a private topic too; so they do where only its number changes, or it is refused."""
    private = replace(OTHER, category_id=PRIVATE.id)
    await corpus.put_topics([private])
    await put_three(corpus)
    without = [replace(post_of(TOPIC.id, n), terms={}, length=0) for n in (1, 2)]
    await corpus.put_posts(without)
    for minutes, place in enumerate(((private.id, 3), (private.id, 1), (TOPIC.id, 1)), start=1):
        topic_id, number = place
        moved = replace(without[0].post, topic_id=topic_id, post_number=number, updated_at=later(minutes))
        await corpus.put_posts([replace(without[0], post=moved)])
        await check_current(pool)
    gone = replace(without[0].post, topic_id=private.id, updated_at=later(9))
    await corpus.put_posts([indexed(gone, refusal=Refusal.HIDDEN)])
    await check_current(pool)


async def test_means_and_first_posts_are_found_by_cosine(corpus: CorpusStore, search: SearchStore) -> None:
    await put_three(corpus)
    asked = unit(1, 1, 0.5, 0)
    assert scores(await search.mean_topics(PROFILE, asked, 5)) == pytest.approx(
        {10: math.sqrt(2) / 1.5, 11: 0.5 / 1.5}, abs=1e-3
    )
    assert scores(await search.first_post_topics(PROFILE, asked, 5)) == pytest.approx(
        {10: 1 / 1.5, 11: 0.5 / 1.5}, abs=1e-3
    )
    assert await search.mean_topics(replace(PROFILE, version=9), asked, 5) == []


async def test_what_is_excluded_is_no_part_of_the_asking_topic(corpus: CorpusStore, search: SearchStore) -> None:
    await put_three(corpus)
    asked = unit(0, 1, 0, 0)

    async def both(**without: tuple[TopicId, int]) -> tuple[dict[TopicId, float], dict[TopicId, float]]:
        means = await search.mean_topics(PROFILE, asked, 5, **without)
        firsts = await search.first_post_topics(PROFILE, asked, 5, **without)
        return scores(means), scores(firsts)

    means, firsts = await both(exclude_from=(TOPIC.id, 2))
    assert (means[TOPIC.id], firsts[TOPIC.id]) == pytest.approx((0, 0), abs=1e-3)
    means, firsts = await both(exclude_from=(TOPIC.id, 1))
    assert means.keys() == firsts.keys() == {OTHER.id}
    means, firsts = await both(exclude_post=(TOPIC.id, 1))
    assert means[TOPIC.id] == pytest.approx(1, abs=1e-3)
    assert TOPIC.id not in firsts
    [best] = await search.best_posts([TOPIC.id], PROFILE, asked, ["red"], exclude_post=(TOPIC.id, 1))
    assert best.post_number == 2
    assert best.topic is not None
    assert best.topic.mean == pytest.approx(1, abs=1e-3)
    assert best.topic.first is None


async def test_no_exclusion_is_left_out_of_account(search: SearchStore) -> None:
    """Two of them are no run of posts: every channel of topics says so."""
    asked = unit(0, 1, 0, 0)
    both = {"exclude_from": (TOPIC.id, 2), "exclude_post": (OTHER.id, 1)}
    for call in (
        search.keyword_topics(["red"], 5, **both),
        search.mean_topics(PROFILE, asked, 5, **both),
        search.first_post_topics(PROFILE, asked, 5, **both),
        search.best_posts([TOPIC.id], PROFILE, asked, ["red"], **both),
    ):
        with pytest.raises(ValueError, match="exclude_from and exclude_post"):
            await call


async def test_the_post_that_answers_comes_with_its_topics_scores(corpus: CorpusStore, search: SearchStore) -> None:
    """Not the first, which asks in the question's own words; nor one that asks again, nor a word of thanks."""
    posts = [
        post_of(TOPIC.id, 1, body="red red red red ?"),
        post_of(TOPIC.id, 2, body="has anybody seen red and red and red ? really red ?"),
        post_of(TOPIC.id, 3, body="paint it red on a dry day . wait . done ."),
        post_of(TOPIC.id, 4, body="thanks"),
        post_of(OTHER.id, 1, body="green"),
        post_of(THIRD.id, 1, body="how to get red with madder " * 15),
        post_of(THIRD.id, 2, body="thanks"),
    ]
    await corpus.put_posts(posts)
    vectors = [(1, 0, 0, 0), (1, 0.1, 0, 0), (1, 0.5, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)]
    await corpus.put_passages(PROFILE, [passage(one.post, *v) for one, v in zip(posts, vectors, strict=False)])
    found = await search.best_posts([topic.id for topic in TOPICS], PROFILE, unit(1, 0, 0, 0), ["red"])
    best = {one.topic_id: one for one in found}
    assert {topic: one.post_number for topic, one in best.items()} == {TOPIC.id: 3, OTHER.id: 1, THIRD.id: 1}
    mine = best[TOPIC.id]
    assert mine.topic is not None
    assert mine.topic.cosine == pytest.approx(1, abs=1e-3)
    assert mine.cosine == pytest.approx(1 / math.hypot(1, 0.5), abs=1e-3)
    assert mine.topic.first == pytest.approx(1, abs=1e-3)
    [worded] = await search.keyword_posts(["red"], 1)
    assert worded.bm25 == pytest.approx(mine.topic.bm25)
    assert mine.bm25 is not None
    assert mine.topic.bm25 is not None
    assert 0 < mine.bm25 < mine.topic.bm25
    assert (best[OTHER.id].bm25, best[OTHER.id].body) == (None, "green")
    [by_words] = await search.best_posts([TOPIC.id], PROFILE, None, ["red"])
    assert (by_words.post_number, by_words.cosine) == (3, None)
    assert by_words.topic is not None
    assert (by_words.topic.cosine, by_words.topic.mean, by_words.topic.first) == (None, None, None)
    assert await search.best_posts([], PROFILE, unit(1, 0, 0, 0), ["red"]) == []


async def test_what_stops_being_public_is_out_at_once(corpus: CorpusStore, search: SearchStore) -> None:
    await put_three(corpus)
    asked = unit(1, 1, 1, 1)

    async def found() -> set[frozenset[int]]:
        channels = (
            await search.mean_topics(PROFILE, asked, 5),
            await search.first_post_topics(PROFILE, asked, 5),
            await search.keyword_topics(["red"], 5),
            await search.best_posts([TOPIC.id, OTHER.id], PROFILE, asked, ["red"]),
        )
        return {frozenset(hit.topic_id for hit in hits) for hits in channels}

    assert await found() == {frozenset({10, 11})}
    for hidden in ({"visible": False}, {"deleted": True}, {"archetype": "private_message"},
                   {"category_id": PRIVATE.id}, {"category_id": CategoryId(99)}, {"category_id": None}):  # fmt: skip
        await corpus.put_topics([replace(OTHER, **hidden)], read_at=await corpus.now())
        assert await found() == {frozenset({10})}
    await corpus.put_topics([OTHER], read_at=await corpus.now())
    await corpus.put_posts([indexed(post_of(TOPIC.id, 1).post, refusal=Refusal.HIDDEN)])
    assert TOPIC.id not in scores(await search.first_post_topics(PROFILE, asked, 5))
    assert scores(await search.mean_topics(PROFILE, unit(0, 1, 0, 0), 5))[TOPIC.id] == pytest.approx(1, abs=1e-3)
    await corpus.put_categories([])
    assert await found() == {frozenset()}


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (["tomatos", "water"], ["tomato", "water"]),
        (["wateer", "wateer"], ["water", "water"]),
        (["zzzzzzzz", "water"], ["water"]),
        (["wate"], []),  # too short to tell
        (["tomato"], ["tomato"]),
        ([], []),
    ],
)
async def test_words_that_no_post_has_are_mended(
    corpus: CorpusStore, search: SearchStore, asked: list[str], meant: list[str]
) -> None:
    await corpus.put_posts([post_of(TOPIC.id, 1, body="tomato water rosemary")])
    assert await search.asked_words(asked, 5) == meant


async def test_of_a_long_question_the_rarest_words_are_asked(corpus: CorpusStore, search: SearchStore) -> None:
    bodies = ["tomato water", "tomato water", "tomato rosemary"]
    await corpus.put_posts([post_of(TOPIC.id, n, body=body) for n, body in enumerate(bodies, start=1)])
    asked = ["tomato", "rosemary", "water", "rosemary", "wateer"]
    assert await search.asked_words(asked, 9) == ["tomato", "rosemary", "water", "rosemary", "water"]
    assert await search.asked_words(asked, 2) == ["rosemary", "water", "rosemary", "water"]
    assert await search.asked_words([*asked, "zzzzzzzz"], 1) == ["rosemary", "rosemary"]


async def test_what_very_many_posts_have_is_asked_only_if_nothing_else_is(
    corpus: CorpusStore, search: SearchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = ["tomato water", "tomato water", "tomato water rosemary"]
    await corpus.put_posts([post_of(TOPIC.id, n, body=body) for n, body in enumerate(bodies, start=1)])
    assert await search.asked_words(["tomato", "rosemary", "water"], 9) == ["tomato", "rosemary", "water"]
    monkeypatch.setattr("service.store.search.COMMON_POSTS", 2)
    assert await search.asked_words(["tomato", "rosemary", "water"], 9) == ["rosemary"]
    assert await search.asked_words(["water", "tomato"], 9) == ["water", "tomato"]


async def plan(pool: Pool, statement: str, parameters: dict[str, object]) -> str:
    async with connection(pool) as conn, conn.transaction():
        await conn.execute("ANALYZE")
        await conn.execute("SET LOCAL enable_seqscan = off")
        await conn.execute("SET LOCAL pg_trgm.similarity_threshold = 0.4")
        cursor = await conn.execute(f"EXPLAIN {statement}".encode(), parameters, prepare=False)
        return "\n".join([row[0] async for row in cursor])


async def test_every_channel_reads_its_index(corpus: CorpusStore, pool: Pool) -> None:
    await put_three(corpus)
    given: dict[str, object] = {
        "lexemes": ["red"], "times": [1.0], "posts": 4, "mean_length": 1.0, "topics": 2, "mean_topic_length": 2.0,
        "k1": K1, "b": B, "asking_topic": 10, "from_number": 2, "to_number": 9, "limit": 5, "window": 10,
        "profile_id": 1, "vector": HalfVector(unit(1, 0, 0, 0)), "grain": "mean", "topic_ids": [10, 11],
        "words": ["tomatos"], "similar": 3,
    }  # fmt: skip
    for statement, indexes in (
        (topic_channels.WORDED, ("postings_pkey", "posts_topic")),
        (topic_channels.NEAREST, ("topic_embeddings_pkey", "posts_topic", "embeddings_")),
        (topic_channels.BEST_POSTS, ("posts_topic", "postings_", "embeddings_", "topic_embeddings_")),
        (topic_channels.RESEMBLING, ("document_frequencies_trigrams",)),
    ):
        more = topic_channels.ANSWERS if statement is topic_channels.BEST_POSTS else {}
        text = await plan(pool, statement, given | more | {"read_chars": 3000})
        assert [index for index in indexes if index not in text] == []


async def test_a_filled_index_gets_its_topics_by_the_migration(pool: Pool, corpus: CorpusStore) -> None:
    """The statements of the migration over what is stored give what writing kept."""
    await put_three(corpus)
    stored = "SELECT profile_id, grain, topic_id, embedding::text FROM topic_embeddings ORDER BY 1, 2, 3"
    kept = await rows(pool, stored)
    async with connection(pool) as conn:
        await conn.execute("DELETE FROM topic_embeddings")
        await conn.execute("UPDATE topics SET length = 0")
        await conn.execute("DROP INDEX document_frequencies_trigrams")
        await conn.execute("DROP VIEW public_topics")
        await conn.execute("ALTER TABLE topics DROP COLUMN length")
        await conn.execute("DROP TABLE topic_embeddings")
        await conn.execute("ALTER TABLE postings DROP COLUMN topic_id")
        await conn.execute((migrations_folder() / "0006_topics.sql").read_bytes())
    assert kept == await rows(pool, stored)
    await check_current(pool)


async def test_a_post_that_asked_us_is_no_source(pool: Pool, corpus: CorpusStore, search: SearchStore) -> None:
    """Its topic has the answer of the people, and none where nobody else wrote."""
    asking = [post_of(TOPIC.id, 1, body="red ?"), post_of(OTHER.id, 1, body="red red")]
    await corpus.put_posts([*asking, post_of(TOPIC.id, 2, body="paint it red")])
    for one in asking:
        await LedgerStore(pool).claim(one.post, now=datetime.now(UTC))
    topics = [TOPIC.id, OTHER.id]
    found = await search.best_posts(topics, PROFILE, None, ["red"])
    by_words = [match.candidate for match in await TopicSearchStore(pool).keyword_topics(["red"], 5, words=5)]
    for posts in (found, by_words):
        assert [(one.topic_id, one.post_number) for one in posts] == [(TOPIC.id, 2)]
