"""Signed deliveries of what changed, sent as Discourse sends them (docs/discourse, sections 1 and 2)."""

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from time import perf_counter

import httpx

from service.discourse.signature import sign
from service.simulator.forum import Forum
from service.simulator.model import Change, Event
from service.simulator.payloads import payload
from service.simulator.switches import Fault, Switches

TIMEOUT_SECONDS = 20.0
"""Discourse's own; after a time-out or a connection error nothing is sent again."""
WORKERS = 4
KEPT = 200
"""Deliveries that are remembered, for the page and for sending one again."""


class ContentType(StrEnum):
    """What the hook declares; the body is the same JSON text either way."""

    JSON = "application/json"
    FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Hook:
    """The one webhook of this forum, as its admin page would set it."""

    url: str
    secret: str
    content_type: ContentType = ContentType.JSON
    events: frozenset[Event] = frozenset(Event)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request to the hook; `status` is None until an answer came, `note` says why none came."""

    id: int
    event: Event
    object_id: int
    body: bytes
    signature: str
    at: datetime
    status: int | None = None
    took_ms: float | None = None
    note: str = ""


class Webhooks:
    """Sends every change in the background, several at a time, so that order is not guaranteed.

    Changes must happen inside a running event loop.
    """

    def __init__(
        self,
        forum: Forum,
        hook: Hook,
        switches: Switches,
        *,
        clock: Callable[[], datetime],
        rng: random.Random,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self.hook = hook
        self.kept: dict[int, Delivery] = {}
        self._forum = forum
        self._switches = switches
        self._clock = clock
        self._rng = rng
        self._client = client or httpx.AsyncClient(trust_env=False)
        self._slots = asyncio.Semaphore(WORKERS)
        self._tasks: set[asyncio.Task[None]] = set()

    def on_changes(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.event in self.hook.events:
                self.send(change)

    def send(self, change: Change) -> Delivery:
        """Take the snapshot now and deliver it soon."""
        body = json.dumps(payload(self._forum, change), ensure_ascii=False, separators=(",", ":")).encode()
        signature = sign(self.hook.secret.encode(), body)
        if self._switches.take(Fault.HOOK_FORGE):
            signature = sign(b"not the secret", body)
        number = self._forum.new_id("delivery")
        delivery = Delivery(number, change.event, change.id, body, signature, self._clock())
        self._keep(delivery)
        if self._switches.take(Fault.HOOK_DROP):
            self._keep(replace(delivery, note="dropped"))
            return delivery
        delay = 0.0
        if late := self._switches.take(Fault.HOOK_DELAY):
            delay += late.seconds
        if shuffled := self._switches.take(Fault.HOOK_SHUFFLE):
            delay += self._rng.uniform(0, shuffled.seconds)
        for _ in range(2 if self._switches.take(Fault.HOOK_DOUBLE) else 1):
            self._start(delivery, delay)
        return delivery

    def redeliver(self, delivery_id: int) -> Delivery:
        """What an admin's "redeliver" does: the same bytes, id and signature again. Raises KeyError."""
        delivery = self.kept[delivery_id]
        self._start(delivery, 0.0)
        return delivery

    async def drain(self) -> None:
        """Wait until everything under way has arrived or failed."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        """Drop what is still under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    def _keep(self, delivery: Delivery) -> None:
        self.kept[delivery.id] = delivery
        while len(self.kept) > KEPT:
            del self.kept[next(iter(self.kept))]

    def _start(self, delivery: Delivery, delay_seconds: float) -> None:
        task = asyncio.get_running_loop().create_task(self._deliver(delivery, delay_seconds))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, delivery: Delivery, delay_seconds: float) -> None:
        if delay_seconds:
            await asyncio.sleep(delay_seconds)
        async with self._slots:
            started = perf_counter()
            headers = {
                "User-Agent": "Discourse/simulator",
                "Content-Type": self.hook.content_type.value,
                "X-Discourse-Instance": self._forum.base_url,
                "X-Discourse-Event-Id": str(delivery.id),
                "X-Discourse-Event-Type": delivery.event.kind,
                "X-Discourse-Event": delivery.event.value,
                "X-Discourse-Event-Signature": delivery.signature,
            }
            try:
                answer = await self._client.post(
                    self.hook.url, content=delivery.body, headers=headers, timeout=TIMEOUT_SECONDS
                )
            except httpx.HTTPError as exc:
                done = replace(delivery, note=type(exc).__name__)
            else:
                done = replace(delivery, status=answer.status_code)
        if delivery.id in self.kept:
            self.kept[delivery.id] = replace(done, took_ms=(perf_counter() - started) * 1000)
