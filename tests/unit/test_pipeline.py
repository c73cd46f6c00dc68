"""The pipeline: a zone for every score, an answer for every fault, and nothing invented."""

import math
from collections.abc import Collection
from dataclasses import replace

import pytest

from service.answer.messages import Message, message
from service.answer.pipeline import answer
from service.domain import ENGLISH, FRENCH, Answer, Candidate, Mode, PostId, Question, Result, Trace, Zone
from service.errors import ArianeError, Misconfigured, Rejected, Transient
from service.settings import RetrievalSettings
from tests.fakes.answering import BASE_URL, FakeAnswerer, FakeEmbedder, FakeReranker, FakeSearch, World, candidate

QUESTION = Question("How often should I water tomatoes in pots?", ENGLISH)
DOWN = [Transient("busy"), Rejected("too long", status=422), Misconfigured("no such model")]


def url(number: int) -> str:
    return f"({BASE_URL}/t/watering-{number}/{100 + number}/{number})"


async def ask(world: World, question: Question = QUESTION, *, without: Collection[PostId] = ()) -> tuple[Answer, Trace]:
    trace = Trace()
    return await answer(question, world.stages, trace, seed=0, without=without), trace


async def test_a_good_match_is_answered_with_the_servers_own_link() -> None:
    told, trace = await ask(World())
    assert (told.result, told.zone, told.mode, told.cited) == (Result.ANSWERED, Zone.NORMAL, Mode.RERANKED, (1,))
    assert told.markdown.startswith("Every morning, and twice when it is hot")
    assert url(1) in told.markdown
    assert "[[" not in told.markdown
    assert list(trace.timings_ms) == ["retrieve", "rerank", "evidence", "generate", "sanitize"]
    assert (trace.lang, trace.zone, trace.mode) == ("en", Zone.NORMAL, Mode.RERANKED)
    assert [one.post_id for one in trace.candidates] == [source.post_id for source in trace.sources] == [1, 2, 3]
    assert trace.queries == [QUESTION.text]
    assert trace.draft == "Every morning, and twice when it is hot [[1]]."
    assert trace.notes == []


@pytest.mark.parametrize(
    ("top", "zone"),
    [(5.0, Zone.NORMAL), (0.0, Zone.NORMAL), (-0.01, Zone.WEAK), (-4.0, Zone.WEAK), (-4.01, Zone.ABSTAIN)],
)
async def test_the_top_logit_decides(top: float, zone: Zone) -> None:
    world = World(reranker=FakeReranker({1: -9.0, 2: top, 3: -9.0}))
    told, _ = await ask(world)
    assert told.zone is zone
    assert told.sources[0].post_id == 2
    assert (told.result is Result.ABSTAINED) == (zone is Zone.ABSTAIN)
    assert world.answerer.calls == (0 if zone is Zone.ABSTAIN else 1)


async def test_the_weak_zone_opens_with_the_servers_caution() -> None:
    told, _ = await ask(World(reranker=FakeReranker({1: -1.0, 2: -2.0, 3: -3.0})))
    assert told.markdown.startswith(message(Message.CAUTION, ENGLISH, 0) + "\n\n")
    assert url(1) in told.markdown


async def test_abstaining_names_the_question_and_calls_no_model() -> None:
    world = World(candidates=[])
    told, trace = await ask(world, replace(QUESTION, lang=FRENCH, text="Où est @bob ?"))
    assert told.result is Result.ABSTAINED
    text, way_on = told.markdown.split("\n\n")
    assert text == message(Message.ABSTAIN, FRENCH, 0, question="Où est bob ?")
    assert f"]({BASE_URL}/new-topic?title=O%C3%B9%20est%20%40bob%20%3F&body=" in way_on
    assert (told.cited, world.answerer.calls, trace.zone) == ((), 0, Zone.ABSTAIN)


async def test_one_post_a_topic_and_six_sources() -> None:
    found = [candidate(1, topic=9), candidate(2, topic=9), *(candidate(n) for n in range(3, 12))]
    logits = {1: 3.65, **{n: 4.0 - n / 10 for n in range(3, 12)}}
    told, _ = await ask(World(candidates=found, reranker=FakeReranker(logits)))
    assert [source.post_id for source in told.sources] == [3, 1, 4, 5, 6, 7]
    assert [source.n for source in told.sources] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("fault", DOWN)
async def test_without_the_embedder_keywords_are_reranked(fault: ArianeError) -> None:
    told, trace = await ask(World(embedder=FakeEmbedder(down=fault)))
    assert (told.mode, told.zone, told.result) == (Mode.KEYWORD, Zone.NORMAL, Result.ANSWERED)
    assert trace.notes == ["embedder_down"]


