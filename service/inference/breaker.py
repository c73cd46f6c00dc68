"""A circuit breaker: a server that failed several times in a row is left alone for a while, then asked once."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

from service.errors import ArianeError, Busy, Misconfigured, Transient
from service.inference.batching import BatchRefused


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class Breaker:
    """Opens after `failures` Transient errors in a row; after `open_seconds` one call may probe the server."""

    def __init__(
        self, name: str, *, failures: int = 5, open_seconds: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = name
        self._limit = failures
        self._open_seconds = open_seconds
        self._clock = clock
        self._failures = 0
        self._opened_at: float | None = None
        self._probing = False
        self._of_use = True

    @property
    def state(self) -> BreakerState:
        if self._opened_at is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self._left(self._opened_at) > 0 else BreakerState.HALF_OPEN

    @property
    def works(self) -> bool:
        """Whether the last call that proved anything got what it asked for, or was refused for what it asked."""
        return self._of_use and self._failures == 0

    def check(self) -> None:
        """Raise Transient, with the time left, when a call would be refused now."""
        if self._opened_at is not None and (self._probing or self._left(self._opened_at) > 0):
            raise Transient(
                f"{self.name} failed {self._failures} times in a row and is left alone for a while",
                retry_after_seconds=max(self._left(self._opened_at), 1.0),
            )

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Around one call: learns from how it ends, or raises Transient without making it.

        An answer proves that the server works, a refusal too; Busy, a refused batch and a cancelled call prove nothing.
        """
        self.check()
        probing = self._opened_at is not None
        self._probing = probing
        try:
            yield
        except (Busy, BatchRefused):
            raise
        except Transient:
            self._failures += 1
            if probing or (self._opened_at is None and self._failures >= self._limit):
                self._opened_at = self._clock()
            raise
        except ArianeError as exc:
            self._close()
            self._of_use = not isinstance(exc, Misconfigured)
            raise
        else:
            self._close()
        finally:
            if probing:
                self._probing = False

    def _close(self) -> None:
        self._failures = 0
        self._opened_at = None
        self._of_use = True

    def _left(self, opened_at: float) -> float:
        return opened_at + self._open_seconds - self._clock()
