"""Runs a piece of work for many items, a few at a time, and gives each result as soon as it is there."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


async def abreast(
    items: Iterable[Item], work: Callable[[Item], Awaitable[Found]], *, at_once: int
) -> AsyncGenerator[Found, None]:
    """What `work` makes of each item, in the order of their ends, at most `at_once` under way.

    The first error ends it, and what is under way is cancelled; so it is when the caller stops listening.
    """
    waiting = iter(items)
    running: set[asyncio.Task[Found]] = set()

    async def worked(item: Item) -> Found:
        return await work(item)

    try:
        while True:
            while len(running) < at_once and (item := next(waiting, None)) is not None:
                running.add(asyncio.create_task(worked(item)))
            if not running:
                return
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
