"""Both search channels against a plain reference, what they must leave out, and the plans that they run by."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from pgvector import HalfVector

from service.domain import CategoryId, EmbeddingProfile, IndexKind, TopicId, Vector
from service.errors import Transient
from service.ingest.ports import IndexedPost, Refusal
from service.store.bm25 import K1, B
from service.store.corpus import CorpusStore
from service.store.kept import Kept
from service.store.pool import Pool
from service.store.profile_sql import nearest_statement
from service.store.profiles import ProfileStore
from service.store.search import _KEYWORDS, SearchStore
from tests.integration.store_data import POST, PRIVATE, PROFILE, PUBLIC, TOPIC, indexed, later, passage, post, unit

OTHER = replace(TOPIC, id=TopicId(11), title="Basil", slug="basil")
CHANCE = random.Random(7)


@pytest.fixture
async def corpus(pool: Pool) -> CorpusStore:
    store = CorpusStore(pool)
    await store.put_categories([PUBLIC, PRIVATE])
    await store.put_topics([TOPIC, OTHER])
    return store


@pytest.fixture
def search(pool: Pool) -> SearchStore:
    return SearchStore(pool)


def random_posts(count: int) -> list[IndexedPost]:
    vocabulary = [f"w{n}" for n in range(30)]
    weights = [1 / (n + 1) for n in range(30)]
    return [
        indexed(
            post(n, topic_id=TOPIC.id if n % 3 else OTHER.id),
            " ".join(CHANCE.choices(vocabulary, weights, k=CHANCE.randint(3, 40))),
        )
        for n in range(1, count + 1)
    ]


def bm25(posts: Sequence[IndexedPost], lexemes: Sequence[str], k1: float, b: float) -> dict[int, float]:
    """Okapi BM25 with Lucene's idf, word for word from its definition."""
    mean = sum(one.length for one in posts) / len(posts)
    frequencies = Counter(lexeme for one in posts for lexeme in one.terms)
    scores: dict[int, float] = {}
    for one in posts:
        for lexeme in lexemes:
            if lexeme not in one.terms:
                continue
            tf, df = one.terms[lexeme], frequencies[lexeme]
            idf = math.log(1 + (len(posts) - df + 0.5) / (df + 0.5))
            score = idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * one.length / mean))
            scores[one.post.id] = scores.get(one.post.id, 0.0) + score
    return scores


@pytest.mark.parametrize(("k1", "b"), [(K1, B), (1.5, 0.4)])
async def test_bm25_is_the_reference(corpus: CorpusStore, pool: Pool, k1: float, b: float) -> None:
    posts = random_posts(120)
    await corpus.put_posts(posts)
    search = SearchStore(pool, k1=k1, b=b)
    for lexemes in (["w0"], ["w3", "w29", "w3"], ["w1", "w2", "w9", "unknown"], ["unknown"], []):
        found = await search.keyword_posts(lexemes, 10)
        reference = bm25(posts, lexemes, k1, b)
        best = sorted(reference, key=lambda post_id: (-reference[post_id], post_id))[:10]
        assert [one.post_id for one in found] == best
        assert [one.bm25 for one in found] == pytest.approx([reference[one] for one in best])


async def test_a_candidate_is_whole(corpus: CorpusStore, search: SearchStore) -> None:
    await corpus.put_posts([indexed(POST, "red fruit")])
    await corpus.put_passages(PROFILE, [passage(POST, 1, 0, 0, 0)])
    [worded] = await search.keyword_posts(["red"], 5)
    [nearest] = await search.nearest_posts(PROFILE, unit(1, 1, 0, 0), 5)
    assert (worded.title, worded.slug, worded.body, worded.username, worded.created_at) == (
        TOPIC.title, TOPIC.slug, "red fruit", POST.username, POST.created_at
    )  # fmt: skip
    assert (worded.cosine, nearest.bm25) == (None, None)
    assert nearest.cosine == pytest.approx(math.sqrt(0.5), abs=1e-3)
    assert replace(worded, bm25=None) == replace(nearest, cosine=None)


async def test_an_empty_index_finds_nothing_and_is_not_remembered_as_empty(
    corpus: CorpusStore, search: SearchStore
) -> None:
    assert await search.keyword_posts(["red"], 5) == []
    assert await search.nearest_posts(PROFILE, unit(1, 0, 0, 0), 5) == []
    await corpus.put_posts([indexed(POST, "red")])
    assert len(await search.keyword_posts(["red"], 5)) == 1


