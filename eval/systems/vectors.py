"""Vectors of questions: each distinct text is embedded once, kept on disk by profile, and shared by all systems."""

import asyncio
import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from uuid import uuid4

import numpy as np

from eval.systems.tasks import shared
from service.answer.ports import QueryEmbedder
from service.domain import EmbeddingProfile, Vector

AHEAD = 2
"""Questions given to the embedder at a time: it always has the next one, and one that is needed now waits for few."""

UNIT_TOLERANCE = 2e-3


class QueryVectors:
    """Matches `service.answer.ports.QueryEmbedder`."""

    def __init__(self, embedder: QueryEmbedder, folder: Path) -> None:
        """Vectors go to a folder of the embedder's profile in `folder`."""
        self._embedder = embedder
        self._folder = folder / re.sub(r"[^\w.-]+", "_", embedder.profile.name)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._coming: dict[str, asyncio.Task[Vector]] = {}

    @property
    def profile(self) -> EmbeddingProfile:
        return self._embedder.profile

    async def embed_query(self, text: str) -> Vector:
        """The question's vector: in memory, on disk, or embedded now; raises what the embedder raises."""
        if text not in self._coming:
            self._coming[text] = shared(self._vector(text))
        return await asyncio.shield(self._coming[text])

    async def embed_all(self, texts: Iterable[str], progress: Callable[[int, int], None]) -> None:
        """Embed what isn't known yet, in this order; `progress` hears (done, total)."""
        distinct = list(dict.fromkeys(texts))
        waiting = iter(distinct)
        done = 0

        async def embed_in_turn() -> None:
            nonlocal done
            for text in waiting:
                await self.embed_query(text)
                done += 1
                progress(done, len(distinct))

        await asyncio.gather(*(embed_in_turn() for _ in range(AHEAD)))

    async def _vector(self, text: str) -> Vector:
        path = self._folder / f"{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}.npy"
        known = read_vector(path, self.profile.dimensions)
        if known is None:
            known = await self._embedder.embed_query(text)
            write_vector(path, known)
        return known


def read_vector(path: Path, dimensions: int) -> Vector | None:
    """The unit vector in this file; None when there is none, or the file is damaged: it is then made anew."""
    try:
        with path.open("rb") as file:
            vector = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError):
        return None
    if vector.dtype != np.float32 or vector.shape != (dimensions,):
        return None
    unit = abs(float(np.linalg.norm(vector)) - 1) <= UNIT_TOLERANCE  # False for NaN
    return vector if unit else None


def write_vector(path: Path, vector: Vector) -> None:
    """Write the file whole or not at all; runs side by side may write the same one."""
    beside = path.with_suffix(f".{uuid4().hex}.part")
    with beside.open("wb") as file:
        np.lib.format.write_array(file, np.asarray(vector, dtype=np.float32), allow_pickle=False)
    beside.replace(path)
