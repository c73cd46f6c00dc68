"""The index as a question sees it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from service.domain import Candidate, EmbeddingProfile, TopicHit, TopicId, Vector

Excluded = tuple[TopicId, int] | None
"""The posts of this topic from this number on, the question and what came after, don't answer: they are left out."""


class Search(Protocol):
    """The index, seen as a question sees it: eligible posts only, best first."""

    async def nearest_posts(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, *, exclude_from: Excluded = None
    ) -> list[Candidate]:
        """The `limit` posts of highest cosine under this profile."""
        ...

    async def keyword_posts(
        self, lexemes: Sequence[str], limit: int, *, exclude_from: Excluded = None
    ) -> list[Candidate]:
        """The `limit` posts of highest BM25 over these lexemes (service.lexer), repeats counting."""
        ...

    async def asked_words(self, lexemes: Sequence[str], limit: int) -> list[str]:
        """The `limit` rarest of the lexemes, those that no post has replaced by ones that resemble them."""
        ...

    async def keyword_topics(
        self, lexemes: Sequence[str], limit: int, *, exclude_from: Excluded = None
    ) -> list[TopicHit]:
        """The `limit` topics of highest BM25 of their whole text; what is excluded is no part of its topic."""
        ...

    async def mean_topics(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, *, exclude_from: Excluded = None
    ) -> list[TopicHit]:
        """The `limit` topics whose posts' mean vector has the highest cosine; exclusion as above."""
        ...

    async def first_post_topics(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, *, exclude_from: Excluded = None
    ) -> list[TopicHit]:
        """The `limit` topics whose first post has the highest cosine."""
        ...

    async def best_posts(
        self,
        topics: Sequence[TopicId],
        profile: EmbeddingProfile,
        vector: Vector | None,
        lexemes: Sequence[str],
        *,
        exclude_from: Excluded = None,
    ) -> list[Candidate]:
        """Of each of these topics the post that is likeliest to answer, in no order.

        Each has its topic's scores, but for the BM25 of the whole text; without a vector there are no cosines.
        """
        ...


@dataclass(frozen=True, slots=True)
class TopicMatch:
    """A topic that holds words of a question, and the post likeliest to answer, whose `bm25` is the whole topic's.

    `weights` are the inverse document frequencies of the words it holds, `asked` the sum over all the words.
    """

    candidate: Candidate
    weights: Mapping[str, float]
    asked: float


class TopicSearch(Protocol):
    """The index by whole topics: what the legacy path searches."""

    async def keyword_topics(
        self,
        lexemes: Sequence[str],
        limit: int,
        *,
        words: int,
        exclude_from: Excluded = None,
    ) -> list[TopicMatch]:
        """The `limit` topics of highest BM25 of their whole text over the `words` rarest of these lexemes.

        `exclude_from` as for Search: a topic is then what stood in it before.
        """
        ...
