"""Systems: what each leaves out, how ties fall, that parts are asked once, and that none measures as another."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.domain import Case, Labels
from eval.systems import Followups, QueryVectors, asked_text, open_systems
from eval.systems.baselines import Bm25, Dense, Rrf
from eval.systems.documents import Documents
from eval.systems.production import Parts, Production
from eval.systems.search import CaseSearch, SharedSearch
from eval.systems.system import DEPTH, System
from eval.systems.vectors import read_vector, write_vector
from service.domain import Candidate, EmbeddingProfile, IndexKind, TopicHit, TopicId, Vector
from service.errors import Rejected, Transient
from service.settings import Channel, RetrievalSettings
from service.store.search import SearchStore
from service.wiring.answering import Answering
from tests.fakes.answering import FakeEmbedder, FakeReranker, FakeSearch, candidate

CASE = Case("Q-1", Labels.QUESTIONS, "paraphrase", "en", "How often to water tomatoes?", (), "1")
BOTH = (Channel.VECTOR, Channel.KEYWORD)
TEXTS = (
    "Water the tomatoes in the morning",
    "Tomatoes and garlic",
    "Water, water and more water for the pots",
    "Slugs at night",
)
VECTORS = np.array([[1, 0], [0.6, 0.8], [0.6, 0.8], [0, 1], [1, 0]], dtype=np.float32)


def documents() -> Documents:
    """Posts 10.1, 10.2, 20.1, 20.2; the last has two passages."""
    return Documents(np.array([10, 10, 20, 20]), np.array([1, 2, 1, 2]), TEXTS, VECTORS, np.array([0, 1, 2, 3, 3]))


def keys(hits: Sequence[object]) -> list[tuple[int, int]]:
    return [(hit.topic_id, hit.post_number) for hit in hits]  # type: ignore[attr-defined]  # hits or candidates


def store(search: FakeSearch) -> SearchStore:
    """It has the store's methods, and no database."""
    return cast("SearchStore", search)


def parts(search: FakeSearch, *, reranker: FakeReranker | None = None, **settings: object) -> Parts:
    return Parts(
        FakeEmbedder(),
        SharedSearch(store(search)),
        reranker or FakeReranker(),
        RetrievalSettings.model_validate(settings),
        Followups.FULL,
    )


async def test_dense_ranks_by_the_best_passage_and_ties_by_post() -> None:
    found = await Dense(documents(), FakeEmbedder(), Followups.FULL, 900).rank(CASE)
    assert keys(found.hits) == [(10, 1), (20, 2), (10, 2), (20, 1)]
    assert found.cosines == pytest.approx([1, 1, 0.6, 0.6])


@pytest.mark.parametrize(
    ("excluded", "left"),
    [
        ({"exclude_from": (TopicId(10), 2)}, [(10, 1), (20, 2), (20, 1)]),
        ({"exclude_from": (TopicId(10), 1)}, [(20, 2), (20, 1)]),
        ({"exclude_post": (TopicId(10), 1)}, [(20, 2), (10, 2), (20, 1)]),
    ],
)
async def test_baselines_leave_out_what_the_case_excludes(
    excluded: dict[str, tuple[TopicId, int]], left: list[tuple[int, int]]
) -> None:
    case = replace(CASE, question="water tomatoes garlic slugs", **excluded)  # type: ignore[arg-type]  # by name
    dense = await Dense(documents(), FakeEmbedder(), Followups.FULL, 900).rank(case)
    assert keys(dense.hits) == left
    bm25 = await Bm25(documents(), Followups.FULL, 900).rank(case)
    assert sorted(keys(bm25.hits)) == sorted(left)


