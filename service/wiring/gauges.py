"""What the metrics page tells of the index and of the forum's deliveries, counted now and then."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from time import monotonic

from service.store.health import HealthStore
from service.telemetry import INDEX_POSTS, INDEX_TOPICS, NEWEST_DELIVERY
from service.wiring.services import Services

INDEX_SECONDS = 60.0
"""Counting reads every row of the index (0.07 s of 37,000 posts), and every worker counts."""


class IndexState(StrEnum):
    """What a post is to the index; the last is none of the embedder's business: `refusal` in the database says why."""

    EMBEDDED = "embedded"
    WAITING = "waiting"
    QUARANTINED = "quarantined"
    NOT_INDEXED = "not_indexed"


def index_gauges(services: Services, *, clock: Callable[[], float] = monotonic) -> Callable[[], Awaitable[None]]:
    """A chore that sets the gauges of the index, at most once in INDEX_SECONDS however often it is called."""
    health = HealthStore(services.pool)
    due = clock()

    async def measure() -> None:
        nonlocal due
        if clock() < due:
            return
        due = clock() + INDEX_SECONDS
        census = await services.corpus.census((await services.embedders.answering()).profile)
        INDEX_TOPICS.set(census.topics)
        counts = {
            IndexState.EMBEDDED: census.indexed - census.left_to_embed - census.unembeddable,
            IndexState.WAITING: census.left_to_embed,
            IndexState.QUARANTINED: census.unembeddable,
            IndexState.NOT_INDEXED: sum(census.refused.values()),
        }
        for state, count in counts.items():
            INDEX_POSTS.labels(state).set(count)
        if newest := await health.newest_delivery():
            NEWEST_DELIVERY.set(newest.timestamp())

    return measure
