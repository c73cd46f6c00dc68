"""A share of the requests that a forum allows: evenly spread, and none before a time that the forum asked for."""

from collections.abc import Awaitable, Callable

Clock = Callable[[], float]
"""Seconds from any fixed moment; never goes back."""
Sleep = Callable[[float], Awaitable[None]]


class Budget:
    """So many requests a minute. Evenly spaced, they also keep within any shorter window of the forum's.

    Discourse allows 60 a minute to all API keys of a site together, 200 a minute and 50 in 10 s to an anonymous
    address (docs/discourse, sections 5 and 8).
    """

    def __init__(self, requests_per_minute: float, *, clock: Clock, sleep: Sleep) -> None:
        self._interval = 60 / requests_per_minute
        self._clock = clock
        self._sleep = sleep
        self._next = clock()

    async def turn(self) -> None:
        """Wait until the next request may be sent, and count it."""
        while (wait := self._next - self._clock()) > 0:
            await self._sleep(wait)
        self._next = self._clock() + self._interval

    def postpone(self, seconds: float) -> None:
        """Send no request for so long from now."""
        self._next = max(self._next, self._clock() + seconds)
