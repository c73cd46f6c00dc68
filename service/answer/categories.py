"""The names of the forum's public categories, as prompts list them: in one order, and read anew after a while."""

import time
from collections.abc import Callable, Iterable

from service.answer.ports import Categories
from service.domain import Category
from service.errors import Transient
from service.telemetry import went_without

MOST = 60
"""More are not listed: a model reads them with every question."""
KEPT_SECONDS = 60.0
"""How long a new name waits to be listed, and one that turned private goes on being listed."""


class CategoryNames:
    """The names as they were at most KEPT_SECONDS ago."""

    def __init__(self, categories: Categories, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._categories = categories
        self._clock = clock
        self._kept: tuple[str, ...] = ()
        self._until = float("-inf")

    async def read(self) -> tuple[str, ...]:
        """The names, as `public_names` orders them; none, and never old ones, while they can't be read."""
        if self._clock() >= self._until:
            try:
                found = await self._categories.categories()
            except Transient as exc:
                went_without("categories", exc)
                return ()
            self._kept, self._until = public_names(found.values()), self._clock() + KEPT_SECONDS
        return self._kept


def public_names(categories: Iterable[Category]) -> tuple[str, ...]:
    """Each name once, MOST at most, of categories that everybody reads.

    Those at the top come first, and the older before the newer: a list that grows begins with the same bytes.
    """
    public = [one for one in categories if not one.read_restricted]
    public.sort(key=lambda one: (one.parent_id is not None, one.id))
    return tuple(dict.fromkeys(one.name for one in public))[:MOST]
