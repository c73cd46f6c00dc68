"""A chat model on a server: the prompt's room before the call, and after it text without the model's thinking."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from service.domain import ChatMessage, Completion
from service.domain.models import MESSAGE_TOKENS
from service.errors import Rejected, Transient
from service.inference.access import Access
from service.inference.tokens import chat_tokens, sendable

MAX_COMPLETION_CHARS = 100_000
"""No completion that we ask for comes near: a longer text comes from a server that doesn't stop."""

_OPEN = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_OPENS = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_CLOSE_AT_EDGE = re.compile(r"(?:(?<=\n)|^)[ \t]*</think(?:ing)?>|</think(?:ing)?>(?=[ \t]*(?:\n|$))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a server is asked: texts that can be sent, the limits, and the JSON schema that binds the answer."""

    messages: Sequence[ChatMessage]
    max_tokens: int
    temperature: float
    schema: Mapping[str, object] | None


class Ask(Protocol):
    """One generation as the server gives it, thinking and all; raises as ChatModel says."""

    async def __call__(self, request: ChatRequest, /) -> Completion: ...


class ServedChat:
    """ChatModel over a server: never thinking, never past its window unnoticed, always within the deadline."""

    def __init__(self, ask: Ask, access: Access, *, window_tokens: int) -> None:
        self.window_tokens = window_tokens
        self._ask = ask
        self._access = access

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int,
        temperature: float,
        timeout_seconds: float,
        schema: Mapping[str, object] | None = None,
        urgent: bool = True,
    ) -> Completion:
        window = self.window_tokens
        refuse_long_prompt(messages, max_tokens=max_tokens, window_tokens=window)
        sent = [ChatMessage(one.role, sendable(one.content)) for one in messages]
        async with self._access.call(urgent=urgent, timeout_seconds=timeout_seconds):
            made = await self._ask(ChatRequest(sent, max_tokens, temperature, schema))
        refuse_cut_prompt(messages, prompt_tokens=made.prompt_tokens, window_tokens=window)
        return replace(made, text=without_thinking(sendable(made.text)))


def refuse_endless(length: int, model: str) -> None:
    """Raise Transient when a text of so many characters tells of a server that doesn't stop."""
    if length > MAX_COMPLETION_CHARS:
        raise Transient(f"{model} doesn't stop: more than {MAX_COMPLETION_CHARS} characters")


def refuse_long_prompt(messages: Sequence[ChatMessage], *, max_tokens: int, window_tokens: int) -> None:
    """Raise Rejected (413) when the prompt, estimated on the safe side, leaves no room for `max_tokens`."""
    tokens = math.ceil(sum(chat_tokens(one.content) + MESSAGE_TOKENS for one in messages))
    if tokens + max_tokens > window_tokens:
        raise Rejected(
            f"a prompt of about {tokens} tokens and {max_tokens} of answer don't fit in {window_tokens}: "
            "give less evidence, or a larger context to the model",
            status=413,
        )


def refuse_cut_prompt(messages: Sequence[ChatMessage], *, prompt_tokens: int | None, window_tokens: int) -> None:
    """Raise Rejected (413) when the server read less than it was sent: past its window it drops messages silently.

    No tokenizer joins two words into one token, so fewer tokens than words tell of a cut; a full window does too.
    """
    if prompt_tokens is None:
        return
    words = sum(len(one.content.split()) for one in messages)
    if prompt_tokens < words or prompt_tokens >= window_tokens:
        raise Rejected(
            f"the model read {prompt_tokens} tokens of a prompt of {words} words (window {window_tokens}): it was cut; "
            "give less evidence, or a larger context to the model",
            status=413,
        )


def without_thinking(text: str) -> str:
    """The text after the thinking that it begins with.

    Thinking that never ends leaves nothing. A closing tag at a line's edge, with none that opens before it, ends
    thinking that the chat template opened.
    """
    while begun := _OPEN.match(text) or _lone_close(text):
        if begun.re is _CLOSE_AT_EDGE:
            text = text[begun.end() :]
            continue
        closed = re.compile(rf"</{begun[1]}>", re.IGNORECASE).search(text, begun.end())
        text = text[closed.end() :] if closed else ""
    return text.strip()


def _lone_close(text: str) -> re.Match[str] | None:
    closed = _CLOSE_AT_EDGE.search(text)
    return None if closed is None or _OPENS.search(text, 0, closed.start()) else closed
