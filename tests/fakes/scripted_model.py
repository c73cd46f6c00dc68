"""A language model that says one text, on a clock of its own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.domain import ChatMessage, Completion
from service.errors import ArianeError


def said(question: str) -> str:
    """A rewriting as the model is told to give it."""
    return json.dumps({"question": question})


@dataclass
class ScriptedModel:
    """Says one text, or fails; a call takes `seconds` of its own clock."""

    tells: str | ArianeError
    seconds: float = 2.0
    window_tokens: int = 8192
    now: float = 0.0
    calls: list[tuple[Sequence[ChatMessage], dict[str, object]]] = field(default_factory=list)

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
        told = {"max_tokens": max_tokens, "temperature": temperature, "timeout": timeout_seconds, "schema": schema}
        self.calls.append((messages, {**told, "urgent": urgent}))
        self.now += self.seconds
        if isinstance(self.tells, ArianeError):
            raise self.tells
        return Completion(self.tells, 200, truncated=False)
