"""A follow-up through the stages: two queries searched, one of them scored, the posts it came from left out."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from service.answer.condense.in_full import in_full
from service.answer.pipeline import answer
from service.answer.respond import respond
from service.answer.retrieve import retrieve
from service.domain import ENGLISH, Answer, Before, Candidate, Posted, PostId, Question, Result, TopicId, Trace, Vector
from service.errors import Transient
from service.settings import Channel, RetrievalSettings
from tests.fakes.answering import (
    ASKING_TOPIC,
    MENTION,
    NOW,
    FakeEmbedder,
    FakeReranker,
    FakeSearch,
    FakeThreads,
    World,
    asking,
    candidate,
)

HISTORY = (("user", "How often should I water tomatoes in pots?"), ("bot", "Every morning."))
IN_FULL = "in winter? in winter? How often should I water tomatoes in pots?"
ASKED = Question("and in winter?", ENGLISH, history=HISTORY)


@dataclass
class Listening(FakeSearch):
    """Finds other posts for a vector that points the other way; hears what is excluded."""

    other: Sequence[Candidate] = ()
    excluded: list[tuple[TopicId, int] | None] = field(default_factory=list)

    async def nearest_posts(self, profile: Any, vector: Vector, limit: int, **options: Any) -> list[Candidate]:
        self.excluded.append(options["exclude_from"])
        return list(self.nearest if vector[0] > 0 else self.other)[:limit]


@dataclass
class TwoWays(FakeEmbedder):
    """The message alone points away from the question in full."""

    async def embed_query(self, text: str) -> Vector:
        return np.array([1.0 if text == IN_FULL else -1.0, 0.0], dtype=np.float32)


async def found(percent: int, question: Question) -> tuple[list[int], Trace]:
    settings = RetrievalSettings(channels=(Channel.VECTOR,), message_percent=percent)
    search = Listening([candidate(1), candidate(2)], [candidate(3)], other=[candidate(3), candidate(2)])
    trace = Trace()
    return [one.post_id for one in await retrieve(question, TwoWays(), search, settings, trace)], trace


async def test_both_queries_are_searched_and_the_message_alone_counts_less() -> None:
    condensed = replace(ASKED, condensed=IN_FULL)
    posts, trace = await found(30, condensed)
    assert posts == [2, 1, 3]
    assert trace.queries == [IN_FULL, ASKED.text]
    assert (await found(0, condensed))[0] == [1, 2, 3]
    assert (await found(30, ASKED))[0] == [3, 2]


async def ask(question: Question, world: World, **options: Any) -> tuple[Answer, Trace]:
    trace = Trace()
    full = await in_full(question, world.stages.condenser, trace)
    return await answer(full, world.stages, trace, seed=0, **options), trace


async def test_search_reranking_and_trace_agree_on_the_question_in_full() -> None:
    reranker = FakeReranker()
    world = World(reranker=reranker)
    told, trace = await ask(ASKED, world)
    assert told.result is Result.ANSWERED
    assert trace.queries == [IN_FULL, "and in winter?"]
    assert reranker.asked == [IN_FULL]
    assert trace.notes == ["condensed_by_rules"]
    await ask(ASKED, world, without=[PostId(1)])
    assert reranker.asked == [IN_FULL, IN_FULL]


async def test_a_question_that_stands_alone_is_searched_as_before() -> None:
    text = "Why do the leaves of my young pepper plants turn yellow between the veins?"
    _, alone = await ask(Question(text, ENGLISH), World())
    _, after = await ask(Question(text, ENGLISH, history=HISTORY), World())
    assert alone.queries == after.queries == [text]
    assert alone.candidates == after.candidates
    assert after.notes == []


async def test_a_down_embedder_is_told_once() -> None:
    _, trace = await ask(ASKED, World(embedder=FakeEmbedder(Transient("down"))))
    assert trace.notes.count("embedder_down") == 1


async def test_the_thread_is_read_and_what_the_query_carries_is_no_source() -> None:
    said = Before((("user", "How do I feed a pear?"), ("bot", "With compost."), ("user", "and a plum?")), first=3)
    world = World(asked=asking(f"<p>{MENTION} and a fig?</p>"), threads=FakeThreads(said))
    search = Listening([candidate(1)])
    deps = world.deps()
    deps = replace(deps, stages=replace(deps.stages, search=search))
    assert await respond(world.asked, deps, now=NOW) == Posted(Result.ANSWERED, PostId(70_000))
    trace = world.ledger.rows[world.asked.id].trace
    full = trace.queries[0]
    assert full.startswith("a fig? a fig?")
    assert all(part in full for part in ("feed a pear", "a plum", ASKING_TOPIC.title))
    assert search.excluded == [(ASKING_TOPIC.id, 3)] * 2
