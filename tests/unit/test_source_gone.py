"""A cited post that went before the reply was out: the second answer's trace is its own, its budget the question's."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from service.answer.check import ModelChecker
from service.answer.checking import DraftFault
from service.answer.compose import DISCARDED
from service.answer.generate import CallLimits, GeneratedAnswerer, GenerateOptions
from service.answer.respond import respond
from service.answer.spending import Spending
from service.domain import ENGLISH, Draft, Posted, PostId, Question, Result, Source, Spent, Trace, Zone
from service.errors import Transient
from service.inference.tokens import chat_tokens
from tests.fakes.answering import NOW, FakeReranker, World, candidate
from tests.unit.test_check import FIRST, Model, failing

BODY = "Water tomatoes in pots every morning, twice when it is hot."


async def run(model: Model, reranker: FakeReranker | None = None, **limits: Any) -> tuple[Result, Trace]:
    """How it ended and its trace, post 1 being gone from the forum."""
    said = [candidate(1, body=BODY), candidate(2, body=f"Mulch too. {BODY}"), candidate(3, body="Feed them in June.")]
    world = World(candidates=said, reranker=reranker or FakeReranker({1: 3.0, 2: 2.0, 3: 1.0}))
    del world.forum.posts[PostId(1)]
    deps = world.deps()
    writer = GeneratedAnswerer(model, chat_tokens, GenerateOptions("qwen", **limits), clock=model.clock)
    checker = ModelChecker(model, CallLimits(**limits), clock=model.clock)
    deps = replace(deps, stages=replace(deps.stages, answerer=writer, checker=checker))
    outcome = await respond(world.asked, deps, now=NOW)
    assert isinstance(outcome, Posted)
    return outcome.result, world.ledger.rows[world.asked.id].trace


def writing(*drafts: str, **options: Any) -> Model:
    model = Model(**options)
    model.drafts.clear()
    model.drafts.extend(drafts)
    return model


@pytest.mark.parametrize(
    ("max_calls", "made", "checks", "notes"),
    [
        (4, ["draft", "check", "draft", "check"], ["passed"], []),
        (3, ["draft", "check", "draft"], ["not made: no time"], []),
        (2, ["draft", "check"], [], ["answerer_down", "sources_alone"]),
    ],
)
async def test_both_answers_share_the_questions_calls(
    max_calls: int, made: list[str], checks: list[str], notes: list[str]
) -> None:
    model = writing(FIRST, FIRST)
    result, trace = await run(model, max_calls=max_calls)
    assert (model.made, result) == (made, Result.ANSWERED)
    assert (trace.checks, trace.notes) == (checks, ["source_gone", *notes])


async def test_both_answers_share_the_questions_time() -> None:
    model = writing(FIRST, FIRST, seconds=45.0)
    result, trace = await run(model)
    assert (model.made, result) == (["draft", "check", "draft"], Result.ANSWERED)
    assert trace.checks == ["not made: no time"]


async def test_the_trace_is_of_the_answer_that_is_posted() -> None:
    model = writing(FIRST, FIRST, FIRST, verdicts=deque([failing(DraftFault.UNSUPPORTED, "watering at noon")]))
    result, trace = await run(model, max_calls=8)
    assert result is Result.ANSWERED
    assert [source.post_id for source in trace.sources] == [2, 3]
    assert (trace.draft, trace.first_draft, trace.checks) == (FIRST, "", ["passed"])
    assert trace.queries == ["how often should I water tomatoes in pots?"]
    assert trace.removed == {}
    assert trace.notes == ["source_gone"]
    assert trace.timings_ms[DISCARDED] > 0


async def test_nothing_is_left_of_a_draft_where_the_rest_leads_nowhere() -> None:
    result, trace = await run(writing(FIRST), FakeReranker({1: 3.0, 2: -9.0, 3: -9.0}))
    assert (result, trace.zone) == (Result.ABSTAINED, Zone.ABSTAIN)
    assert (trace.draft, trace.drafted_by, trace.checks, trace.notes) == ("", "", [], ["source_gone"])


@dataclass
class Late:
    """An answerer that a model's failure has kept waiting."""

    now: float = 5.0
    fails: bool = True

    async def draft(self, question: Question, sources: Sequence[Source], zone: Zone) -> Draft:
        self.now += 30.0
        if self.fails:
            raise Transient("busy")
        return Draft("Nothing [[1]].", "quotes")


@pytest.mark.parametrize("fails", [True, False], ids=["nothing stands in", "quotes stand in"])
async def test_the_time_of_a_model_that_failed_is_spent(fails: bool) -> None:
    late = Late(fails=fails)
    spending = Spending(Spent(1, 2.0), clock=lambda: late.now)
    stages = spending.counted(replace(World().stages, answerer=late))
    try:
        await stages.answerer.draft(Question("How?", ENGLISH, spent=spending.spent), (), Zone.NORMAL)
    except Transient:
        assert fails
    assert (spending.spent, stages.checker) == (Spent(2, 32.0), None)