async def test_bm25_is_the_published_formula() -> None:
    found = await Bm25(documents(), Followups.FULL, 900).rank(replace(CASE, question="water"))
    tokens = [
        ["water", "tomatoes", "morning"],
        ["tomatoes", "garlic"],
        ["water"] * 3 + ["more", "pots"],
        ["slugs", "night"],
    ]
    mean = sum(map(len, tokens)) / 4
    idf = math.log(1 + (4 - 2 + 0.5) / (2 + 0.5))
    expected = {}
    for key, words in zip([(10, 1), (10, 2), (20, 1), (20, 2)], tokens, strict=True):
        if tf := words.count("water"):
            expected[key] = idf * tf / (tf + 1.5 * (1 - 0.75 + 0.75 * len(words) / mean))
    assert {(hit.topic_id, hit.post_number): pytest.approx(hit.score, rel=1e-5) for hit in found.hits} == expected
    assert keys(found.hits) == sorted(expected, key=lambda key: -expected[key])


@pytest.mark.parametrize("question", ["the of and", "xyzzy", "?!"])
async def test_bm25_finds_nothing_where_no_word_is_known(question: str) -> None:
    assert (await Bm25(documents(), Followups.FULL, 900).rank(replace(CASE, question=question))).hits == ()


async def test_rrf_is_the_published_fusion_of_the_baselines() -> None:
    bm25, dense = Bm25(documents(), Followups.FULL, 900), Dense(documents(), FakeEmbedder(), Followups.FULL, 900)
    case = replace(CASE, question="garlic")
    assert keys((await bm25.rank(case)).hits) == [(10, 2)]
    found = await Rrf(bm25, dense).rank(case)
    assert keys(found.hits) == [(10, 2), (10, 1), (20, 2), (20, 1)]
    assert [hit.score for hit in found.hits] == pytest.approx([1 / 61 + 1 / 63, 1 / 61, 1 / 62, 1 / 64])


async def test_channels_alone_and_fused() -> None:
    near = [candidate(1, cosine=0.9), candidate(2, cosine=0.9), candidate(4, cosine=0.2)]
    worded = [replace(candidate(3), bm25=6.0), replace(candidate(1), bm25=2.0)]
    shared = parts(FakeSearch(near, worded))
    vector = await Production("vector", (Channel.VECTOR,), False, shared).rank(CASE)
    assert [hit.topic_id for hit in vector.hits] == [101, 102, 104]
    keyword = await Production("keyword", (Channel.KEYWORD,), False, shared).rank(CASE)
    assert [hit.topic_id for hit in keyword.hits] == [103, 101]
    fused = await Production("fused", BOTH, False, shared).rank(CASE)
    assert [hit.topic_id for hit in fused.hits] == [101, 103, 102, 104]
    assert [hit.score for hit in fused.hits] == pytest.approx([1 / 61 + 1 / 62, 1 / 61, 1 / 62, 1 / 63])
    assert (fused.mode, fused.zone, fused.logits, fused.cosines) == ("", "", (), (0.9, None, 0.9, 0.2))


async def test_reranked_is_in_the_order_of_the_logits() -> None:
    near = [candidate(n, cosine=1 - n / 10) for n in range(1, 7)]
    reranker = FakeReranker({1: 1.0, 2: 2.0, 3: 3.0, 4: -1.0})
    system = Production("reranked", (Channel.VECTOR,), True, parts(FakeSearch(near), reranker=reranker, candidates=4))
    found = await system.rank(CASE)
    assert [hit.topic_id for hit in found.hits] == [103, 102, 101, 104]
    assert found.logits == tuple(hit.score for hit in found.hits) == (3.0, 2.0, 1.0, -1.0)
    assert (found.mode, found.zone) == ("reranked", "normal")


async def test_an_excluded_post_gives_its_place_to_the_next() -> None:
    near = [candidate(n, cosine=1 - n / 1000) for n in range(1, 150)]
    excluded = near[0]
    case = replace(CASE, exclude_post=(excluded.topic_id, excluded.post_number))
    search = CaseSearch(SharedSearch(store(FakeSearch(near, near))), case.exclude_post)
    vector = np.array([1.0, 0.0], dtype=np.float32)
    for found in (
        await search.nearest_posts(FakeEmbedder().profile, vector, DEPTH),
        await search.keyword_posts(["water"], DEPTH),
    ):
        assert [one.post_id for one in found] == list(range(2, DEPTH + 2))
    reranker = FakeReranker()
    ranked = await Production("reranked", BOTH, True, parts(FakeSearch(near), reranker=reranker)).rank(case)
    assert (len(ranked.hits), len(reranker.read)) == (25, 25)
    assert (excluded.topic_id, excluded.post_number) not in keys(ranked.hits)


