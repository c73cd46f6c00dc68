"""Completes chats with an OpenAI-compatible /v1/chat/completions (llama.cpp, vLLM)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.domain import ChatMessage, Completion
from service.errors import Misconfigured, Rejected, Transient
from service.inference.access import Access
from service.inference.chat import MAX_COMPLETION_CHARS, refuse_cut_prompt, refuse_long_prompt, without_thinking
from service.inference.tokens import sendable
from service.remote import Refused, Remote


@dataclass(frozen=True, slots=True)
class OpenAiChatOptions:
    """`window_tokens` is the context that the server was started with."""

    model: str
    window_tokens: int = 8192
    seed: int = 0


class OpenAiChat:
    """ChatModel on a server that speaks OpenAI's API; thinking is turned off as Qwen's chat template names it."""

    def __init__(self, remote: Remote, access: Access, options: OpenAiChatOptions) -> None:
        """`remote` points at the server's root and makes one attempt a call: a generation is not repeated blindly."""
        self._remote = remote
        self._access = access
        self._options = options

    @property
    def window_tokens(self) -> int:
        return self._options.window_tokens

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
        refuse_long_prompt(messages, max_tokens=max_tokens, window_tokens=self.window_tokens)
        body: dict[str, object] = {
            "model": self._options.model,
            "messages": [{"role": one.role.value, "content": sendable(one.content)} for one in messages],
            "max_tokens": max_tokens,
            "temperature": temperature,
            "seed": self._options.seed,
            "stream": False,
            "chat_template_kwargs": {"enable_thinking": False},
        }
        if schema is not None:
            named = {"name": "answer", "strict": True, "schema": dict(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        async with self._access.call(urgent=urgent, timeout_seconds=timeout_seconds):
            try:
                answer = await self._remote.json("POST", "/v1/chat/completions", body=body)
            except Refused as exc:
                raise self._translated(exc) from exc
            completion = read_completion(answer, self._remote.name)
        refuse_cut_prompt(messages, prompt_tokens=completion.prompt_tokens, window_tokens=self.window_tokens)
        return completion

    def _translated(self, exc: Refused) -> Rejected | Misconfigured:
        error = exc.body.get("error") if isinstance(exc.body, dict) else None
        said = str(error.get("message", "") if isinstance(error, dict) else error or "")[:300]
        message = f"{exc} {said}".strip()
        if exc.status == 403:
            return Misconfigured(f"{message}: check the API key")
        if exc.status == 404:
            return Misconfigured(f"{message}: no model {self._options.model!r} there, or no OpenAI-compatible server")
        return Rejected(message, status=413 if "context" in said else exc.status)


def read_completion(answer: object, server: str) -> Completion:
    """The completion in an answer; raises Transient when it holds none."""
    match answer:
        case {"choices": [{"message": {"content": str() | None as content}, "finish_reason": reason}, *_], **rest}:
            text, stripped = without_thinking((content or "")[:MAX_COMPLETION_CHARS])
        case {"error": {"message": said}}:
            raise Transient(f"{server}: {said}")
        case _:
            raise Transient(f"{server}: the answer holds no completion")
    usage = rest.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return Completion(
        text, _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")), reason == "length", stripped
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None
