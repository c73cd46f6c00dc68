"""Embeds with Ollama's /api/embed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import ollama

from service.domain import Embedded, EmbeddingProfile, Vector
from service.inference.access import Access
from service.inference.batching import BatchRefused, TooLong
from service.inference.embedding import EmbedderOptions, counted, embed_passages, embed_query, fitting
from service.inference.ollama_errors import FOREIGN, KEEP_ALIVE, failure_of, ollama_errors

_MAY_BE_THE_TEXT = (400, 500)
_TOO_LONG = "context length"


@dataclass(frozen=True, slots=True)
class OllamaEmbedderOptions:
    """`model` is Ollama's name of the profile's model; `timeout_seconds` is the deadline of one request."""

    model: str
    batch: int = 16
    timeout_seconds: float = 30.0


class OllamaEmbedder:
    """PassageEmbedder and QueryEmbedder of a profile.

    The server counts the tokens. bge-m3 gives NaN for certain texts, which fails the whole call with a 500.
    """

    def __init__(
        self,
        client: ollama.AsyncClient,
        profile: EmbeddingProfile,
        access: Access,
        options: OllamaEmbedderOptions,
        texts: EmbedderOptions,
    ) -> None:
        self.profile = profile
        self._client = client
        self._access = access
        self._options = options
        self._texts = texts

    def truncate(self, text: str) -> str:
        return fitting(text, self.profile, self._texts)

    def tokens(self, text: str) -> float:
        return counted(text, self._texts)

    async def embed_passages(self, texts: Sequence[str]) -> list[Embedded]:
        return await embed_passages(texts, self._send, self.profile, self._texts, limit=self._options.batch)

    async def embed_query(self, text: str) -> Vector:
        until = self._now() + self._options.timeout_seconds
        return await embed_query(text, self._send, self.profile, self._texts, until=until)

    async def _send(
        self, texts: Sequence[str], *, truncate: bool, urgent: bool, suspect: bool, until: float | None = None
    ) -> Sequence[Sequence[float | None]]:
        server, model = self._access.breaker.name, self._options.model
        seconds = self._options.timeout_seconds if until is None else until - self._now()
        async with self._access.call(urgent=urgent, timeout_seconds=seconds):
            with ollama_errors(server, model):
                try:
                    answer = await self._client.embed(
                        model,
                        list(texts),
                        truncate=truncate,
                        keep_alive=KEEP_ALIVE,
                        # else the server's own default context cuts the text below the model's window
                        options={"num_ctx": self.profile.window_tokens},
                    )
                except FOREIGN as exc:
                    failed = failure_of(exc)
                    if failed.status in _MAY_BE_THE_TEXT and _TOO_LONG in failed.said:
                        raise TooLong(f"{server}: {failed.said}", status=failed.status) from exc
                    if failed.status == 413 or (suspect and failed.status in _MAY_BE_THE_TEXT):
                        raise BatchRefused(f"{server}: {failed.said}", status=failed.status) from exc
                    raise
        return answer.embeddings

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
