"""What models take and give: vectors and their profiles, scores' profiles, a chat and its completion."""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""One embedding: shape (dimensions,), unit length."""


PASSAGES = 101
"""The text strategy that splits a long post into several passages (service.ingest.text has them all)."""


class IndexKind(StrEnum):
    """How a profile's vectors are searched (docs/inference: the index kind belongs to the profile)."""

    EXACT = "exact"
    HNSW_HALFVEC = "hnsw_halfvec"
    HNSW_BINARY = "hnsw_binary"


@dataclass(frozen=True, slots=True)
class EmbeddingProfile:
    """What made a set of vectors: model, text strategy and version; `window_tokens` is the model's limit.

    `cosine_floor` is the best cosine under which nothing is answered when no reranker can judge: 1, so never, until it
    is measured for the model. `passage_tokens` and `overlap_tokens`, of its model, say how the strategy PASSAGES splits
    a post; 0 of every other, whose posts are one text each.
    """

    model: str
    strategy: int
    version: int
    dimensions: int
    window_tokens: int
    index_kind: IndexKind = IndexKind.EXACT
    cosine_floor: float = field(default=1.0, compare=False)
    passage_tokens: int = 0
    overlap_tokens: int = 0

    @property
    def name(self) -> str:
        return f"{self.model}/{self.strategy}.{self.version}"


class ScoreFeature(StrEnum):
    """What a zone model may read of a list's logits and cosines (service.answer.zones has their formulas)."""

    TOP = "top"
    GAP = "gap"
    MEAN_5 = "mean_5"
    SPREAD = "spread"
    LOG_SUM = "log_sum"
    TOP_COSINE = "top_cosine"


@dataclass(frozen=True, slots=True)
class Borders:
    """The scores that divide the zones: abstain < weak <= score < normal <= score."""

    weak: float
    normal: float


@dataclass(frozen=True, slots=True)
class ZoneModel:
    """Log-odds that a whole list answers: the bias, and the weighted sum of its features and of its logits by rank."""

    bias: float
    features: tuple[tuple[ScoreFeature, float], ...]
    ranks: tuple[float, ...]
    borders: Borders


@dataclass(frozen=True, slots=True)
class RerankerProfile:
    """A reranker's name and the top logits that divide the zones: abstain < weak <= logit < normal <= logit.

    `keyword` are the borders while the embedder is down, where they were measured. A `zone_model` judges by the whole
    list instead, while all parts work.
    """

    name: str
    weak: float
    normal: float
    provisional: bool
    keyword: Borders | None = None
    zone_model: ZoneModel | None = None


@dataclass(frozen=True, slots=True)
class TruncatedVector:
    """The vector of a text longer than the model's window: it stands for the beginning of the text only."""

    vector: Vector


@dataclass(frozen=True, slots=True)
class TextFailure:
    """A text that a model can't work on while it works on others, and what the model's server said."""

    error: str


Embedded = Vector | TruncatedVector | TextFailure
"""What became of one text sent to an embedder."""


@dataclass(frozen=True, slots=True)
class ReferenceVector:
    """A text and its vector; `query` tells which of the model's prefixes it was embedded with."""

    text: str
    vector: tuple[float, ...]
    query: bool = False


class Role(StrEnum):
    """Who speaks in a chat prompt."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


MESSAGE_TOKENS = 8
"""What a chat template adds around a message, about: prompts are made, and refused, by the same count."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's text, without its reasoning, and the tokens of its prompt, if told; `truncated` at the token limit."""

    text: str
    prompt_tokens: int | None
    truncated: bool
