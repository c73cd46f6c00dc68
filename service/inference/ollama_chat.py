"""Completes chats with Ollama's /api/chat."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

import ollama

from service.domain import Completion
from service.errors import Transient
from service.inference.access import Access
from service.inference.chat import ChatRequest, ServedChat, refuse_endless
from service.inference.ollama_errors import KEEP_ALIVE, ollama_errors


@dataclass(frozen=True, slots=True)
class OllamaChatOptions:
    """`num_ctx` is one constant for every call, in tokens: another value makes Ollama load the model again."""

    model: str
    num_ctx: int = 8192
    seed: int = 0


def ollama_chat(client: ollama.AsyncClient, access: Access, options: OllamaChatOptions) -> ServedChat:
    """The ChatModel of one model on Ollama."""
    server = access.breaker.name

    async def ask(request: ChatRequest) -> Completion:
        with ollama_errors(server, options.model):
            return await _generate(client, options, request, server)

    return ServedChat(ask, access, window_tokens=options.num_ctx)


async def _generate(
    client: ollama.AsyncClient, options: OllamaChatOptions, request: ChatRequest, server: str
) -> Completion:
    """The whole text. It is streamed: when we stop reading, the server stops generating."""
    events = await client.chat(
        options.model,
        [{"role": one.role.value, "content": one.content} for one in request.messages],
        stream=True,
        think=False,
        format=dict(request.schema) if request.schema is not None else None,
        options={
            "num_ctx": options.num_ctx,
            "num_predict": request.max_tokens,
            "temperature": request.temperature,
            "seed": options.seed,
        },
        keep_alive=KEEP_ALIVE,
    )
    parts: list[str] = []
    length = 0
    stream = cast("AsyncGenerator[ollama.ChatResponse]", events)
    async with aclosing(stream):
        async for event in stream:
            part = event.message.content or ""
            parts.append(part)
            length += len(part)
            refuse_endless(length, options.model)
            if event.done:
                return Completion("".join(parts), event.prompt_eval_count, event.done_reason == "length")
    raise Transient(f"{server}: the answer of {options.model} broke off")
