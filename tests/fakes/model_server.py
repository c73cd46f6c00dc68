"""What the fakes of model servers share: requests kept, one-off and lasting faults, small deterministic models."""

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from starlette.types import Receive, Scope, Send

from service.domain import Vector
from tests.fakes.forum import Fault, answer

Json = Any
Embed = Callable[[str], Vector]

NAN_WORD = "nantext"
"""A text with this word makes the fakes' models fail, always, as some texts do bge-m3."""


def hashed_vector(text: str, dimensions: int = 16) -> Vector:
    """A unit vector that depends on every character of the text."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def shared_words(query: str, text: str) -> float:
    """A logit: -5 without a common word, 2 more for each."""
    return 2.0 * len(set(query.lower().split()) & set(text.lower().split())) - 5.0


def words(text: str) -> int:
    """The fakes' tokenizer: one token a word, and two around the text."""
    return len(text.split()) + 2


async def hangs_up(scope: Scope, receive: Receive, send: Send) -> None:
    """Close the connection without an answer, as a killed process does."""
    cycle = getattr(receive, "__self__", None)  # uvicorn's receive is a method of its request cycle
    assert cycle is not None, "only a real socket can be hung up"
    cycle.transport.abort()
    await asyncio.sleep(0.01)


@dataclass
class FakeServer:
    """`faults` take the next requests, one each; `always` every other; after `dies_after` requests it hangs up."""

    faults: deque[Fault] = field(default_factory=deque)
    always: Fault | None = None
    dies_after: int | None = None
    seconds: float = 0.0
    seen: list[tuple[str, Json]] = field(default_factory=list)
    """Path and JSON of each request."""
    hosts: list[str] = field(default_factory=list)
    most_at_once: int = 0
    _running: int = 0

    def posted(self, path: str) -> list[Json]:
        return [body for seen, body in self.seen if seen == path]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        content = b""
        while (message := await receive())["type"] == "http.request":
            content += message.get("body", b"")
            if not message.get("more_body"):
                break
        body = json.loads(content) if content else None
        self.seen.append((scope["path"], body))
        self.hosts += [value.decode() for name, value in scope["headers"] if name == b"host"]
        self._running += 1
        self.most_at_once = max(self.most_at_once, self._running)
        try:
            await self._fault_or(scope["path"], body, len(content))(scope, receive, send)
        finally:
            self._running -= 1

    def _fault_or(self, path: str, body: Json, size: int) -> Fault:
        if self.dies_after is not None and len(self.seen) > self.dies_after:
            return hangs_up
        if self.faults:
            return self.faults.popleft()
        if self.always is not None:
            return self.always

        async def respond(scope: Scope, receive: Receive, send: Send) -> None:
            await asyncio.sleep(self.seconds)
            await self.respond(path, body, size)(scope, receive, send)

        return respond

    def respond(self, path: str, body: Json, size: int) -> Fault:
        """The right answer to a request whose body has this size in bytes."""
        return answer(404, "404 page not found")
