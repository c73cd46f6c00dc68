"""Embeds and reranks in this process with sentence-transformers (the extra `local-models`; torch comes with it)."""

import asyncio
import copy
import math
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol, cast

from service.domain import (
    Candidate,
    Embedded,
    EmbeddingProfile,
    RerankerProfile,
    TextFailure,
    TruncatedVector,
    Vector,
)
from service.errors import Misconfigured, Rejected
from service.inference.embedding import EmbedderOptions, Overflow, fitting, read_vector
from service.inference.model_thread import Lazy, ModelThread
from service.inference.pairs import UNSCORABLE, PairOptions, pairs

BATCH = 8
"""Texts of one turn of the model: a question that arrives meanwhile waits no longer than that."""
_MISSING = "install Ariane with the extra local-models to run models in its own process"


class EmbeddingModel(Protocol):
    """What we use of `sentence_transformers.SentenceTransformer`."""

    max_seq_length: int

    @property
    def tokenizer(self) -> Any: ...
    def encode(self, sentences: list[str], **options: Any) -> Any: ...


class PairModel(Protocol):
    """What we use of `sentence_transformers.CrossEncoder`."""

    num_labels: int
    max_length: int | None

    def predict(self, inputs: list[tuple[str, str]], **options: Any) -> Any: ...


def load_embedding_model(model: str) -> EmbeddingModel:
    """A model from this machine's disk or cache, never from the network; raises Misconfigured."""
    try:
        from sentence_transformers import SentenceTransformer

        return cast("EmbeddingModel", SentenceTransformer(model, device="cpu", local_files_only=True))
    except ImportError as exc:
        raise Misconfigured(f"{_MISSING}: {exc}") from exc
    except (OSError, ValueError) as exc:
        raise Misconfigured(f"the model {model} can't be loaded from this machine: {exc}") from exc


def load_pair_model(model: str) -> PairModel:
    """A cross-encoder with one logit a pair, from this machine's disk or cache; raises Misconfigured."""
    try:
        from sentence_transformers import CrossEncoder

        loaded = cast("PairModel", CrossEncoder(model, device="cpu", local_files_only=True))
    except ImportError as exc:
        raise Misconfigured(f"{_MISSING}: {exc}") from exc
    except (OSError, ValueError) as exc:
        raise Misconfigured(f"the model {model} can't be loaded from this machine: {exc}") from exc
    if loaded.num_labels != 1:
        raise Misconfigured(f"{model} gives {loaded.num_labels} scores a pair: a reranker gives one")
    return loaded


class LocalEmbedder:
    """PassageEmbedder and QueryEmbedder of a profile, cutting with the model's own tokenizer."""

    def __init__(self, load: Callable[[], EmbeddingModel], profile: EmbeddingProfile, options: EmbedderOptions) -> None:
        self.profile = profile
        self._options = options
        self._model = Lazy(load)
        self._thread = ModelThread(profile.model)
        self._counting = threading.Lock()
        self._tokenizer: Any = None
        self._counted = lru_cache(maxsize=32_768)(self._count)  # words repeat

    def truncate(self, text: str) -> str:
        return fitting(text, self.profile, self._options)

    def tokens(self, text: str) -> float:
        return self._counted(self._options.passage_prefix + text)

    async def embed_passages(self, texts: Sequence[str]) -> list[Embedded]:
        prefixed = [self._options.passage_prefix + self.truncate(text) for text in texts]
        batches = [prefixed[start : start + BATCH] for start in range(0, len(prefixed), BATCH)]
        made = await asyncio.gather(*(self._run(batch, urgent=False) for batch in batches))
        return [one for batch in made for one in batch]

    async def embed_query(self, text: str) -> Vector:
        """The vector of a question, of its beginning when it is too long; raises Rejected when there is none."""
        [made] = await self._run([self._options.query_prefix + self.truncate(text)], urgent=True)
        if isinstance(made, TextFailure):
            raise Rejected(f"{self.profile.model} can't embed this question: {made.error}")
        return made.vector if isinstance(made, TruncatedVector) else made

    def close(self) -> None:
        self._thread.close()

    async def _run(self, texts: list[str], *, urgent: bool) -> list[Embedded]:
        return await asyncio.wrap_future(self._thread.submit(lambda: self._embed(texts), urgent=urgent))

    def _count(self, text: str) -> int:
        with self._counting:
            if self._tokenizer is None:  # one that is in use in the model's thread bears no other user
                self._tokenizer = copy.deepcopy(self._model.get().tokenizer)
            return len(self._tokenizer([text], truncation=False)["input_ids"][0])

    def _embed(self, texts: list[str]) -> list[Embedded]:
        model = self._model.get()
        window = self.profile.window_tokens
        model.max_seq_length = window
        tokens = [len(ids) for ids in model.tokenizer(texts, truncation=False)["input_ids"]]
        vectors = model.encode(texts, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False)
        return [self._judged(vector, length > window) for vector, length in zip(vectors, tokens, strict=True)]

    def _judged(self, values: Vector, too_long: bool) -> Embedded:
        if too_long and self._options.overflow is Overflow.REFUSE:
            return TextFailure(f"longer than {self.profile.window_tokens} tokens")
        made = read_vector(values, self.profile)
        return made if isinstance(made, TextFailure) or not too_long else TruncatedVector(made)


class LocalReranker:
    """Reranker of a profile: the model's logits, no sigmoid."""

    def __init__(self, load: Callable[[], PairModel], profile: RerankerProfile, options: PairOptions) -> None:
        self.profile = profile
        self._options = options
        self._model = Lazy(load)
        self._thread = ModelThread(profile.name)

    async def rerank(self, question: str, candidates: Sequence[Candidate]) -> list[float]:
        if not candidates:
            return []
        query, texts = pairs(question, candidates, self._options)
        scored = [(query, text) for text in texts]
        logits = await asyncio.wrap_future(self._thread.submit(lambda: self._score(scored), urgent=True))
        if not any(math.isfinite(logit) for logit in logits):
            raise Rejected(f"{self.profile.name} fails on every pair of this question")
        return [logit if math.isfinite(logit) else UNSCORABLE for logit in logits]

    def close(self) -> None:
        self._thread.close()

    def _score(self, scored: list[tuple[str, str]]) -> list[float]:
        model = self._model.get()
        import torch

        model.max_length = self._options.window_tokens
        scores = model.predict(
            scored, activation_fn=torch.nn.Identity(), convert_to_numpy=True, show_progress_bar=False
        )
        return [float(score) for score in scores]
