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
    """What the calls of one adapter share: its turns at the server, and its breaker."""

    turns: Turns
    breaker: Breaker

    @asynccontextmanager
    async def call(self, *, urgent: bool, timeout_seconds: float) -> AsyncIterator[None]:
        """Around one call; the deadline counts the wait for a turn.

        Raises Transient at once while the breaker is open, Busy when no turn comes in time, and Transient when the
        call takes longer; Busy again when the wait had taken more than half of its time: a server that works is not to
        be left alone because our own queue is long.
        """
        self.breaker.check()
        clock = asyncio.get_running_loop().time
        end = clock() + timeout_seconds
        try:
            async with asyncio.timeout_at(end):
                await self.turns.acquire(urgent=urgent)
        except TimeoutError:
            waiting = f"{self.turns.waiting} more calls wait"
            raise Busy(f"{self.breaker.name}: no free turn in {timeout_seconds:.3g} s, {waiting}") from None
        left = end - clock()
        try:
            with self.breaker.watch():
                try:
                    async with asyncio.timeout_at(end):
                        yield
                except TimeoutError as exc:
                    if left < timeout_seconds / 2:
                        waited = f"the {left:.1f} s that the wait for a turn left of {timeout_seconds:.3g} s"
                        raise Busy(f"{self.breaker.name}: no answer in {waited}") from exc
                    raise Transient(f"{self.breaker.name}: no answer in {timeout_seconds:.3g} s") from exc
        finally:
            self.turns.release()
