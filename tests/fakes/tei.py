"""text-embeddings-inference in the shapes of its published contract, as far as our client uses it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.fakes.forum import Fault, answer
from tests.fakes.model_server import NAN_WORD, Embed, FakeServer, Json, hashed_vector, shared_words, words

BODY_LIMIT = 2_000_000


def refusal(status: int, kind: str, text: str) -> Fault:
    return answer(status, {"error": text, "error_type": kind})


OVERLOADED = refusal(429, "Overloaded", "Model is overloaded")
UNHEALTHY = refusal(503, "Unhealthy", "Service unhealthy")
BACKEND = refusal(424, "Backend", "Backend error: inference failed")
TOO_LARGE = answer(413, "Failed to buffer the request body: length limit exceeded")


@dataclass
class FakeTei(FakeServer):
    """One pod. It counts a token a word; version 1.6 lacks fields in /info and gives null where 1.9 answers 424."""

    version: str = "1.9.3"
    max_batch: int = 32
    window: int = 512
    permits: int = 512
    embed: Embed = hashed_vector
    score: Callable[[str, str], float] = shared_words
    sigmoid_only: bool = False
    in_request_order: bool = False

    @property
    def old(self) -> bool:
        return self.version < "1.9"

    def respond(self, path: str, body: Json, size: int) -> Fault:
        if size > BODY_LIMIT:
            return TOO_LARGE
        match path:
            case "/info":
                return answer(200, self._info())
            case "/health":
                return answer(200, b"")
            case "/embed":
                return self._batch(body["inputs"], body["truncate"], partial(self._embedded, body))
            case "/rerank":
                return self._batch(body["texts"], body["truncate"], partial(self._ranked, body))
        return answer(404, b"")

    def _info(self) -> Json:
        info = {
            "model_id": "fake/model",
            "model_sha": None,
            "model_dtype": "float32",
            "model_type": {"reranker": {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}},
            "max_concurrent_requests": self.permits,
            "max_input_length": self.window,
            "max_batch_tokens": 16384,
            "max_batch_requests": None,
            "max_client_batch_size": self.max_batch,
            "auto_truncate": not self.old,
            "tokenization_workers": 2,
            "version": self.version,
            "sha": None,
            "docker_label": None,
        }
        return info if self.old else info | {"served_model_name": "fake/model"}

    def _batch(self, texts: list[str], truncate: bool, work: Callable[[], Fault]) -> Fault:
        if len(texts) > self.max_batch:
            limit = f"batch size {len(texts)} > maximum allowed batch size {self.max_batch}"
            return refusal(422, "Validation", limit)
        if "" in texts:
            return refusal(422 if self.old else 400, "Validation" if self.old else "Empty", "`inputs` cannot be empty")
        longest = max(map(words, texts))
        if longest > self.window and not truncate:
            text = f"`inputs` must have less than {self.window} tokens. Given: {longest}"
            return refusal(422, "Validation", text)
        if len(texts) > self.permits:
            return OVERLOADED
        if any(NAN_WORD in text for text in texts) and not self.old:
            return BACKEND
        return work()

    def _embedded(self, body: Json) -> Fault:
        rows: list[list[float | None]] = []
        for text in body["inputs"]:
            vector = self.embed(" ".join(text.split()[: self.window - 2]) if words(text) > self.window else text)
            rows.append([None] * len(vector) if NAN_WORD in text else [float(x) for x in vector])
        return answer(200, rows)

    def _ranked(self, body: Json) -> Fault:
        ranks = []
        for index, text in enumerate(body["texts"]):
            score: float | None = None if NAN_WORD in text else self.score(body["query"], text)
            if score is not None and (self.sigmoid_only or not body["raw_scores"]):
                score = 1 / (1 + math.exp(-score)) if score > -700 else 0.0
            ranks.append({"index": index, "score": score})
        if not self.in_request_order:
            ranks = sorted(ranks, key=lambda rank: rank["score"] or 0.0)[::-1]
        return answer(200, ranks)
