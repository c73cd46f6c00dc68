"""Our adapter of OpenAI's chat API against a fake in the shapes of llama.cpp and vLLM."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answer.ports import ChatModel
from service.domain import ChatMessage, Completion, Role
from service.errors import ArianeError, Misconfigured, Rejected, Transient
from service.inference.access import Access
from service.inference.breaker import Breaker
from service.inference.chat import ServedChat, refuse_cut_prompt, refuse_long_prompt, without_thinking
from service.inference.openai_chat import OpenAiChatOptions, openai_chat, read_completion
from service.inference.turns import Turns
from service.remote import Remote
from tests.fakes.forum import Fault, answer, drips, hangs, truncates
from tests.fakes.model_server import hangs_up
from tests.fakes.ollama import Reply
from tests.fakes.openai_chat import LOADING, FakeOpenAi, refusal
from tests.fakes.serving import Stage

PROMPT = [ChatMessage(Role.SYSTEM, "You answer from sources."), ChatMessage(Role.USER, "Why does the valve leak?")]


async def complete(chat: ChatModel, *, max_tokens: int = 700, timeout_seconds: float = 2.0) -> Completion:
    return await chat.complete(PROMPT, max_tokens=max_tokens, temperature=0.2, timeout_seconds=timeout_seconds)


class Chat(Protocol):
    """Puts a fake on the stage and gives our adapter of it."""

    def __call__(self, fake: FakeOpenAi, *, window: int = 2048) -> AbstractAsyncContextManager[ServedChat]: ...


@pytest.fixture
def chat(stage: tuple[Stage, str]) -> Chat:
    @asynccontextmanager
    async def run(fake: FakeOpenAi, *, window: int = 2048) -> AsyncIterator[ServedChat]:
        stage[0].on = fake
        headers = {b"authorization": b"Bearer key"}
        async with Remote(stage[1], name="llm", timeout_seconds=2.0, attempts=1, headers=headers) as remote:
            way = Access(Turns(1), Breaker("llm", failures=100))
            yield openai_chat(remote, way, OpenAiChatOptions("qwen3", window_tokens=window, seed=7))

    return run


async def test_a_chat_sends_every_limit_and_gives_text_and_counts(chat: Chat) -> None:
    fake = FakeOpenAi()
    async with chat(fake) as model:
        made = await model.complete(
            PROMPT, max_tokens=700, temperature=0.2, timeout_seconds=2, schema={"type": "object"}
        )
    assert made == Completion("The valve sticks [[1]].", 13, truncated=False)
    [body] = fake.posted("/v1/chat/completions")
    limits = {"model": "qwen3", "max_tokens": 700, "temperature": 0.2, "seed": 7, "stream": False}
    assert body.items() >= limits.items()
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}


@pytest.mark.parametrize(
    ("reply", "text", "truncated"),
    [
        (Reply("<think>hm</think>It sticks.", thinking="hm"), "It sticks.", False),
        (Reply("hm\n</think>\nIt sticks.", done_reason="length"), "It sticks.", True),
        (Reply("<think>without end", done_reason="length"), "", True),
        (Reply(""), "", False),
    ],
)
async def test_thinking_is_stripped_and_a_cap_is_told(chat: Chat, reply: Reply, text: str, truncated: bool) -> None:
    async with chat(FakeOpenAi(replies=deque([reply]))) as model:
        made = await complete(model)
    assert (made.text, made.truncated) == (text, truncated)


FAULTS: dict[str, tuple[Fault, type[ArianeError]]] = {
    "loading": (LOADING, Transient),
    "429": (refusal(429, "rate_limit", "slow down"), Transient),
    "500": (answer(500, "Internal Server Error"), Transient),
    "400": (refusal(400, "invalid_request_error", "bad schema"), Rejected),
    "401": (refusal(401, "authentication_error", "Invalid API Key"), Misconfigured),
    "403": (refusal(403, "permission_error", "forbidden"), Misconfigured),
    "404": (answer(404, "Not Found"), Misconfigured),
    "no model": (refusal(404, "NotFoundError", "The model `qwen3` does not exist."), Misconfigured),
    "error in a 200": (answer(200, {"error": {"message": "crashed"}}), Transient),
    "no choices": (answer(200, {"choices": []}), Transient),
    "garbage": (answer(200, b'{"choices": [\xff'), Transient),
    "truncated": (truncates, Transient),
    "dies": (hangs_up, Transient),
    "hangs": (hangs, Transient),
    "drips": (drips, Transient),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_fault_is_translated_within_the_deadline(chat: Chat, fault: str) -> None:
    made, kind = FAULTS[fault]
    async with chat(FakeOpenAi(always=made)) as model:
        started = asyncio.get_running_loop().time()
        with pytest.raises(kind):
            await complete(model, timeout_seconds=0.5)
        assert asyncio.get_running_loop().time() - started < 1.5


async def test_a_prompt_past_the_window_is_refused_with_413(chat: Chat) -> None:
    fake = FakeOpenAi(window=5)
    async with chat(fake) as model:
        with pytest.raises(Rejected, match="context size") as refused:
            await complete(model)
        assert refused.value.status == 413
        with pytest.raises(Rejected, match="don't fit") as refused:
            await complete(model, max_tokens=2040)
    assert refused.value.status == 413
    assert len(fake.seen) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "finish_reason", "usage", "prompt_tokens", "error"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_answer_is_a_completion_or_transient(answered: object) -> None:
    try:
        made = read_completion(answered, "llm")
    except Transient:
        return
    assert isinstance(made.text, str)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<thinking>", "</THINKING>", "\n", " ", "text", "`"])))
def test_no_text_begins_with_thinking(parts: list[str]) -> None:
    whole = "".join(parts)
    text = without_thinking(whole)
    assert not text.startswith(("<think>", "<thinking>"))
    assert whole.strip().endswith(text)
    assert text == whole.strip() or whole.lstrip().startswith("<think") or "</" in whole
    assert without_thinking(text) == text or "</" in text


@given(st.text(max_size=300))
def test_any_text_is_shortened_only(text: str) -> None:
    made = without_thinking(text)
    assert text.strip().endswith(made)
    assert made == text.strip() or "think" in text.lower()


def test_the_room_of_a_prompt() -> None:
    refuse_long_prompt(PROMPT, max_tokens=700, window_tokens=1024)
    with pytest.raises(Rejected):
        refuse_long_prompt(PROMPT, max_tokens=1020, window_tokens=1024)


@pytest.mark.parametrize(("tokens", "cut"), [(None, False), (9, False), (500, False), (8, True), (1024, True)])
def test_fewer_tokens_than_words_or_a_full_window_tell_of_a_cut(tokens: int | None, cut: bool) -> None:
    try:
        refuse_cut_prompt(PROMPT, prompt_tokens=tokens, window_tokens=1024)
    except Rejected as exc:
        assert cut and exc.status == 413
    else:
        assert not cut
