"""Completes chats with Ollama's /api/chat."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

import ollama

from service.domain import ChatMessage, Completion
from service.errors import Transient
from service.inference.access import Access
from service.inference.chat import MAX_COMPLETION_CHARS, refuse_cut_prompt, refuse_long_prompt, without_thinking
from service.inference.ollama_errors import ollama_errors
from service.inference.tokens import sendable


@dataclass(frozen=True, slots=True)
class OllamaChatOptions:
    """`num_ctx` is one constant for every call, in tokens: another value makes Ollama load the model again."""

    model: str
    num_ctx: int = 8192
    keep_alive: float | str = -1
    seed: int = 0


class OllamaChat:
    """ChatModel on Ollama: never thinking, never past its window unnoticed, always within the deadline."""

    def __init__(self, client: ollama.AsyncClient, access: Access, options: OllamaChatOptions) -> None:
        self._client = client
        self._access = access
        self._options = options

    @property
    def window_tokens(self) -> int:
        return self._options.num_ctx

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
        window = self._options.num_ctx
        refuse_long_prompt(messages, max_tokens=max_tokens, window_tokens=window)
        async with self._access.call(urgent=urgent, timeout_seconds=timeout_seconds):
            with ollama_errors(self._access.breaker.name, self._options.model):
                text, last = await self._generate(messages, max_tokens, temperature, schema)
        refuse_cut_prompt(messages, prompt_tokens=last.prompt_eval_count, window_tokens=window)
        text, stripped = without_thinking(text)
        return Completion(text, last.prompt_eval_count, last.eval_count, last.done_reason == "length", stripped)

    async def _generate(
        self,
        messages: Sequence[ChatMessage],
        max_tokens: int,
        temperature: float,
        schema: Mapping[str, object] | None,
    ) -> tuple[str, ollama.ChatResponse]:
        """The whole text and the last event. It is streamed: when we stop reading, the server stops generating."""
        options = {
            "num_ctx": self._options.num_ctx,
            "num_predict": max_tokens,
            "temperature": temperature,
            "seed": self._options.seed,
        }
        events = await self._client.chat(
            self._options.model,
            [{"role": one.role.value, "content": sendable(one.content)} for one in messages],
            stream=True,
            think=False,
            format=dict(schema) if schema is not None else None,
            options=options,
            keep_alive=self._options.keep_alive,
        )
        parts: list[str] = []
        length = 0
        stream = cast("AsyncGenerator[ollama.ChatResponse]", events)
        async with aclosing(stream):
            async for event in stream:
                part = event.message.content or ""
                parts.append(part)
                length += len(part)
                if length > MAX_COMPLETION_CHARS:
                    raise Transient(f"{self._options.model} doesn't stop: more than {MAX_COMPLETION_CHARS} characters")
                if event.done:
                    return "".join(parts), event
        raise Transient(f"{self._access.breaker.name}: the answer of {self._options.model} broke off")
