"""Batches for a model server: bounded, halved when one is refused, so that a text that fails alone is found."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from service.domain import TextFailure
from service.errors import Rejected

T = TypeVar("T")
R = TypeVar("R")


class BatchRefused(Rejected):
    """The server refuses this batch: it is too large, or one of its texts can't be worked on."""


class TooLong(BatchRefused):
    """A text of the batch is longer than the model's window."""


async def in_batches(
    items: Sequence[T],
    call: Callable[[Sequence[T]], Awaitable[Sequence[R | TextFailure]]],
    *,
    limit: int,
    probe: Callable[[], Awaitable[None]],
) -> list[R | TextFailure]:
    """The call's results over all items, in order; an item that is refused even alone gets a TextFailure.

    A failure counts against the item only when the server works: an item refused alone is called again after `probe`,
    which raises when the server is at fault, so that one that fails for a while, or from now on, condemns nothing. A
    batch of n with one bad item costs at most 2 log2(n) + 4 calls, a broken server log2(n) + 2.
    """
    results: list[R | TextFailure] = []
    proved = False

    async def keep(made: Sequence[R | TextFailure]) -> None:
        nonlocal proved
        proved = proved or any(not isinstance(one, TextFailure) for one in made)
        if not proved:
            await probe()
            proved = True
        results.extend(made)

    async def run(batch: Sequence[T]) -> None:
        try:
            made = await call(batch)
        except BatchRefused:
            if len(batch) > 1:
                await run(batch[: len(batch) // 2])
                await run(batch[len(batch) // 2 :])
                return
            made = await again(batch)
        await keep(made)

    async def again(alone: Sequence[T]) -> Sequence[R | TextFailure]:
        nonlocal proved
        await probe()
        proved = True
        try:
            return await call(alone)
        except BatchRefused as exc:
            return [TextFailure(str(exc))]

    for start in range(0, len(items), limit):
        await run(items[start : start + limit])
    return results
