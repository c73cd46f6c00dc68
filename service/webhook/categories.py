"""The category list as receiving needs it: at hand, and fresh to a second."""

from collections.abc import Awaitable, Callable, Mapping
from time import monotonic

from service.domain import Category, CategoryId

FRESH_SECONDS = 1.0
"""A stale entry only makes a post be read again or removed once more: the inbox itself checks before it keeps text."""

ReadCategories = Callable[[], Awaitable[Mapping[CategoryId, Category]]]


def cached(
    read: ReadCategories, *, seconds: float = FRESH_SECONDS, clock: Callable[[], float] = monotonic
) -> ReadCategories:
    """The same reader, asking at most about once in `seconds`."""
    known: Mapping[CategoryId, Category] = {}
    until = -1.0

    async def categories() -> Mapping[CategoryId, Category]:
        nonlocal known, until
        if clock() >= until:
            known = await read()
            until = clock() + seconds
        return known

    return categories
