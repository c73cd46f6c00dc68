"""Who may call a model server now: a bounded number of calls at a time, members' questions before everything else."""

import asyncio
from collections import deque


class Turns:
    """At most `capacity` calls at a time; a free turn goes to the urgent that wait, then to the others, by arrival."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._taken = 0
        self._urgent: deque[asyncio.Future[None]] = deque()
        self._patient: deque[asyncio.Future[None]] = deque()

    @property
    def capacity(self) -> int:
        return self._capacity

    @property
    def taken(self) -> int:
        return self._taken

    @property
    def waiting(self) -> int:
        return len(self._urgent) + len(self._patient)

    def resize(self, capacity: int) -> None:
        """Allow another number of calls (at least one); those that run go on."""
        self._capacity = max(1, capacity)
        self._hand_out()

    async def acquire(self, *, urgent: bool) -> None:
        """Wait for a turn; it must be given back with `release`."""
        if self._taken < self._capacity:  # then nobody waits: free turns are handed out at once
            self._taken += 1
            return
        turn = asyncio.get_running_loop().create_future()
        queue = self._urgent if urgent else self._patient
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                queue.remove(turn)
            else:  # the turn came together with the cancellation
                self.release()
            raise

    def release(self) -> None:
        self._taken -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        for queue in (self._urgent, self._patient):
            while self._taken < self._capacity and (turn := next((t for t in queue if not t.done()), None)):
                queue.remove(turn)
                turn.set_result(None)
                self._taken += 1
