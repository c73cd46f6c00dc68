"""A server that speaks OpenAI's chat API, as llama.cpp and vLLM do."""

from collections import deque
from dataclasses import dataclass, field

from tests.fakes.forum import Fault, answer
from tests.fakes.model_server import FakeServer, Json, words
from tests.fakes.ollama import Reply


def refusal(status: int, kind: str, text: str) -> Fault:
    return answer(status, {"error": {"code": status, "message": text, "type": kind}})


LOADING = refusal(503, "unavailable_error", "Loading model")


@dataclass
class FakeOpenAi(FakeServer):
    models: tuple[str, ...] = ("qwen3",)
    window: int = 8192
    replies: deque[Reply] = field(default_factory=deque)

    def respond(self, path: str, body: Json, size: int) -> Fault:
        if path == "/v1/models":
            return answer(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]})
        if path != "/v1/chat/completions":
            return refusal(404, "not_found_error", "File Not Found")
        if body["model"] not in self.models:
            return refusal(404, "not_found_error", f"The model `{body['model']}` does not exist.")
        prompt = sum(words(one["content"]) for one in body["messages"])
        if prompt > self.window:
            text = "the request exceeds the available context size, try increasing it"
            return refusal(400, "exceed_context_size_error", text)
        reply = self.replies.popleft() if self.replies else Reply()
        message = {"role": "assistant", "content": reply.text}
        if reply.thinking:
            message["reasoning_content"] = reply.thinking
        return answer(
            200,
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1_796_000_000,
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": reply.done_reason}],
                "usage": {
                    "prompt_tokens": prompt,
                    "completion_tokens": words(reply.text),
                    "total_tokens": prompt + words(reply.text),
                },
            },
        )
