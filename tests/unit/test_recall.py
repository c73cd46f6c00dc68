"""Which path finds the candidates, and what the trace, the metrics and the zone make of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from service.answer.pipeline import Stages, answer
from service.answer.ports import Flags, TopicMatch
from service.answer.recall import Legacy, recall
from service.domain import ENGLISH, Borders, Candidate, Mode, Question, RerankerProfile, Result, Trace, Zone
from service.errors import ArianeError, Transient
from service.settings import Channel, RetrievalSettings
from service.telemetry import FALLBACKS
from tests.fakes.answering import BASE_URL, FakeAnswerer, FakeEmbedder, FakeReranker, FakeSearch, candidate
from tests.fakes.answering import detect_language as detect

QUESTION = Question("How often to water tomatoes?", ENGLISH)
SETTINGS = RetrievalSettings()
VECTORS_ALONE = RetrievalSettings(channels=(Channel.VECTOR, Channel.FIRST_POST))
DOWN = Transient("the database can't do this now")
POSTS_ON, POSTS_OFF = Flags(posts_pipeline=True), Flags(posts_pipeline=False)


@dataclass
class FakeTopics:
    """One topic by its words, post 9's."""

    down: ArianeError | None = None
    asked: list[Sequence[str]] = field(default_factory=list)

    async def keyword_topics(self, lexemes: Sequence[str], limit: int, **given: Any) -> list[TopicMatch]:
        self.asked.append(lexemes)
        if self.down:
            raise self.down
        return [TopicMatch(replace(candidate(9), bm25=3.0), {"tomato": 2.0}, 2.0)]


@dataclass
class Switches:
    flags: Flags

    async def read(self) -> Flags:
        return self.flags


class Failing(FakeSearch):
    async def keyword_posts(self, *given: Any, **without: Any) -> list[Candidate]:
        raise DOWN


def posts() -> FakeSearch:
    return FakeSearch([candidate(1)], [candidate(2)])


@pytest.mark.parametrize(
    ("search", "embedder", "flags", "settings", "found", "mode", "notes"),
    [
        (posts(), FakeEmbedder(), None, SETTINGS, [1, 2], Mode.RERANKED, []),
        (posts(), FakeEmbedder(), POSTS_ON, SETTINGS, [1, 2], Mode.RERANKED, []),
        (posts(), FakeEmbedder(), POSTS_OFF, SETTINGS, [9], Mode.LEGACY, ["posts_pipeline_off"]),
        (Failing(), FakeEmbedder(), POSTS_OFF, SETTINGS, [9], Mode.LEGACY, ["posts_pipeline_off"]),
        (Failing(), FakeEmbedder(), POSTS_ON, SETTINGS, [9], Mode.LEGACY, ["search_down"]),
        (Failing(), FakeEmbedder(), None, SETTINGS, [9], Mode.LEGACY, ["search_down"]),
        (posts(), FakeEmbedder(down=DOWN), POSTS_ON, SETTINGS, [2], Mode.KEYWORD, ["embedder_down"]),
        (FakeSearch(), FakeEmbedder(), POSTS_ON, SETTINGS, [], Mode.KEYWORD, ["vectors_down"]),
        (posts(), FakeEmbedder(), POSTS_ON, VECTORS_ALONE, [1], Mode.RERANKED, []),
        (posts(), FakeEmbedder(down=DOWN), POSTS_ON, VECTORS_ALONE, [9], Mode.LEGACY, ["embedder_down"]),
        (FakeSearch(), FakeEmbedder(), POSTS_ON, VECTORS_ALONE, [9], Mode.LEGACY, ["vectors_down"]),
    ],
)
async def test_the_path_is_chosen_and_told(
    search: FakeSearch,
    embedder: FakeEmbedder,
    flags: Flags | None,
    settings: RetrievalSettings,
    found: list[int],
    mode: Mode,
    notes: list[str],
) -> None:
    trace, topics = Trace(), FakeTopics()
    legacy = Legacy(topics, Switches(flags) if flags else None)
    given = await recall(QUESTION, embedder, search, legacy, settings, trace)
    assert [one.post_id for one in given] == found
    assert (trace.mode, trace.notes) == (mode, notes)
    assert len(topics.asked) == (mode is Mode.LEGACY)


async def test_an_index_that_neither_path_can_search_is_told_and_nothing_is_counted() -> None:
    def counted() -> float:
        return float(FALLBACKS.labels("search", "transient")._value.get())

    before, trace = counted(), Trace()
    with pytest.raises(Transient, match="gone for good"):
        await recall(
            QUESTION, FakeEmbedder(), Failing(), Legacy(FakeTopics(down=Transient("gone for good"))), SETTINGS, trace
        )
    assert counted() == before
    with pytest.raises(Transient, match="can't do this now"):
        await recall(QUESTION, FakeEmbedder(), Failing(), None, SETTINGS, trace)
    await recall(QUESTION, FakeEmbedder(), Failing(), Legacy(FakeTopics()), SETTINGS, trace)
    assert counted() == before + 1


def stages(reranker: FakeReranker) -> Stages:
    legacy = Legacy(FakeTopics(), Switches(POSTS_OFF))
    return Stages(FakeEmbedder(), posts(), reranker, FakeAnswerer(), detect, SETTINGS, BASE_URL, legacy=legacy)


@pytest.mark.parametrize(
    ("logit", "borders", "zone", "result"),
    [
        (1.0, None, Zone.NORMAL, Result.ANSWERED),
        (-1.0, None, Zone.WEAK, Result.ANSWERED),
        (-5.0, None, Zone.ABSTAIN, Result.ABSTAINED),
        (1.0, Borders(0.0, 2.0), Zone.WEAK, Result.ANSWERED),
        (-1.0, Borders(0.0, 2.0), Zone.ABSTAIN, Result.ABSTAINED),
    ],
)
async def test_what_the_legacy_path_found_is_reranked_and_judged_as_words_are(
    logit: float, borders: Borders | None, zone: Zone, result: Result
) -> None:
    profile = RerankerProfile("fake", -4.0, 0.0, provisional=True, keyword=borders)
    trace, reranker = Trace(), FakeReranker({9: logit}, profile=profile)
    told = await answer(QUESTION, stages(reranker), trace, seed=0)
    assert (told.mode, told.zone, told.result) == (Mode.LEGACY, zone, result)
    assert [source.post_id for source in told.sources] == [9]
    assert reranker.asked == [QUESTION.text]
    assert trace.notes[0] == "posts_pipeline_off"


async def test_the_legacy_path_without_the_reranker_abstains() -> None:
    told = await answer(QUESTION, stages(FakeReranker(down=DOWN)), Trace(), seed=0)
    assert (told.mode, told.zone, told.result) == (Mode.RERANKER_DOWN, Zone.ABSTAIN, Result.ABSTAINED)
