"""The service's search, asked once for what several systems want of it."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from eval.systems.system import DEPTH
from eval.systems.tasks import shared
from service.answer.ports import Search
from service.domain import Candidate, EmbeddingProfile, IndexKind, TopicId, Vector

REMEMBERED = 64
"""Searches kept: a few times what the cases under way ask."""

Excluded = tuple[TopicId, int] | None


@dataclass(frozen=True, slots=True)
class Searched:
    """The posts found, and how long that took."""

    found: list[Candidate]
    ms: float


class SharedSearch:
    """Looks DEPTH posts deep once, and gives each system as many of the first as it wants.

    An approximate index finds others when it is asked for more: it is then asked anew for each depth.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self._known: OrderedDict[object, asyncio.Task[Searched]] = OrderedDict()

    async def nearest(self, profile: EmbeddingProfile, vector: Vector, limit: int, exclude_from: Excluded) -> Searched:
        exact = profile.index_kind is IndexKind.EXACT
        depth = max(limit, DEPTH + 1) if exact else limit
        key = (profile.name, vector.tobytes(), exclude_from, depth)
        return await self._once(
            key, lambda: self._search.nearest_posts(profile, vector, depth, exclude_from=exclude_from)
        )

    async def keyword(self, lexemes: Sequence[str], limit: int, exclude_from: Excluded) -> Searched:
        depth = max(limit, DEPTH + 1)
        key = (tuple(lexemes), exclude_from, depth)
        return await self._once(key, lambda: self._search.keyword_posts(lexemes, depth, exclude_from=exclude_from))

    async def _once(self, key: object, ask: Callable[[], Awaitable[list[Candidate]]]) -> Searched:
        if key not in self._known:
            self._known[key] = shared(_timed(ask))
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return await asyncio.shield(self._known[key])


async def _timed(ask: Callable[[], Awaitable[list[Candidate]]]) -> Searched:
    start = perf_counter()
    found = await ask()
    return Searched(found, (perf_counter() - start) * 1000)


@dataclass(slots=True)
class CaseSearch:
    """Matches `service.answer.ports.Search`, for one case: one post more is asked for where one is excluded."""

    shared: SharedSearch
    exclude_post: tuple[TopicId, int] | None
    timings_ms: dict[str, float] = field(default_factory=dict)

    async def nearest_posts(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, *, exclude_from: Excluded = None
    ) -> list[Candidate]:
        return self._kept("nearest", await self.shared.nearest(profile, vector, limit + 1, exclude_from), limit)

    async def keyword_posts(
        self, lexemes: Sequence[str], limit: int, *, exclude_from: Excluded = None
    ) -> list[Candidate]:
        return self._kept("keywords", await self.shared.keyword(lexemes, limit + 1, exclude_from), limit)

    def _kept(self, channel: str, searched: Searched, limit: int) -> list[Candidate]:
        self.timings_ms[channel] = searched.ms
        return [one for one in searched.found if (one.topic_id, one.post_number) != self.exclude_post][:limit]
