"""Who reads a forum alone: the lock ends with the block, however that ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from service.store import crawl
from service.store.crawl import CrawlStore
from service.store.pool import Connection, Pool, connection
from tests.integration.store_data import rows

HELD = """
SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = database
WHERE locktype = 'advisory' AND datname = current_database()
"""


class Interrupting:
    """A connection on which one statement is carried out and whoever waits for it is cancelled."""

    def __init__(self, true: Connection, statement: str) -> None:
        self._true = true
        self._statement = statement

    def __getattr__(self, name: str) -> Any:
        return getattr(self._true, name)

    async def execute(self, query: str, values: tuple[str, ...]) -> Any:
        done = await self._true.execute(query.encode(), values)
        if self._statement in query:
            raise asyncio.CancelledError
        return done


@pytest.mark.parametrize("statement", ["pg_try_advisory_lock", "pg_advisory_unlock"])
async def test_a_lock_that_was_taken_in_the_moment_of_a_cancellation_is_free(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    @asynccontextmanager
    async def interrupted(pool: Pool) -> AsyncIterator[Interrupting]:
        async with connection(pool) as conn:
            yield Interrupting(conn, statement)

    with monkeypatch.context() as patched:
        patched.setattr(crawl, "connection", interrupted)
        with pytest.raises(asyncio.CancelledError):
            async with CrawlStore(pool).alone("a forum"):
                pass
    async with asyncio.timeout(20):  # a closed connection lets go a moment later
        while await rows(pool, HELD):
            await asyncio.sleep(0.01)


async def test_only_one_is_alone_and_after_a_failure_another_may_be(pool: Pool) -> None:
    store = CrawlStore(pool)
    with pytest.raises(KeyError):
        async with store.alone("a forum") as ours, store.alone("a forum") as theirs:
            assert (ours, theirs) == (True, False)
            raise KeyError
    async with store.alone("a forum") as ours, store.alone("another") as other:
        assert ours and other


async def test_who_waits_for_a_lock_has_it_before_those_who_come_later(pool: Pool) -> None:
    store = CrawlStore(pool)

    async def second() -> bool:
        async with store.alone("a forum", wait_seconds=60) as ours:
            return ours

    async with store.alone("a forum") as first:
        waiting = asyncio.create_task(second())
        while not waiting.done() and not await rows(pool, HELD.strip() + " AND NOT granted"):
            await asyncio.sleep(0.01)
    assert first
    assert await waiting
    assert await rows(pool, HELD) == []


async def test_who_has_waited_long_enough_goes_without(pool: Pool) -> None:
    store = CrawlStore(pool)
    async with store.alone("a forum") as first, store.alone("a forum", wait_seconds=0.05) as second:
        assert (first, second) == (True, False)
    assert await rows(pool, HELD) == []