@pytest.mark.parametrize("fault", DOWN)
@pytest.mark.parametrize(("cosine", "zone"), [(0.99, Zone.WEAK), (0.85, Zone.WEAK), (0.84, Zone.ABSTAIN)])
async def test_without_the_reranker_it_is_weak_at_best_and_still_abstains(
    fault: ArianeError, cosine: float, zone: Zone
) -> None:
    found = [candidate(1, cosine=cosine - 0.1), candidate(2), candidate(3, cosine=cosine)]
    told, trace = await ask(World(candidates=found, reranker=FakeReranker(down=fault)))
    assert (told.mode, told.zone) == (Mode.RERANKER_DOWN, zone)
    assert [source.post_id for source in told.sources] == [1, 2, 3]
    assert trace.notes == ["reranker_down"]


async def test_without_embedder_and_reranker_it_abstains() -> None:
    world = World(embedder=FakeEmbedder(down=DOWN[0]), reranker=FakeReranker(down=DOWN[0]))
    told, trace = await ask(world)
    assert (told.result, told.mode) == (Result.ABSTAINED, Mode.RERANKER_DOWN)
    assert trace.notes == ["embedder_down", "reranker_down"]


@pytest.mark.parametrize("fault", DOWN)
async def test_without_the_answerer_the_sources_speak(fault: ArianeError) -> None:
    told, trace = await ask(World(answerer=FakeAnswerer(down=fault)))
    assert (told.result, told.cited) == (Result.ANSWERED, (1, 2, 3))
    intro, _, rest = told.markdown.partition("\n\n")
    assert intro == message(Message.SOURCES_INTRO, ENGLISH, 0, question=QUESTION.text)
    assert [url(n) in line for n, line in enumerate(rest.splitlines(), start=1)] == [True] * 3
    assert trace.notes == ["answerer_down", "sources_alone"]


@pytest.mark.parametrize("draft", ["", "Water them.", "Water them [[9]].", "See https://evil.example [[0]]", "[[1]]"])
async def test_a_draft_that_cites_nothing_is_not_posted(draft: str) -> None:
    told, trace = await ask(World(answerer=FakeAnswerer(draft)))
    assert "Water them" not in told.markdown
    assert "evil" not in told.markdown
    assert all(url(n) in told.markdown for n in (1, 2, 3))
    assert trace.notes == ["sources_alone"]
    assert trace.removed


@pytest.mark.parametrize("in_language", [True, False])
async def test_a_written_draft_keeps_to_the_questions_language_and_quotes_keep_theirs(in_language: bool) -> None:
    english = "You should water them every morning, and twice a day when it is very hot outside [[1]]."
    world = World(answerer=FakeAnswerer(english, in_language=in_language))
    told, trace = await ask(world, replace(QUESTION, lang=FRENCH, text="Quand arroser les tomates en pot ?"))
    assert ("sources_alone" in trace.notes) is in_language
    assert ("every morning" in told.markdown) is not in_language


async def test_the_list_of_sources_is_cautious_in_the_weak_zone() -> None:
    world = World(reranker=FakeReranker({1: -1.0, 2: -2.0, 3: -3.0}), answerer=FakeAnswerer("no citation"))
    told, _ = await ask(world)
    assert told.markdown.startswith(message(Message.CAUTION, ENGLISH, 0) + "\n\n")
    assert url(3) in told.markdown


async def test_posts_that_are_gone_are_left_out() -> None:
    told, _ = await ask(World(), without={PostId(1), PostId(3)})
    assert [source.post_id for source in told.sources] == [2]


async def test_the_reranker_reads_bounded_excerpts_and_the_trace_keeps_the_post() -> None:
    body = "Something else. " * 200 + "Water tomatoes in pots often. " + "Something else. " * 200
    world = World(candidates=[candidate(1, body=body)], settings=RetrievalSettings(excerpt_chars=100))
    _, trace = await ask(world)
    (read,) = world.reranker.read
    assert len(read) <= 100
    assert "Water tomatoes in pots often." in read
    assert trace.candidates[0].body == body


async def test_a_search_that_is_down_is_tried_again_later() -> None:
    class Down(FakeSearch):
        async def keyword_posts(self, lexemes: object, limit: int, *, exclude_from: object = None) -> list[Candidate]:
            raise Transient("no database")

    with pytest.raises(Transient):
        await answer(QUESTION, replace(World().stages, search=Down()), Trace(), seed=0)


async def test_a_logit_that_is_no_number_abstains() -> None:
    told, _ = await ask(World(candidates=[candidate(1)], reranker=FakeReranker({1: math.nan})))
    assert told.result is Result.ABSTAINED