async def test_the_post_that_is_excluded_is_told_to_the_topic_channels() -> None:
    class Telling(FakeSearch):
        async def keyword_topics(self, *_: object, **options: object) -> list[TopicHit]:
            told.append(options)
            return []

    told: list[dict[str, object]] = []
    excluded = (TopicId(5), 1)
    await CaseSearch(SharedSearch(store(Telling())), excluded).keyword_topics(["a"], 3)
    await CaseSearch(SharedSearch(store(Telling())), None).keyword_topics(["a"], 3, exclude_from=(TopicId(6), 2))
    assert told == [{"exclude_from": None, "exclude_post": excluded}, {"exclude_from": (6, 2), "exclude_post": None}]


async def test_no_system_measures_as_another_one() -> None:
    search = FakeSearch([candidate(1, cosine=0.9)], [candidate(2)])
    down = replace(parts(search), embedder=FakeEmbedder(down=Transient("gone")))
    for name, channels, reranked in (("fused", BOTH, False), ("reranked", BOTH, True), ("vector", BOTH[:1], False)):
        with pytest.raises(Transient):
            await Production(name, channels, reranked, down).rank(CASE)
    assert keys((await Production("keyword", BOTH[1:], False, down).rank(CASE)).hits) == [(102, 2)]
    silent = parts(search, reranker=FakeReranker(down=Transient("gone")))
    with pytest.raises(Transient, match="reranker"):
        await Production("reranked", BOTH, True, silent).rank(CASE)


@dataclass
class CountingSearch(FakeSearch):
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def nearest_posts(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, *, exclude_from: tuple[TopicId, int] | None = None
    ) -> list[Candidate]:
        self.asked.append(("nearest", limit))
        await asyncio.sleep(0)
        return await FakeSearch.nearest_posts(self, profile, vector, limit, exclude_from=exclude_from)


async def test_an_exact_search_is_asked_once_and_an_approximate_one_for_each_depth() -> None:
    vector = np.array([1.0, 0.0], dtype=np.float32)
    exact = FakeEmbedder().profile
    for profile, expected in (
        (exact, [("nearest", DEPTH + 1)]),
        (replace(exact, index_kind=IndexKind.HNSW_HALFVEC), [("nearest", 26), ("nearest", DEPTH + 1)]),
    ):
        counting = CountingSearch([candidate(n) for n in range(1, 200)])
        search = CaseSearch(SharedSearch(store(counting)), None)
        few, many = await asyncio.gather(
            search.nearest_posts(profile, vector, 25), search.nearest_posts(profile, vector, DEPTH)
        )
        assert (len(few), len(many), few) == (25, DEPTH, many[:25])
        assert counting.asked == expected


async def test_the_times_of_both_queries_of_a_follow_up_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 10.0, 12.0])
    monkeypatch.setattr("eval.systems.search.perf_counter", lambda: next(clock))
    search = CaseSearch(SharedSearch(store(FakeSearch())), None)
    for lexemes in (["winter"], ["winter", "tomato"]):
        await search.keyword_posts(lexemes, 5)
    assert search.timings_ms == {"keywords": 3000.0}


def test_follow_ups_are_asked_in_full_by_their_last_message_or_condensed() -> None:
    asked = (("user", "How often to water tomatoes?"), ("bot", "Twice a week."))
    case = replace(CASE, question="and in winter?", standalone="How often to water tomatoes in winter?", history=asked)
    assert asked_text(case, Followups.FULL, 900) == "How often to water tomatoes in winter?"
    assert asked_text(case, Followups.LAST, 900) == "and in winter?"
    assert asked_text(case, Followups.CONDENSED, 900) == "in winter? in winter? How often to water tomatoes?"
    assert asked_text(case, Followups.FULL, 9) == "How often"
    assert asked_text(CASE, Followups.LAST, 900) == CASE.question


