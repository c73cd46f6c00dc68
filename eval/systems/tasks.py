"""Work that is done side by side, and work that several wait for."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

REMEMBERED = 128
"""What is kept of each kind: a few times what the cases under way ask."""

T = TypeVar("T")


def shared(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """The work begun, for any number to wait for; a fault is theirs to hear, and nobody's when none waits any more."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: None if done.cancelled() else done.exception())
    return task


class Memory:
    """Does a thing once for all who ask for it at about the same time: the last REMEMBERED are kept."""

    def __init__(self) -> None:
        self._known: OrderedDict[object, asyncio.Task[Any]] = OrderedDict()

    async def once(self, key: object, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `ask` gives, or gave for this key before."""
        if key not in self._known:
            self._known[key] = shared(ask())
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return cast("T", await asyncio.shield(self._known[key]))


async def together(*work: Coroutine[object, object, None]) -> None:
    """Wait for all of it; the first fault ends the rest, and is raised."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
