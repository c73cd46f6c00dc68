"""A worker's chore that stores whether its parts work, for the moderators' pages."""

from collections.abc import Awaitable, Callable, Mapping

from service.store.parts import PartStore
from service.store.pool import Pool
from service.wiring.models import IsUp


def stored_parts(pool: Pool, worker: str, up: Mapping[str, IsUp]) -> Callable[[], Awaitable[None]]:
    """A chore that stores, under the name of this worker, what is known of the parts `up`."""
    store = PartStore(pool)

    async def store_parts() -> None:
        await store.put(worker, {part: is_up() for part, is_up in up.items()})

    return store_parts