async def test_the_corpus_is_counted_once_a_minute(corpus: CorpusStore, pool: Pool) -> None:
    now = 0.0
    search = SearchStore(pool, clock=lambda: now)
    await corpus.put_posts([indexed(POST, "red")])
    [first] = await search.keyword_posts(["red"], 1)
    await corpus.put_posts([indexed(post(n), "blue") for n in range(2, 9)])
    now = 59.0
    assert await search.keyword_posts(["red"], 1) == [first]
    now = 61.0
    [after] = await search.keyword_posts(["red"], 1)
    assert (after.bm25 or 0) > (first.bm25 or 0)


async def found_by(search: SearchStore) -> set[tuple[int, ...]]:
    """The ids that each channel finds for what every post here has in common."""
    worded = await search.keyword_posts(["red"], 50)
    nearest = await search.nearest_posts(PROFILE, unit(1, 1, 1, 1), 50)
    return {tuple(sorted(one.post_id for one in found)) for found in (worded, nearest)}


async def test_what_stops_being_public_is_out_at_once(corpus: CorpusStore, search: SearchStore) -> None:
    posts = [post(1), post(2, topic_id=OTHER.id)]
    await corpus.put_posts([indexed(one, "red") for one in posts])
    await corpus.put_passages(PROFILE, [passage(one, 1, 0, 0, 0) for one in posts])
    assert await found_by(search) == {(101, 102)}
    for hidden in ({"visible": False}, {"deleted": True}, {"archetype": "private_message"},
                   {"category_id": PRIVATE.id}, {"category_id": CategoryId(99)}, {"category_id": None}):  # fmt: skip
        await corpus.put_topics([replace(OTHER, **hidden)], read_at=await corpus.now())
        assert await found_by(search) == {(101,)}
    await corpus.put_topics([OTHER], read_at=await corpus.now())
    assert await found_by(search) == {(101, 102)}
    await corpus.put_categories([replace(PUBLIC, read_restricted=True)])
    assert await found_by(search) == {()}
    await corpus.put_categories([])
    assert await found_by(search) == {()}
    await corpus.put_categories([PUBLIC])
    await corpus.put_posts([indexed(posts[0], refusal=Refusal.HIDDEN)])
    assert await found_by(search) == {(102,)}


async def test_exclusion_is_of_the_question_and_what_came_after(corpus: CorpusStore, search: SearchStore) -> None:
    posts = [post(n) for n in range(1, 6)]
    await corpus.put_posts([indexed(one, "red") for one in posts])
    await corpus.put_passages(PROFILE, [passage(one, 1, 0, 0, 0) for one in posts])
    for exclude, left in (((TOPIC.id, 3), [101, 102]), ((TOPIC.id, 1), []), ((OTHER.id, 1), [101, 102, 103, 104, 105])):
        worded = await search.keyword_posts(["red"], 9, exclude_from=exclude)
        nearest = await search.nearest_posts(PROFILE, unit(1, 0, 0, 0), 9, exclude_from=exclude)
        assert [one.post_id for one in worded] == [one.post_id for one in nearest] == left


KINDS = [replace(PROFILE, version=n, dimensions=16, index_kind=kind) for n, kind in enumerate(IndexKind, start=1)]


async def put_vectors(corpus: CorpusStore, pool: Pool, profile: EmbeddingProfile, posts: int, passages: int) -> None:
    """That many posts; three of four are in TOPIC, and nearest to (1, 0, 0, ...)."""
    chosen = [
        replace(one, post=replace(one.post, topic_id=TOPIC.id if n % 4 else OTHER.id))
        for n, one in enumerate(random_posts(posts))
    ]
    await corpus.put_posts(chosen)
    await corpus.put_passages(
        profile,
        [
            passage(one.post, *(CHANCE.gauss(3 if d == 0 and n % 4 else 0, 1) for d in range(16)), ordinal=ordinal)
            for n, one in enumerate(chosen)
            for ordinal in range(passages)
        ],
    )
    await ProfileStore(pool).activate(profile.name)


