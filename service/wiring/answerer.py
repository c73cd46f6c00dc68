"""The language model by settings: which server writes the answers, and what stands in for it."""

from contextlib import AsyncExitStack
from typing import assert_never

from service.answer.categories import CategoryNames
from service.answer.ports import Answerer, ChatModel
from service.errors import Misconfigured
from service.inference.access import Access
from service.inference.breaker import Breaker
from service.inference.extractive import ExtractiveAnswerer
from service.inference.tokens import chat_tokens
from service.inference.turns import Turns
from service.settings.models import AnswererKind, AnswererSettings, WhenDown


async def open_answerer(
    settings: AnswererSettings,
    categories: CategoryNames,
    source_chars: int,
    breaker: Breaker,
    stack: AsyncExitStack,
) -> tuple[Answerer, ChatModel | None]:
    """What answers, and the language model behind it, closed with the stack; what it can't answer is quoted.

    Raises Misconfigured for an unknown variant of the prompt, or a server without an address.
    """
    model: ChatModel
    quoting = ExtractiveAnswerer()
    access = Access(Turns(settings.concurrency), breaker)
    match settings.kind:
        case AnswererKind.EXTRACTIVE:
            return quoting, None
        case AnswererKind.OLLAMA:
            from service.inference.ollama_chat import OllamaChatOptions, ollama_chat
            from service.inference.ollama_errors import ollama_client

            client = ollama_client(
                server_url(settings.url, "models.answerer.url"), timeout_seconds=settings.deadline_seconds
            )
            stack.push_async_callback(client.close)
            model = ollama_chat(client, access, OllamaChatOptions(settings.model, num_ctx=settings.context_tokens))
        case AnswererKind.OPENAI:
            from service.inference.openai_chat import OpenAiChatOptions, openai_chat
            from service.remote import Remote

            remote = Remote(
                server_url(settings.url, "models.answerer.url"),
                name="chat",
                timeout_seconds=settings.deadline_seconds,
                attempts=1,
                headers=_authorization(settings),
            )
            await stack.enter_async_context(remote)
            model = openai_chat(
                remote, access, OpenAiChatOptions(settings.model, window_tokens=settings.context_tokens)
            )
        case _:
            assert_never(settings.kind)
    from service.answer.generate import FallbackAnswerer, GeneratedAnswerer, GenerateOptions
    from service.answer.templates import known_variant

    generation = GenerateOptions(
        settings.model,
        answer_tokens=settings.answer_tokens,
        evidence_tokens=settings.evidence_tokens,
        source_chars=source_chars,
        deadline_seconds=settings.deadline_seconds,
        max_calls=settings.max_calls,
        variant=known_variant(settings.prompt_variant),
    )
    stand_in = quoting if settings.when_down is WhenDown.EXTRACTIVE else None
    writer = GeneratedAnswerer(model, chat_tokens, generation, categories=categories)
    return FallbackAnswerer(writer, stand_in), model


def _authorization(settings: AnswererSettings) -> dict[bytes, bytes]:
    key = settings.api_key.get_secret_value()
    return {b"Authorization": f"Bearer {key}".encode()} if key else {}


def server_url(url: str, setting: str) -> str:
    """The setting's value; raises Misconfigured, naming the setting, where there is none."""
    if not url:
        raise Misconfigured(f"{setting}: needed for this kind of model: the server's address, or the model's folder")
    return url
