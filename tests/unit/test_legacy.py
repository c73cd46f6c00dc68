"""The legacy path: titles let through and raise, what asks nothing finds nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answer.legacy import boosted, retrieve_by_topic
from service.answer.ports import TopicMatch
from service.domain import ENGLISH, Mode, Question, TopicId, Trace
from service.lexer import query_lexemes
from service.settings import RetrievalSettings
from tests.fakes.answering import candidate

SETTINGS = RetrievalSettings(candidates=2)
QUESTION = Question("watering tomatoes in pots", ENGLISH, exclude_from=(TopicId(500), 3))


def match(number: int, title: str, bm25: float, weights: Mapping[str, float], asked: float = 10.0) -> TopicMatch:
    return TopicMatch(replace(candidate(number), title=title, bm25=bm25), weights, asked)


@dataclass
class FakeTopics:
    matches: Sequence[TopicMatch] = ()
    asked: list[tuple[object, ...]] = field(default_factory=list)

    async def keyword_topics(
        self, lexemes: Sequence[str], limit: int, *, words: int, exclude_from: tuple[TopicId, int] | None = None
    ) -> list[TopicMatch]:
        self.asked.append((list(lexemes), limit, words, exclude_from))
        return list(self.matches)


async def test_topics_are_boosted_gated_and_cut() -> None:
    topics = FakeTopics(
        [
            match(1, "Slugs", 9.0, {"tomato": 4.0}),  # nothing in the title, too little in the text
            match(2, "Slugs", 5.0, {"tomato": 4.0, "pot": 2.0}),
            match(3, "Tomatoes on a balcony", 4.0, {"tomato": 4.0, "pot": 3.0}),
            match(4, "Pots", 3.0, {"pot": 3.0}),
        ]
    )
    trace = Trace()
    found = await retrieve_by_topic(QUESTION, topics, SETTINGS, trace)
    assert [one.post_id for one in found] == [3, 2]
    assert [one.fused for one in found] == pytest.approx([4 * 2.1, 5 * 1.6])
    assert (trace.mode, trace.queries) == (Mode.LEGACY, [QUESTION.text])
    assert topics.asked == [(query_lexemes(QUESTION.text), 8, 8, (500, 3))]


async def test_a_question_of_stop_words_asks_nothing() -> None:
    topics = FakeTopics()
    assert await retrieve_by_topic(Question("et toi ?", ENGLISH), topics, SETTINGS, Trace()) == []
    assert topics.asked == []


@given(
    st.floats(0, 100),
    st.dictionaries(st.sampled_from(["tomato", "pot", "slug"]), st.floats(0.1, 10), min_size=1),
    st.text(),
    st.floats(0, 10),
)
def test_a_boost_never_lowers_and_the_gate_is_all_or_nothing(
    bm25: float, weights: dict[str, float], title: str, more: float
) -> None:
    one = match(1, title, bm25, weights, asked=sum(weights.values()) + more)
    score = boosted(one, SETTINGS)
    assert score is None or bm25 <= score <= 3.001 * bm25
    assert boosted(one, SETTINGS.model_copy(update={"legacy_gate_percent": 0})) is not None
