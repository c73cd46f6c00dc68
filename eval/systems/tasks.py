"""Work that is done side by side, and work that several wait for."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def shared(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """The work begun, for any number to wait for; a fault is theirs to hear, and nobody's when none waits any more."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: None if done.cancelled() else done.exception())
    return task


async def together(*work: Coroutine[object, object, None]) -> None:
    """Wait for all of it; the first fault ends the rest, and is raised."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
