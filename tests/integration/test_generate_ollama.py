"""Answers drafted through the real Ollama client, the fake server misbehaving in every way it can."""

import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from service.answer.generate import FallbackAnswerer, GeneratedAnswerer, GenerateOptions
from service.answer.markup.links import post_url
from service.answer.pipeline import answer
from service.answer.ports import Answerer
from service.domain import ENGLISH, Answer, Question, Result, Trace, Zone
from service.inference.access import Access
from service.inference.breaker import Breaker, BreakerState
from service.inference.extractive import ExtractiveAnswerer
from service.inference.ollama_chat import OllamaChatOptions, ollama_chat
from service.inference.ollama_errors import ollama_client
from service.inference.tokens import chat_tokens
from service.inference.turns import Turns
from tests.fakes.answering import BASE_URL, World, candidate
from tests.fakes.forum import Fault, drips, hangs, truncates
from tests.fakes.forum import answer as responds
from tests.fakes.model_server import hangs_up
from tests.fakes.ollama import BUSY, FakeOllama, Reply, refusal
from tests.fakes.serving import Stage, refusing_address
from tests.unit.forum_rules import live

MODEL = "qwen3:30b-a3b-q6k"
QUESTION = Question("How often should I water tomatoes in pots?", ENGLISH)
DEADLINE_SECONDS = 1.0
GOOD = "Every morning, and twice when it is hot [[1]]."
QUOTED = "extractive, the model was down"
BODIES = [
    "Water tomatoes in pots every morning; twice a day in a heat wave, because pots dry out fast. " * 12,
    "I water my pots when the first knuckle of a finger finds no damp earth, about once a day. " * 12,
    "Mulch the pots with straw and you can skip a day between two waterings in June. " * 12,
]


@dataclass(frozen=True)
class Kitchen:
    """Our answerer on the fake, with the quotes behind it; the breaker of the way to it."""

    answerer: Answerer
    breaker: Breaker

    async def ask(self) -> tuple[Answer, Trace]:
        world = World(candidates=[candidate(n, body=body) for n, body in enumerate(BODIES, start=1)])
        trace = Trace()
        stages = replace(world.stages, answerer=self.answerer)
        return await answer(QUESTION, stages, trace, seed=0), trace


@asynccontextmanager
async def kitchen(
    url: str, *, stand_in: bool = True, num_ctx: int = 8192, deadline_seconds: float = DEADLINE_SECONDS
) -> AsyncIterator[Kitchen]:
    async with ollama_client(url, timeout_seconds=5) as client:
        breaker = Breaker("ollama", failures=3)
        chat = ollama_chat(client, Access(Turns(1), breaker), OllamaChatOptions(MODEL, num_ctx=num_ctx))
        options = GenerateOptions(MODEL, deadline_seconds=deadline_seconds)
        made = GeneratedAnswerer(chat, chat_tokens, options)
        yield Kitchen(FallbackAnswerer(made, ExtractiveAnswerer() if stand_in else None), breaker)


Opens = Callable[..., AbstractAsyncContextManager[Kitchen]]


@pytest.fixture
def opened(stage: tuple[Stage, str]) -> Opens:
    def open_it(fake: FakeOllama, **options: Any) -> AbstractAsyncContextManager[Kitchen]:
        stage[0].on = fake
        return kitchen(stage[1], **options)

    return open_it


