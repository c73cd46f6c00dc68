"""The way to one model server: a turn, a breaker and a deadline around every call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from service.errors import Busy, Transient
from service.inference.breaker import Breaker
from service.inference.turns import Turns


@dataclass(frozen=True, slots=True)
class Access:
    """What the calls of one adapter share; adapters on one server have the same `turns` and a breaker each."""

    turns: Turns
    breaker: Breaker

    @asynccontextmanager
    async def call(self, *, urgent: bool, timeout_seconds: float) -> AsyncIterator[None]:
        """Around one call; the deadline counts the wait for a turn.

        Raises Transient at once while the breaker is open, Busy when no turn comes in time, and Transient when the
        call takes longer.
        """
        self.breaker.check()
        end = asyncio.get_running_loop().time() + timeout_seconds
        try:
            async with asyncio.timeout_at(end):
                await self.turns.acquire(urgent=urgent)
        except TimeoutError:
            waiting = f"{self.turns.waiting} more calls wait"
            raise Busy(f"{self.breaker.name}: no free turn in {timeout_seconds:g} s, {waiting}") from None
        try:
            with self.breaker.watch():
                try:
                    async with asyncio.timeout_at(end):
                        yield
                except TimeoutError as exc:
                    raise Transient(f"{self.breaker.name}: no answer in {timeout_seconds:g} s") from exc
        finally:
            self.turns.release()
