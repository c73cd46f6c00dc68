"""Completes chats with an OpenAI-compatible /v1/chat/completions (llama.cpp, vLLM)."""

from dataclasses import dataclass

from service.domain import Completion
from service.errors import Misconfigured, Rejected, Transient
from service.inference.access import Access
from service.inference.chat import ChatRequest, ServedChat, refuse_endless
from service.remote import Refused, Remote


@dataclass(frozen=True, slots=True)
class OpenAiChatOptions:
    """`window_tokens` is the context that the server was started with."""

    model: str
    window_tokens: int = 8192
    seed: int = 0


def openai_chat(remote: Remote, access: Access, options: OpenAiChatOptions) -> ServedChat:
    """The ChatModel of one model on a server that speaks OpenAI's API.

    `remote` points at the server's root and makes one attempt a call: a generation is not repeated blindly.
    """

    async def ask(request: ChatRequest) -> Completion:
        try:
            answer = await remote.json("POST", "/v1/chat/completions", body=_body(request, options))
        except Refused as exc:
            raise _translated(exc, options.model) from exc
        made = read_completion(answer, remote.name)
        refuse_endless(len(made.text), options.model)
        return made

    return ServedChat(ask, access, window_tokens=options.window_tokens)


def _body(request: ChatRequest, options: OpenAiChatOptions) -> dict[str, object]:
    body: dict[str, object] = {
        "model": options.model,
        "messages": [{"role": one.role.value, "content": one.content} for one in request.messages],
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": options.seed,
        "stream": False,
        "chat_template_kwargs": {"enable_thinking": False},  # as Qwen's chat template names it
    }
    if request.schema is not None:
        named = {"name": "answer", "strict": True, "schema": dict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    return body


def _translated(exc: Refused, model: str) -> Rejected | Misconfigured:
    error = exc.body.get("error") if isinstance(exc.body, dict) else None
    said = str(error.get("message", "") if isinstance(error, dict) else error or "")[:300]
    message = f"{exc} {said}".strip()
    if exc.status == 403:
        return Misconfigured(f"{message}: check the API key")
    if exc.status == 404:
        return Misconfigured(f"{message}: no model {model!r} there, or no OpenAI-compatible server")
    return Rejected(message, status=413 if "context" in said else exc.status)


def read_completion(answer: object, server: str) -> Completion:
    """The completion in an answer, thinking and all; raises Transient when it holds none."""
    match answer:
        case {"choices": [{"message": {"content": str() | None as content}, "finish_reason": reason}, *_], **rest}:
            usage = rest.get("usage")
            counts = usage if isinstance(usage, dict) else {}
            return Completion(content or "", _count(counts.get("prompt_tokens")), reason == "length")
        case {"error": {"message": said}}:
            raise Transient(f"{server}: {str(said)[:300]}")
    raise Transient(f"{server}: the answer holds no completion")


def _count(value: object) -> int | None:
    return value if type(value) is int else None
