"""What answering needs of models: they embed, rank, chat, answer and tell a language."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from service.domain import (
    Candidate,
    ChatMessage,
    Completion,
    Draft,
    EmbeddingProfile,
    Lang,
    Question,
    RerankerProfile,
    Source,
    Vector,
    Zone,
)


class QueryEmbedder(Protocol):
    """Turns a question into a vector of its profile; raises Transient when the model can't be reached."""

    @property
    def profile(self) -> EmbeddingProfile: ...
    async def embed_query(self, text: str) -> Vector: ...


class SentenceEmbedder(Protocol):
    """Vectors of a few sentences, soon: for an answer in the making; raises Transient or Rejected."""

    async def embed_sentences(self, texts: Sequence[str]) -> list[Vector]: ...


class Reranker(Protocol):
    """Scores (question, candidate) pairs: one finite logit a candidate, in the order given; raises Transient."""

    @property
    def profile(self) -> RerankerProfile: ...
    async def rerank(self, question: str, candidates: Sequence[Candidate]) -> list[float]: ...


class ChatModel(Protocol):
    """A language model: the one that rewrites, drafts and checks."""

    @property
    def window_tokens(self) -> int:
        """What prompt and completion may have together."""
        ...

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int,
        temperature: float,
        timeout_seconds: float,
        schema: Mapping[str, object] | None = None,
        urgent: bool = True,
    ) -> Completion:
        """One completion, as JSON of `schema` when given; calls that aren't urgent let a member's question go first.

        The timeout counts the wait for a free turn. An empty text is returned as it is. Raises Transient (slow, busy,
        gone), Rejected with status 413 when the prompt doesn't fit or the server cut it, or Misconfigured.
        """
        ...


class Answerer(Protocol):
    """Writes a draft from numbered evidence, citing `[[n]]`; raises Transient when it can't be reached."""

    async def draft(self, question: Question, sources: Sequence[Source], zone: Zone) -> Draft: ...


class DetectLanguage(Protocol):
    def __call__(self, text: str, *, fallback: Lang) -> Lang: ...