async def reference(
    pool: Pool, profile: EmbeddingProfile, vector: Vector, limit: int, *, without: TopicId | None = None
) -> list[tuple[int, float]]:
    """The best passage of each post by numpy, from the vectors as they are stored."""
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT post_id, topic_id, embedding FROM embeddings JOIN posts USING (post_id)"
            " WHERE profile_id = (SELECT profile_id FROM embedding_profiles WHERE version = %s)",
            (profile.version,),
        )
        stored = [(post_id, topic_id, value.to_numpy().astype(np.float64)) async for post_id, topic_id, value in cursor]
    query = HalfVector(vector).to_numpy().astype(np.float64)
    best: dict[int, float] = {}
    for post_id, topic_id, value in stored:
        if topic_id != without:
            cosine = float(value @ query / np.linalg.norm(value) / np.linalg.norm(query))
            best[post_id] = max(best.get(post_id, -1.0), cosine)
    return sorted(best.items(), key=lambda pair: -pair[1])[:limit]


@pytest.mark.parametrize("profile", KINDS, ids=lambda profile: profile.index_kind)
async def test_nearest_is_the_reference_whatever_the_kind(
    corpus: CorpusStore, search: SearchStore, pool: Pool, profile: EmbeddingProfile
) -> None:
    await put_vectors(corpus, pool, profile, posts=300, passages=2)
    for _ in range(3):
        query = unit(*(CHANCE.gauss(0, 1) for _ in range(16)))
        found = await search.nearest_posts(profile, query, 10)
        expected = await reference(pool, profile, query, 10)
        assert [one.post_id for one in found] == [post_id for post_id, _ in expected]
        assert [one.cosine for one in found] == pytest.approx([cosine for _, cosine in expected], abs=2e-3)


@pytest.mark.parametrize("profile", KINDS, ids=lambda profile: profile.index_kind)
async def test_excluding_a_topic_starves_no_result(
    corpus: CorpusStore, search: SearchStore, pool: Pool, profile: EmbeddingProfile
) -> None:
    """The excluded topic holds everything near the question, and every keyword; the rest is found all the same."""
    await put_vectors(corpus, pool, profile, posts=400, passages=1)
    query = unit(1, *[0] * 15)
    found = await search.nearest_posts(profile, query, 3, exclude_from=(TOPIC.id, 1))
    expected = await reference(pool, profile, query, 3, without=TOPIC.id)
    assert [one.post_id for one in found] == [post_id for post_id, _ in expected]
    crowd = [indexed(post(1000 + n), "needle needle") for n in range(50)]
    last = indexed(post(2000, topic_id=OTHER.id), "needle in a long and dull text of many other words")
    await corpus.put_posts([*crowd, last])
    worded = await search.keyword_posts(["needle"], 3, exclude_from=(TOPIC.id, 1))
    assert [one.post_id for one in worded] == [2100]


async def plan(pool: Pool, statement: object, parameters: dict[str, object], table: str) -> str:
    """The plan with its cheapest alternatives for a tiny table forbidden, as they are no choice for a large one."""
    async with pool.connection() as conn, conn.transaction():
        await conn.execute(f"ANALYZE {table}".encode())
        await conn.execute("SET LOCAL enable_seqscan = off")
        await conn.execute("SET LOCAL enable_sort = off")
        text = statement.as_string(conn) if hasattr(statement, "as_string") else str(statement)
        cursor = await conn.execute(f"EXPLAIN {text}".encode(), parameters, prepare=False)
        return "\n".join([row[0] async for row in cursor])


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("profile", KINDS, ids=lambda profile: profile.index_kind)
async def test_a_filter_starves_no_result(
    corpus: CorpusStore,
    search: SearchStore,
    pool: Pool,
    monkeypatch: pytest.MonkeyPatch,
    profile: EmbeddingProfile,
    few: bool,
) -> None:
    """What is kept lies far from the question, whether all of it is read or the index is followed until it comes."""
    monkeypatch.setattr("service.store.kept.SCANNED", 1000 if few else 0)
    side = replace(PUBLIC, id=CategoryId(3), name="Side", slug="side")
    await corpus.put_categories([PUBLIC, side])
    await corpus.put_topics([TOPIC, replace(OTHER, category_id=side.id)])
    await put_vectors(corpus, pool, profile, posts=400, passages=1)
    query = unit(1, *[0] * 15)
    for topic, category in ((TOPIC, PUBLIC), (OTHER, side)):
        found = await search.nearest_posts(profile, query, 25, kept=Kept(categories=frozenset({category.id})))
        assert {one.topic_id for one in found} == {topic.id}
        expected = await reference(pool, profile, query, 25, without=OTHER.id if topic is TOPIC else TOPIC.id)
        assert [one.post_id for one in found] == [post_id for post_id, _ in expected]
    assert await search.nearest_posts(profile, query, 5, kept=Kept(categories=frozenset())) == []


