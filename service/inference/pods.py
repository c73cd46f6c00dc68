"""The servers behind one service name: taken in turn, and a failed one rests."""

import asyncio
import itertools
import socket
import time
from collections.abc import Awaitable, Callable, Sequence

from service.errors import Transient

RESOLVE_SECONDS = 2.0
"""A name server that takes longer is left for the next look-up: the pods that are known go on being asked."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def resolve_host(host: str, port: int) -> list[str]:
    """The host's addresses, of IPv4 when it has any (a server listening on both would count twice); raises OSError."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as exc:  # a label that is empty or too long
        raise OSError(f"it is no host name: {exc}") from exc
    by_family = {family: [str(info[4][0]) for info in found if info[0] == family] for family in {i[0] for i in found}}
    chosen = by_family.get(socket.AF_INET) or by_family.get(socket.AF_INET6) or []
    return sorted(set(chosen))


class Pods:
    """The addresses of a service, looked up again every `refresh_seconds`; `resized` hears how many there are.

    A Kubernetes headless service has one address a pod, so requests spread evenly however long connections live; a
    service with a virtual address spreads by connection, as the cluster likes.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        resolve: Resolve = resolve_host,
        resized: Callable[[int], None] = lambda count: None,
        refresh_seconds: float = 15.0,
        rest_seconds: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host, self._port = host, port
        self._resolve, self._resized, self._clock = resolve, resized, clock
        self._refresh_seconds, self._rest_seconds = refresh_seconds, rest_seconds
        self._addresses: Sequence[str] = ()
        self._refresh_at = 0.0
        self._resting: dict[str, float] = {}
        self._next = itertools.count()

    @property
    def count(self) -> int:
        return len(self._addresses)

    async def pick(self) -> str:
        """The next address; one that failed lately only when all did. Raises Transient when the name is unknown."""
        if not self._addresses or self._clock() >= self._refresh_at:
            await self._refresh()
        now = self._clock()
        rested = [one for one in self._addresses if self._resting.get(one, now) <= now]
        choice = rested or self._addresses
        return choice[next(self._next) % len(choice)]

    def failed(self, address: str) -> None:
        """Let this address rest."""
        self._resting[address] = self._clock() + self._rest_seconds

    async def _refresh(self) -> None:
        self._refresh_at = self._clock() + self._refresh_seconds
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                addresses = await self._resolve(self._host, self._port)
        except OSError as exc:  # TimeoutError is one
            if not self._addresses:
                said = str(exc) or f"no answer in {RESOLVE_SECONDS:g} s"
                raise Transient(f"the name {self._host} can't be resolved: {said}") from exc
            return
        if addresses and list(addresses) != list(self._addresses):
            self._addresses = addresses
            self._resting = {one: until for one, until in self._resting.items() if one in addresses}
            self._resized(len(addresses))
        if not self._addresses:
            raise Transient(f"the name {self._host} has no address")
