"""Embeds with TEI's /embed."""

from collections.abc import Sequence
from typing import cast

from service.domain import Embedded, EmbeddingProfile, Vector
from service.errors import Transient
from service.inference.embedding import EmbedderOptions, counted, embed_passages, embed_query, fitting
from service.inference.tei import TeiServer


class TeiEmbedder:
    """PassageEmbedder and QueryEmbedder of a profile; the server counts the tokens."""

    def __init__(self, server: TeiServer, profile: EmbeddingProfile, options: EmbedderOptions) -> None:
        self.profile = profile
        self._server = server
        self._options = options

    def truncate(self, text: str) -> str:
        return fitting(text, self.profile, self._options)

    def tokens(self, text: str) -> float:
        return counted(text, self._options)

    async def embed_passages(self, texts: Sequence[str]) -> list[Embedded]:
        limit = (await self._server.info(urgent=False)).max_batch
        return await embed_passages(texts, self._send, self.profile, self._options, limit=limit)

    async def embed_query(self, text: str) -> Vector:
        return await embed_query(text, self._send, self.profile, self._options, until=self._server.deadline())

    async def _send(
        self, texts: Sequence[str], *, truncate: bool, urgent: bool, suspect: bool, until: float | None = None
    ) -> Sequence[Sequence[float | None]]:
        body = {"inputs": list(texts), "truncate": truncate, "normalize": True}
        rows = await self._server.post("/embed", body, urgent=urgent, suspect=suspect, until=until)
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise Transient(f"{self._server.name}: /embed gave no list of vectors")
        return cast("list[list[float | None]]", rows)