@pytest.mark.parametrize("profile", KINDS, ids=lambda profile: profile.index_kind)
async def test_a_date_keeps_what_is_as_new(
    corpus: CorpusStore, search: SearchStore, pool: Pool, profile: EmbeddingProfile
) -> None:
    await corpus.put_posts([indexed(post(n, created_at=later(n)), "red") for n in range(1, 9)])
    await corpus.put_passages(profile, [passage(post(n), *([1.0] * 15), n / 9) for n in range(1, 9)])
    await ProfileStore(pool).activate(profile.name)
    for since, posts in ((later(0), 8), (later(6), 3), (later(9), 0)):
        found = await search.nearest_posts(profile, unit(*[1] * 16), 20, kept=Kept(since=since))
        assert sorted(one.post_id for one in found) == [post(n).id for n in range(9 - posts, 9)]


async def test_a_search_that_takes_too_long_is_transient(corpus: CorpusStore, pool: Pool) -> None:
    await corpus.put_posts([indexed(POST, "red")])
    async with pool.connection() as conn, conn.transaction():
        await conn.execute("LOCK TABLE posts")  # nobody can read it: as slow as a search can be
        with pytest.raises(Transient, match="statement timeout"):
            await SearchStore(pool, timeout_seconds=0.05).keyword_posts(["red"], 5)
    assert len(await SearchStore(pool).keyword_posts(["red"], 5)) == 1


PARAMETERS: dict[str, object] = {"window": 40, "rescored": 80, "limit": 10, "asking_topic": 0, "from_number": 0}


@pytest.mark.parametrize("profile", KINDS[1:], ids=lambda profile: profile.index_kind)
async def test_a_profile_is_searched_by_its_own_index(
    corpus: CorpusStore, pool: Pool, profile: EmbeddingProfile
) -> None:
    await put_vectors(corpus, pool, KINDS[0], posts=30, passages=1)
    await put_vectors(corpus, pool, profile, posts=300, passages=1)
    profile_id = await ProfileStore(pool).ensure_profile(profile)
    statement = nearest_statement(profile_id, profile.index_kind, 16)
    vector = HalfVector(unit(*[1] * 16))
    scan = f"Index Scan using embeddings_{profile_id}_{profile.index_kind}"
    assert scan in await plan(pool, statement, PARAMETERS | {"vector": vector}, "embeddings")
    filtered = nearest_statement(profile_id, profile.index_kind, 16, filtered=True)
    given = PARAMETERS | {"vector": vector, "categories": [PUBLIC.id], "since": None}
    assert scan in await plan(pool, filtered, given, "embeddings")


async def test_a_filter_that_keeps_few_reads_only_those(corpus: CorpusStore, pool: Pool) -> None:
    await put_vectors(corpus, pool, KINDS[0], posts=300, passages=1)
    statement = nearest_statement(await ProfileStore(pool).ensure_profile(KINDS[0]), IndexKind.EXACT, 16, filtered=True)
    given = PARAMETERS | {"vector": HalfVector(unit(*[1] * 16)), "categories": [99], "since": None}
    text = await plan(pool, statement, given, "topics, posts, embeddings")
    assert "topics_category" in text
    assert "posts_topic" in text


async def test_keywords_are_read_by_their_primary_keys(corpus: CorpusStore, pool: Pool) -> None:
    await corpus.put_posts(random_posts(300))
    parameters = {"lexemes": ["w7"], "times": [1.0], "posts": 300, "mean_length": 20.0, "k1": K1, "b": B}
    text = await plan(pool, _KEYWORDS, PARAMETERS | parameters, "postings")
    assert "document_frequencies_pkey" in text
    assert "postings_pkey" in text
