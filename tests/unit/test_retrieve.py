"""Retrieval: fusion as published, what is left out, and what happens without the embedder."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answer.retrieve import SEARCHES_AT_ONCE, fuse, retrieve
from service.domain import ENGLISH, Candidate, EmbeddingProfile, Mode, Question, TopicHit, TopicId, Trace, Vector
from service.errors import ArianeError, Misconfigured, Rejected, Transient
from service.settings import Channel, RetrievalSettings
from tests.fakes.answering import FakeEmbedder, FakeSearch, candidate

QUESTION = Question("How often to water tomatoes?", ENGLISH)
SETTINGS = RetrievalSettings()


def hits(*topics: int) -> list[TopicHit]:
    return [TopicHit(TopicId(topic), 1.0 / rank) for rank, topic in enumerate(topics, start=1)]


def test_ranks_are_fused_by_their_reciprocals_and_weights() -> None:
    rankings = {Channel.VECTOR: hits(1, 2), Channel.KEYWORD: hits(2, 3)}
    fused = fuse(rankings, {}, k=60)
    assert list(fused) == [2, 1, 3]
    assert list(fused.values()) == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])
    weighted = fuse(rankings, {Channel.KEYWORD: 0.5}, k=10)
    assert list(weighted) == [2, 1, 3]
    assert list(weighted.values()) == pytest.approx([1 / 12 + 0.5 / 11, 1 / 11, 0.5 / 12])


@given(st.lists(st.lists(st.integers(1, 40), unique=True, max_size=25), max_size=3))
def test_fusion_keeps_every_topic_once_in_order(rankings: list[list[int]]) -> None:
    fused = fuse(dict(zip(Channel, [hits(*ranking) for ranking in rankings], strict=False)), {}, k=60)
    assert sorted(fused) == sorted({topic for ranking in rankings for topic in ranking})
    keys = [(-score, topic) for topic, score in fused.items()]
    assert keys == sorted(keys)


@dataclass
class TopicSearch(FakeSearch):
    """Also finds topics by each channel of topics; `asked` are the lexemes that reached a channel."""

    topics: dict[Channel, list[TopicHit]] = field(default_factory=dict)
    meant: dict[str, str] = field(default_factory=dict)
    asked: list[Sequence[str]] = field(default_factory=list)

    async def asked_words(self, lexemes: Sequence[str], limit: int) -> list[str]:
        return [self.meant.get(one, one) for one in lexemes][:limit]

    async def keyword_topics(self, lexemes: Sequence[str], limit: int, **without: Any) -> list[TopicHit]:
        self.asked.append(lexemes)
        return self.topics.get(Channel.TOPIC_KEYWORD, [])

    async def mean_topics(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, **without: Any
    ) -> list[TopicHit]:
        return self.topics.get(Channel.TOPIC_MEAN, [])

    async def first_post_topics(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, **without: Any
    ) -> list[TopicHit]:
        return self.topics.get(Channel.FIRST_POST, [])


@pytest.mark.parametrize("channel", [Channel.TOPIC_MEAN, Channel.FIRST_POST, Channel.TOPIC_KEYWORD])
async def test_a_topic_is_found_by_any_channel_and_comes_with_its_best_post(channel: Channel) -> None:
    posts = [candidate(1), candidate(2)]
    search = TopicSearch(posts, posts, topics={channel: hits(102)})
    settings = RetrievalSettings(channels=(channel,))
    [found] = await retrieve(QUESTION, FakeEmbedder(), search, settings, Trace())
    assert found.post_id == 2
    assert found.fused == pytest.approx(1 / 61)
    assert found.topic is not None
    assert found.topic.words == (1.0 if channel is Channel.TOPIC_KEYWORD else None)


async def test_a_topic_of_many_channels_goes_first() -> None:
    near = [candidate(n) for n in (1, 2, 3)]
    search = TopicSearch(near, near, topics=dict.fromkeys(Channel, hits(103)))
    found = await retrieve(QUESTION, FakeEmbedder(), search, SETTINGS, Trace())
    assert [one.post_id for one in found] == [3, 1, 2]


async def test_topics_without_a_post_to_offer_leave_their_places_to_the_next() -> None:
    """Such as those of nothing but questions to us: the first two here have no post."""
    posts = [candidate(n) for n in (1, 2, 3)]
    search = TopicSearch(posts, posts, topics={Channel.TOPIC_MEAN: hits(901, 902, 101, 102, 103)})
    settings = RetrievalSettings(channels=(Channel.TOPIC_MEAN,), candidates=2)
    found = await retrieve(QUESTION, FakeEmbedder(), search, settings, Trace())
    assert [one.post_id for one in found] == [1, 2]


async def test_words_are_searched_as_they_were_meant_repeats_included() -> None:
    search = TopicSearch(meant={"tomatos": "tomato"})
    asked = Question("Tomatos, tomatos: how to water?", ENGLISH)
    await retrieve(asked, FakeEmbedder(), search, SETTINGS, Trace())
    assert search.asked == [["tomato", "tomato", "wat"]]


async def test_a_fault_of_the_index_is_told_and_leaves_no_task() -> None:
    class Down(FakeSearch):
        async def nearest_posts(self, *given: Any, **without: Any) -> list[Candidate]:
            raise Transient("the database can't do this now")

    with pytest.raises(Transient):
        await retrieve(QUESTION, FakeEmbedder(), Down(), SETTINGS, Trace())
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@dataclass
class Counting(FakeSearch):
    """Each search takes a while; `most` is how many ran at a time, `ended` which were stopped before their end."""

    failing: str = ""
    running: int = 0
    most: int = 0
    begun: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    async def _takes_a_while(self, name: str) -> list[Any]:
        self.begun.append(name)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0.005)
            if name == self.failing:
                raise Transient("the database can't do this now")
            if self.failing:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended.append(name)
            raise
        finally:
            self.running -= 1
        return []

    async def nearest_posts(self, *given: Any, **without: Any) -> list[Candidate]:
        return await self._takes_a_while("posts")

    async def keyword_posts(self, *given: Any, **without: Any) -> list[Candidate]:
        return await self._takes_a_while("words")

    async def asked_words(self, lexemes: Sequence[str], limit: int) -> list[str]:
        return [*await self._takes_a_while("spelling"), *lexemes] if not self.failing else list(lexemes)

    async def keyword_topics(self, *given: Any, **without: Any) -> list[TopicHit]:
        return await self._takes_a_while("topics")

    async def mean_topics(self, *given: Any, **without: Any) -> list[TopicHit]:
        return await self._takes_a_while("means")

    async def first_post_topics(self, *given: Any, **without: Any) -> list[TopicHit]:
        return await self._takes_a_while("firsts")


async def test_a_question_takes_no_more_connections_than_its_share() -> None:
    search = Counting()
    followup = replace(QUESTION, text="And in pots?", condensed="How often to water tomatoes in pots?")
    assert await retrieve(followup, FakeEmbedder(), search, SETTINGS, Trace()) == []
    assert len(search.begun) == 2 * (len(Channel) + 1)
    assert search.most == SEARCHES_AT_ONCE


@pytest.mark.parametrize("failing", ["posts", "words", "means", "firsts"])
async def test_when_a_search_fails_those_under_way_are_ended_first(failing: str) -> None:
    search = Counting(failing=failing)
    with pytest.raises(Transient):
        await retrieve(QUESTION, FakeEmbedder(), search, SETTINGS, Trace())
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert search.running == 0
    assert sorted([*search.ended, failing]) == sorted(search.begun)


async def test_who_waits_for_the_embedder_keeps_no_words_from_being_searched() -> None:
    search, embedded = Counting(), asyncio.Event()

    class Slow(FakeEmbedder):
        async def embed_query(self, text: str) -> Vector:
            await embedded.wait()
            return await super().embed_query(text)

    asking = asyncio.create_task(retrieve(QUESTION, Slow(), search, SETTINGS, Trace()))
    while len(search.begun) < 3:
        await asyncio.sleep(0)
    assert set(search.begun) == {"spelling", "words", "topics"}
    embedded.set()
    await asking
    assert set(search.begun) == {"spelling", "words", "topics", "posts", "means", "firsts"}


async def test_the_question_and_what_came_after_it_never_answer() -> None:
    megathread = [candidate(n, topic=500) for n in (7, 8, 6, 3)]
    search = FakeSearch(megathread, megathread)
    asked = replace(QUESTION, exclude_from=(TopicId(500), 7))
    found = await retrieve(asked, FakeEmbedder(), search, SETTINGS, Trace())
    assert [one.post_number for one in found] == [6]
    first = replace(QUESTION, exclude_from=(TopicId(500), 1))
    assert await retrieve(first, FakeEmbedder(), search, SETTINGS, Trace()) == []


async def test_the_fused_list_is_cut() -> None:
    search = FakeSearch([candidate(n) for n in range(1, 41)], [candidate(n) for n in range(101, 141)])
    found = await retrieve(QUESTION, FakeEmbedder(), search, SETTINGS, Trace())
    assert len(found) == SETTINGS.candidates
    assert {one.post_id for one in found} == {*range(1, 14), *range(101, 113)}


@pytest.mark.parametrize("fault", [Transient("busy"), Rejected("not a number"), Misconfigured("no such model")])
async def test_without_the_embedder_keywords_serve(fault: ArianeError) -> None:
    trace = Trace()
    search = FakeSearch([candidate(1)], [candidate(2)])
    found = await retrieve(QUESTION, FakeEmbedder(down=fault), search, SETTINGS, trace)
    assert [one.post_id for one in found] == [2]
    assert (trace.mode, trace.notes) == (Mode.KEYWORD, ["embedder_down"])


async def test_where_nothing_has_a_vector_keywords_serve_and_are_judged_as_such() -> None:
    trace = Trace()
    found = await retrieve(QUESTION, FakeEmbedder(), FakeSearch([], [candidate(2)]), SETTINGS, trace)
    assert [one.post_id for one in found] == [2]
    assert (trace.mode, trace.notes) == (Mode.KEYWORD, ["vectors_down"])
    by_topic = Trace()
    search = TopicSearch([], [candidate(2)], topics={Channel.FIRST_POST: hits(102)})
    await retrieve(QUESTION, FakeEmbedder(), search, SETTINGS, by_topic)
    assert (by_topic.mode, by_topic.notes) == (Mode.RERANKED, [])


async def test_a_question_of_stop_words_asks_no_keywords() -> None:
    class NoKeywords(FakeSearch):
        async def keyword_posts(self, lexemes: object, limit: int, *, exclude_from: object = None) -> list[Candidate]:
            raise AssertionError("no lexeme, no query")

    found = await retrieve(Question("et toi ?", ENGLISH), FakeEmbedder(), NoKeywords([candidate(1)]), SETTINGS, Trace())
    assert [one.post_id for one in found] == [1]


@pytest.mark.parametrize(
    ("channels", "expected", "mode"),
    [
        ((Channel.VECTOR,), [1], Mode.RERANKED),
        ((Channel.KEYWORD,), [2], Mode.KEYWORD),
        ((Channel.KEYWORD, Channel.VECTOR), [1, 2], Mode.RERANKED),
    ],
)
async def test_a_channel_that_is_off_finds_nothing(
    channels: tuple[Channel, ...], expected: list[int], mode: Mode
) -> None:
    trace = Trace()
    search = FakeSearch([candidate(1)], [candidate(2)])
    settings = RetrievalSettings(channels=channels)
    found = await retrieve(QUESTION, FakeEmbedder(), search, settings, trace)
    assert ([one.post_id for one in found], trace.mode) == (expected, mode)


@pytest.mark.parametrize("channels", [(), (Channel.VECTOR, Channel.VECTOR), ("smell",)])
def test_channels_are_known_and_distinct(channels: tuple[Channel, ...]) -> None:
    with pytest.raises(ValueError, match="channels"):
        RetrievalSettings(channels=channels)
