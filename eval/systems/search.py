"""The service's search, asked once for what several systems want of it."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Generic, TypeVar

from eval.systems.system import DEPTH
from eval.systems.tasks import Memory
from service.domain import Candidate, EmbeddingProfile, IndexKind, TopicHit, TopicId, Vector
from service.store.search import SearchStore

Excluded = tuple[TopicId, int] | None
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Searched(Generic[T]):
    """What was found, and how long that took."""

    found: T
    ms: float


@dataclass(frozen=True, slots=True)
class SharedSearch:
    """The store, and what was asked of it last."""

    store: SearchStore
    memory: Memory = field(default_factory=Memory)


async def _timed(ask: Callable[[], Coroutine[Any, Any, T]]) -> Searched[T]:
    start = perf_counter()
    found = await ask()
    return Searched(found, (perf_counter() - start) * 1000)


@dataclass(slots=True)
class CaseSearch:
    """Matches `service.answer.ports.Search`, for one case and the post that it excludes; adds up each stage's times.

    A case that excludes a post is asked without `exclude_from`: the topic channels raise ValueError for both.
    Posts are looked for DEPTH deep at once, and one deeper for the one that is left out: each system gets as many of
    the first as it wants. An approximate index finds others when it is asked for more: it is asked for each depth.
    """

    shared: SharedSearch
    exclude_post: Excluded
    timings_ms: dict[str, float] = field(default_factory=dict)

    async def nearest_posts(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, *, exclude_from: Excluded = None
    ) -> list[Candidate]:
        depth = max(limit, DEPTH) + 1 if profile.index_kind is IndexKind.EXACT else limit + 1
        key = (profile.name, vector.tobytes(), exclude_from, depth)
        store = self.shared.store
        found = await self._asked(
            "nearest", key, lambda: store.nearest_posts(profile, vector, depth, exclude_from=exclude_from)
        )
        return self._kept(found, limit)

    async def keyword_posts(
        self, lexemes: Sequence[str], limit: int, *, exclude_from: Excluded = None
    ) -> list[Candidate]:
        depth = max(limit, DEPTH) + 1
        store = self.shared.store
        found = await self._asked(
            "keywords",
            (tuple(lexemes), exclude_from, depth),
            lambda: store.keyword_posts(lexemes, depth, exclude_from=exclude_from),
        )
        return self._kept(found, limit)

    async def asked_words(self, lexemes: Sequence[str], limit: int) -> list[str]:
        return await self._asked(
            "words", (tuple(lexemes), limit), lambda: self.shared.store.asked_words(lexemes, limit)
        )

    async def keyword_topics(
        self, lexemes: Sequence[str], limit: int, *, exclude_from: Excluded = None
    ) -> list[TopicHit]:
        return await self._asked(
            "topic-keywords",
            (tuple(lexemes), limit, exclude_from, self.exclude_post),
            lambda: self.shared.store.keyword_topics(
                lexemes, limit, exclude_from=exclude_from, exclude_post=self.exclude_post
            ),
        )

    async def mean_topics(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, *, exclude_from: Excluded = None
    ) -> list[TopicHit]:
        return await self._asked(
            "topic-means",
            (profile.name, vector.tobytes(), limit, exclude_from, self.exclude_post),
            lambda: self.shared.store.mean_topics(
                profile, vector, limit, exclude_from=exclude_from, exclude_post=self.exclude_post
            ),
        )

    async def first_post_topics(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, *, exclude_from: Excluded = None
    ) -> list[TopicHit]:
        return await self._asked(
            "first-posts",
            (profile.name, vector.tobytes(), limit, exclude_from, self.exclude_post),
            lambda: self.shared.store.first_post_topics(
                profile, vector, limit, exclude_from=exclude_from, exclude_post=self.exclude_post
            ),
        )

    async def best_posts(
        self,
        topics: Sequence[TopicId],
        profile: EmbeddingProfile,
        vector: Vector | None,
        lexemes: Sequence[str],
        *,
        exclude_from: Excluded = None,
    ) -> list[Candidate]:
        of_vector = None if vector is None else vector.tobytes()
        return await self._asked(
            "best posts",
            (tuple(topics), profile.name, of_vector, tuple(lexemes), exclude_from, self.exclude_post),
            lambda: self.shared.store.best_posts(
                topics,
                profile,
                vector,
                lexemes,
                exclude_from=exclude_from,
                exclude_post=self.exclude_post,
            ),
        )

    async def _asked(self, stage: str, key: object, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        searched = await self.shared.memory.once((stage, key), lambda: _timed(ask))
        self.timings_ms[stage] = self.timings_ms.get(stage, 0.0) + searched.ms
        return searched.found

    def _kept(self, found: Sequence[Candidate], limit: int) -> list[Candidate]:
        return [one for one in found if (one.topic_id, one.post_number) != self.exclude_post][:limit]