@dataclass
class CountingEmbedder(FakeEmbedder):
    texts: list[str] = field(default_factory=list)

    async def embed_query(self, text: str) -> Vector:
        self.texts.append(text)
        await asyncio.sleep(0)
        return np.array([0.6, 0.8], dtype=np.float32)


async def test_a_question_is_embedded_once_and_kept_on_disk(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    vectors = QueryVectors(embedder, tmp_path)
    told: list[tuple[int, int]] = []
    waiting = asyncio.create_task(vectors.embed_all(["a", "b", "a", "c"], lambda *now: told.append(now)))
    urgent = await vectors.embed_query("c")
    await waiting
    assert sorted(embedder.texts) == ["a", "b", "c"]
    assert told == [(1, 3), (2, 3), (3, 3)]
    again = CountingEmbedder()
    assert (await QueryVectors(again, tmp_path).embed_query("c")).tolist() == urgent.tolist()
    assert again.texts == []


def stored_vector(folder: Path) -> Path:
    (path,) = folder.rglob("*.npy")
    return path


async def test_a_damaged_vector_is_made_anew(tmp_path: Path) -> None:
    await QueryVectors(CountingEmbedder(), tmp_path).embed_query("a")
    path = stored_vector(tmp_path)
    path.write_bytes(path.read_bytes()[:-3])
    again = CountingEmbedder()
    await QueryVectors(again, tmp_path).embed_query("a")
    assert again.texts == ["a"]
    assert read_vector(path, 2) is not None


def test_two_runs_may_write_a_vector_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, vector = tmp_path / "a.npy", np.array([0.6, 0.8], dtype=np.float32)
    write_array = np.lib.format.write_array

    def meanwhile(file: IO[bytes], array: Vector, **options: Any) -> None:
        """The other run writes its own, whole, while this one's file is open."""
        monkeypatch.undo()
        write_vector(path, vector)
        write_array(file, array, **options)

    monkeypatch.setattr(np.lib.format, "write_array", meanwhile)
    write_vector(path, vector)
    known = read_vector(path, 2)
    assert known is not None and known.tolist() == vector.tolist()
    assert list(tmp_path.iterdir()) == [path]


async def test_profiles_never_share_vectors(tmp_path: Path) -> None:
    await QueryVectors(CountingEmbedder(), tmp_path).embed_query("a")
    other = CountingEmbedder(profile=replace(FakeEmbedder().profile, version=2))
    await QueryVectors(other, tmp_path).embed_query("a")
    assert other.texts == ["a"]


@given(st.binary(max_size=300))
def test_whatever_is_in_a_vector_file_is_no_vector(content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        path.write_bytes(content)
        assert read_vector(path, 2) is None


@pytest.mark.parametrize(
    "array",
    [np.array([1, 0]), np.array([1, 0, 0], np.float32), np.array([np.nan, 0], np.float32), np.ones(2, np.float32)],
)
def test_only_a_unit_vector_of_the_profile_is_read(array: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", array)
    assert read_vector(tmp_path / "x.npy", 2) is None


def test_every_system_matches_the_protocol() -> None:
    embedder = FakeEmbedder()
    systems: list[System] = [
        Bm25(documents(), Followups.FULL, 900),
        Dense(documents(), embedder, Followups.FULL, 900),
        Production("rrf", BOTH, False, parts(FakeSearch())),
    ]
    assert [system.name for system in systems] == ["bm25", "dense", "rrf"]
    assert all(system.switches for system in systems)


async def test_a_system_that_is_none_is_refused_before_anything_is_read() -> None:
    """Nothing was opened: the names alone decide."""
    with pytest.raises(Rejected, match=r"no system is called magic: there are bm25, .*, reranked$"):
        await open_systems(cast("Answering", None), ("bm25", "magic"), cast("QueryVectors", None), Followups.FULL)
