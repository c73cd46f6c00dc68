"""Retrieval: fusion as published, what is left out, and what happens without the embedder."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answer.retrieve import fuse, retrieve
from service.domain import ENGLISH, Candidate, Mode, Question, TopicId, Trace
from service.errors import ArianeError, Misconfigured, Rejected, Transient
from service.settings import Channel, RetrievalSettings
from tests.fakes.answering import FakeEmbedder, FakeSearch, candidate

QUESTION = Question("How often to water tomatoes?", ENGLISH)
SETTINGS = RetrievalSettings()


def test_ranks_are_fused_by_their_reciprocals() -> None:
    near = [candidate(1, cosine=0.9), candidate(2, cosine=0.8)]
    worded = [replace(candidate(2), bm25=7.0), replace(candidate(3), bm25=6.0)]
    fused = fuse((near, worded), k=60)
    assert [(one.post_id, one.cosine, one.bm25) for one in fused] == [(2, 0.8, 7.0), (1, 0.9, None), (3, None, 6.0)]
    assert [one.fused for one in fused] == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])


@given(st.lists(st.lists(st.integers(1, 40), unique=True, max_size=25), max_size=3))
def test_fusion_keeps_every_post_once_in_order(rankings: list[list[int]]) -> None:
    fused = fuse([[candidate(n) for n in ranking] for ranking in rankings], k=60)
    assert sorted(one.post_id for one in fused) == sorted({n for ranking in rankings for n in ranking})
    keys = [(-one.fused, one.post_id) for one in fused]
    assert keys == sorted(keys)


async def test_the_question_and_what_came_after_it_never_answer() -> None:
    megathread = [candidate(n, topic=500) for n in (3, 6, 7, 8)]
    search = FakeSearch(megathread, megathread)
    asked = replace(QUESTION, exclude_from=(TopicId(500), 7))
    found = await retrieve(asked, FakeEmbedder(), search, SETTINGS, Trace())
    assert [one.post_number for one in found] == [3, 6]


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