async def test_a_prompt_goes_out_and_a_cited_answer_comes_back(opened: Opens) -> None:
    fake = FakeOllama(replies=deque([Reply(GOOD)]))
    async with opened(fake) as here:
        told, trace = await here.ask()
    assert told.result is Result.ANSWERED and told.markdown.startswith("Every morning")
    assert post_url(told.sources[0], BASE_URL) in told.markdown
    assert (trace.drafted_by, trace.notes) == (MODEL, [])
    [body] = fake.posted("/api/chat")
    assert body["think"] is False
    assert body["options"]["num_ctx"] == 8192 and body["options"]["num_predict"] == 700
    system, user = body["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert QUESTION.text in user["content"] and "[[1]], [[2]], [[3]]" in user["content"]


@dataclass(frozen=True)
class Case:
    """What the server does, who then wrote the draft, and the trace's notes; `calls` are the requests it took."""

    replies: tuple[Reply, ...] = ()
    always: Fault | None = None
    faults: tuple[Fault, ...] = ()
    models: tuple[str, ...] = (MODEL,)
    by: str = QUOTED
    notes: tuple[str, ...] = ("model_down",)
    calls: int = 1

    def fake(self) -> FakeOllama:
        replies = deque(self.replies or [Reply(GOOD)])
        return FakeOllama(models=self.models, replies=replies, always=self.always, faults=deque(self.faults))


THINKING = Reply("<think>The member asks how often, and the sources say")
LENGTH = Reply(f"{GOOD} Some also mulch the pots and then they wat", done_reason="length")
UNCITED = Reply("Water them in the morning and in the evening and", done_reason="length")
EMPTY = Reply("")
CASES: dict[str, Case] = {
    "thinks first": Case((Reply(f"<think>\nhm\n</think>\n\n{GOOD}"),), by=MODEL, notes=()),
    "thinks elsewhere": Case((Reply(GOOD, thinking="hm"),), by=MODEL, notes=()),
    "thinks without a beginning": Case((Reply(f"hm, hm\n</think>\n{GOOD}"),), by=MODEL, notes=()),
    "thinks afterwards": Case((Reply(f"{GOOD}\n<think>was that right"),), by=MODEL, notes=()),
    "only thinks, once": Case((THINKING, Reply(GOOD)), by=MODEL, notes=("retried_empty",), calls=2),
    "only thinks": Case((THINKING, THINKING), calls=2),
    "empty, once": Case((EMPTY, Reply(GOOD)), by=MODEL, notes=("retried_empty",), calls=2),
    "empty": Case((EMPTY, EMPTY), calls=2),
    "length, once": Case((LENGTH, Reply(GOOD)), by=MODEL, notes=("retried_capped",), calls=2),
    "length, cited": Case((LENGTH, LENGTH), by=MODEL, notes=("retried_capped", "cut_after_citation"), calls=2),
    "length, uncited": Case((UNCITED, UNCITED), calls=2),
    "stream ends in an error": Case((Reply("Every morn", error="the runner crashed"),)),
    "stream breaks off": Case((Reply("Every morn", cut=True),)),
    "never stops": Case((Reply("x " * 60_000),)),
    "500": Case(always=refusal(500, "llama runner process has terminated")),
    "503": Case(always=BUSY),
    "400": Case(always=refusal(400, "does not support thinking")),
    "401": Case(always=refusal(401, "unauthorized")),
    "missing model": Case(models=()),
    "another server": Case(always=responds(404, "404 page not found")),
    "garbage": Case(always=responds(200, b'{"model": "qwen3",, \xff\n')),
    "HTML": Case(always=responds(200, "<html>Log in</html>")),
    "error in a 200": Case(always=responds(200, {"error": "the model crashed"})),
    "truncated": Case(always=truncates),
    "dies": Case(always=hangs_up),
    "hangs": Case(always=hangs),
    "drips": Case(always=drips),
}


@pytest.mark.parametrize("name", CASES)
async def test_every_misbehaviour_ends_in_an_answer_within_the_deadline(opened: Opens, name: str) -> None:
    case = CASES[name]
    fake = case.fake()
    async with opened(fake) as here:
        start = time.perf_counter()
        told, trace = await here.ask()
        assert time.perf_counter() - start < DEADLINE_SECONDS + 1.5
    assert (trace.drafted_by, tuple(trace.notes)) == (case.by, case.notes)
    assert len(fake.posted("/api/chat")) == case.calls
    assert told.result is Result.ANSWERED and told.zone is Zone.NORMAL and 1 in told.cited
    assert not set(told.markdown.lower().replace("<", " ").replace(">", " ").split()) & {"think", "hm", "hm,", "right"}
    assert live(told.markdown, [post_url(source, BASE_URL) for source in told.sources]) == []


@pytest.mark.parametrize("name", ["empty", "500", "missing model"])
async def test_without_a_stand_in_the_sources_speak(opened: Opens, name: str) -> None:
    async with opened(CASES[name].fake(), stand_in=False) as here:
        told, trace = await here.ask()
    assert (told.result, told.cited, trace.drafted_by) == (Result.ANSWERED, (1, 2, 3), "")
    assert trace.notes == ["answerer_down", "sources_alone"]


async def test_a_prompt_that_the_server_cuts_is_sent_shorter_then_given_up(opened: Opens) -> None:
    fake = FakeOllama(replies=deque([Reply(GOOD)] * 2))
    original = fake._chat
    fake._chat = lambda body: original(body | {"options": {"num_ctx": 100}})  # type: ignore[method-assign] # a server with another context
    async with opened(fake) as here:
        _, trace = await here.ask()
    assert (trace.drafted_by, trace.notes) == (QUOTED, ["model_down"])
    first, second = (len(body["messages"][1]["content"]) for body in fake.posted("/api/chat"))
    assert second < first


async def test_a_context_without_room_costs_no_call(opened: Opens) -> None:
    fake = FakeOllama()
    async with opened(fake, num_ctx=1024) as here:
        _, trace = await here.ask()
    assert trace.drafted_by == QUOTED
    assert fake.seen == []


async def test_a_dead_server_costs_its_timeout_three_times_only() -> None:
    async with kitchen(refusing_address()) as here:
        for _ in range(3):
            assert (await here.ask())[1].drafted_by == QUOTED
        assert here.breaker.state is BreakerState.OPEN
        start = time.perf_counter()
        assert (await here.ask())[1].drafted_by == QUOTED
        assert time.perf_counter() - start < 1.0


async def test_a_slow_model_is_asked_once_and_its_answer_used(opened: Opens) -> None:
    fake = FakeOllama(seconds=0.7, replies=deque([EMPTY, Reply(GOOD)]))
    async with opened(fake) as here:
        _, trace = await here.ask()
    assert (trace.drafted_by, len(fake.posted("/api/chat"))) == (QUOTED, 1), "0.3 s left are no half of 0.7"
    assert here.breaker.state is BreakerState.CLOSED
