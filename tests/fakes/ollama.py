"""Ollama in the shapes of its published contract, as far as we use it: /api/chat, /api/embed and /api/show."""

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.types import Receive, Scope, Send

from tests.fakes.forum import Fault, answer
from tests.fakes.model_server import NAN_WORD, Embed, FakeServer, Json, hashed_vector, words

WHEN = "2026-11-30T12:00:00.000000Z"


def refusal(status: int, text: str) -> Fault:
    return answer(status, {"error": text})


BUSY = refusal(503, "server busy, please try again.  maximum pending requests exceeded")


@dataclass(frozen=True)
class Reply:
    """One scripted answer of the chat model; `error` ends the stream after the text, `cut` breaks it off."""

    text: str = "The valve sticks [[1]]."
    done_reason: str = "stop"
    thinking: str = ""
    error: str | None = None
    cut: bool = False


@dataclass
class FakeOllama(FakeServer):
    """It counts a token a word; past num_ctx it drops the oldest messages and says nothing, as the real one does."""

    models: tuple[str, ...] = ("bge-m3", "qwen3:30b-a3b-q6k")
    replies: deque[Reply] = field(default_factory=deque)
    verdict: str = '{"answers": true, "unsupported": [], "repeats": false, "about_itself": false, "missing": []}'
    """What it says of any draft that it is to check."""
    embed: Embed = hashed_vector
    model_info: Mapping[str, object] = field(
        default_factory=lambda: {
            "general.architecture": "bert",
            "bert.context_length": 8192,
            "bert.embedding_length": 16,
        }
    )

    def respond(self, path: str, body: Json, size: int) -> Fault:
        if path == "/api/version":
            return answer(200, {"version": "0.12.0"})
        if path == "/api/tags":
            return answer(200, {"models": [{"name": name, "model": name, "size": 1} for name in self.models]})
        if path not in {"/api/chat", "/api/embed", "/api/show"}:
            return answer(404, "404 page not found")
        if body["model"] not in self.models:
            return refusal(404, f"model '{body['model']}' not found")
        if path == "/api/show":
            return answer(200, {"details": {"family": "fake"}, "model_info": dict(self.model_info), "capabilities": []})
        return self._chat(body) if path == "/api/chat" else self._embed(body)

    def _embed(self, body: Json) -> Fault:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        window = body.get("options", {}).get("num_ctx", 4096)
        if not body.get("truncate", True) and any(words(text) > window for text in texts):
            return refusal(400, "the input length exceeds the context length")
        if any(NAN_WORD in text for text in texts):
            return refusal(500, "failed to encode response: json: unsupported value: NaN")
        cut = [" ".join(text.split()[: window - 2]) if words(text) > window else text for text in texts]
        vectors = [[float(x) for x in self.embed(text)] for text in cut]
        counts = {"total_duration": 1, "load_duration": 1, "prompt_eval_count": sum(map(words, cut))}
        return answer(200, {"model": body["model"], "embeddings": vectors} | counts)

    def _chat(self, body: Json) -> Fault:
        if "answers" in (body.get("format") or {}).get("properties", {}):
            reply = Reply(self.verdict)
        else:
            reply = self.replies.popleft() if self.replies else Reply()
        kept = list(body["messages"])
        while sum(words(one["content"]) for one in kept) > body["options"]["num_ctx"] and len(kept) > 1:
            del kept[0]
        prompt_tokens = min(sum(words(one["content"]) for one in kept), body["options"]["num_ctx"])
        base = {"model": body["model"], "created_at": WHEN}
        half = len(reply.text) // 2
        events: list[Json] = [
            base | {"message": {"role": "assistant", "content": part}, "done": False}
            for part in (reply.text[:half], reply.text[half:])
        ]
        if reply.thinking:
            events[0]["message"]["thinking"] = reply.thinking
        if reply.error is not None:
            events.append({"error": reply.error})
        elif not reply.cut:
            counts = {"prompt_eval_count": prompt_tokens, "eval_count": words(reply.text), "total_duration": 1}
            last = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": reply.done_reason}
            events.append(base | last | counts)
        if not body.get("stream", True):
            whole = events[-1] | {"message": {"role": "assistant", "content": reply.text}}
            return answer(200, whole)
        return _streamed(events)


def _streamed(events: list[Json]) -> Fault:
    async def send_them(scope: Scope, receive: Receive, send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/x-ndjson")]}
        )
        for event in events:
            line = json.dumps(event).encode() + b"\n"
            await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return send_them
