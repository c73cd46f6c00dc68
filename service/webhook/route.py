"""POST /webhooks/discourse: read, verify, parse, store, acknowledge; the work itself happens elsewhere and later."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from enum import StrEnum
from time import perf_counter
from typing import Any, Protocol, TypeVar

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from service.discourse.events import Ignored, MemberGone, Ping, PostEvent, Stored, TopicEvent, content_key, parse_event
from service.discourse.feedback import FeedbackEvent
from service.discourse.signature import is_signed
from service.domain import Category, CategoryId, InboxId
from service.errors import Rejected, Transient
from service.jobs import defer_jobs, waiting
from service.store.inbox import NewDelivery
from service.store.members import note_departure
from service.store.pool import Connection
from service.telemetry import DELIVERIES, WEBHOOK_SECONDS, fault, log
from service.webhook.feedback import keep_feedback
from service.webhook.receive import Place, addresses_bot, jobs_for, place_of, place_of_topic

PATHS = ("/webhooks/discourse", "/webhooks/discourse/")

READ_SECONDS = 10.0
"""Longest wait for a body; Discourse itself gives up after 20 s."""

DISCARDED_BYTES = 4_194_304
"""What is read past the limit and thrown away: a sender who is cut off while he writes never sees the 413."""

STORE_SECONDS = 5.0
"""Longest wait for the database."""

RETRY_AFTER_SECONDS = 60
"""Discourse's first retry comes a minute later, where retries are on (docs/discourse, section 2)."""

_MAX_HEADER_CHARS = 200

T = TypeVar("T")


class Result(StrEnum):
    """What became of a delivery; never 404 or 410, which would turn the hook off."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    IGNORED = "ignored"
    PING = "ping"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    BAD_SIGNATURE = "bad_signature"
    MALFORMED = "malformed"
    UNAVAILABLE = "unavailable"


STATUS = {
    Result.STORED: 200,
    Result.DUPLICATE: 200,
    Result.IGNORED: 200,
    Result.PING: 200,
    Result.TOO_LARGE: 413,
    Result.TOO_SLOW: 408,
    Result.BAD_SIGNATURE: 403,
    Result.MALFORMED: 400,
    Result.UNAVAILABLE: 503,
}


class Inbox(Protocol):
    async def receive(
        self, delivery: NewDelivery, defer: Callable[[Connection, InboxId], Awaitable[None]]
    ) -> InboxId | None:
        """Store a delivery and its jobs in one transaction; None when the same one is there already."""
        ...


@dataclass(frozen=True, slots=True)
class Hook:
    """What receiving needs: `secrets` sign the bodies (two in a rotation), `categories` gives the stored ones."""

    secrets: tuple[bytes, ...]
    max_body_bytes: int
    bot_username: str
    inbox: Inbox
    categories: Callable[[], Awaitable[Mapping[CategoryId, Category]]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result, the event's name (of a fixed list) and, for the sender, why it was refused."""

    result: Result
    event: str = "unknown"
    reason: str | None = None


def webhook_router(hook: Hook) -> APIRouter:
    """The route that the forum's webhook posts to."""
    router = APIRouter()

    async def receive(request: Request) -> Response:
        start = perf_counter()
        verdict = await _receive(request, hook)
        DELIVERIES.labels(verdict.event, verdict.result).inc()
        WEBHOOK_SECONDS.observe(perf_counter() - start)
        return _response(verdict)

    for path in PATHS:
        router.add_api_route(path, receive, methods=["POST"])
    return router


async def _receive(request: Request, hook: Hook) -> Verdict:
    try:
        async with asyncio.timeout(READ_SECONDS):
            body = await _bounded_body(request, hook.max_body_bytes)
    except (TimeoutError, ClientDisconnect):
        return Verdict(Result.TOO_SLOW)
    if body is None:
        return Verdict(Result.TOO_LARGE)
    headers = request.headers
    if not is_signed(hook.secrets, body, headers.get("x-discourse-event-signature")):
        return Verdict(Result.BAD_SIGNATURE)
    try:
        event = parse_event(headers.get("x-discourse-event-type"), headers.get("x-discourse-event"), body)
    except Rejected as exc:
        return Verdict(Result.MALFORMED, reason=str(exc))
    match event:
        case Ping():
            return Verdict(Result.PING, "ping")
        case Ignored(kind=kind):
            return Verdict(Result.IGNORED, kind)
    try:
        stored = await _within(STORE_SECONDS, _store(headers, event, body, hook))
    except Exception as exc:  # noqa: BLE001 - a bug of ours too: the forum may send it again, and we can mend it
        log.error("delivery_not_stored", delivered=event.name, **fault(exc))
        return Verdict(Result.UNAVAILABLE, event.name)
    return Verdict(Result.STORED if stored is not None else Result.DUPLICATE, event.name)


async def _bounded_body(request: Request, limit: int) -> bytes | None:
    """The raw body, or None when it is larger, whatever its Content-Length says."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit + DISCARDED_BYTES:
        return None
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
        elif size > limit + DISCARDED_BYTES:
            return None
    return b"".join(chunks) if size <= limit else None


async def _store(headers: Mapping[str, str], event: Stored | FeedbackEvent, body: bytes, hook: Hook) -> InboxId | None:
    post, place, addressed = None, Place.PUBLIC, False
    if isinstance(event, PostEvent):
        post = event.post
        place = place_of(post, await hook.categories())
        addressed = (place is not Place.PUBLIC or post.hidden) and addresses_bot(post, hook.bot_username)
    elif isinstance(event, TopicEvent):
        place = place_of_topic(event.category_id, await hook.categories())
    instance, event_id = _header(headers, "x-discourse-instance"), _header(headers, "x-discourse-event-id")
    jobs = () if isinstance(event, FeedbackEvent) else jobs_for(event, place=place, addressed=addressed)
    delivery = NewDelivery(
        content_key=content_key(instance=instance, event=event, event_id=event_id, body=body),
        instance=instance,
        event=event.name,
        event_id=event_id,
        waiting=waiting(jobs),
        post=post,
    )

    async def follow(conn: Connection, inbox_id: InboxId) -> None:
        await keep_feedback(conn, event)
        if isinstance(event, MemberGone):
            await note_departure(conn, event.user_id, event.username)
        if jobs:
            await defer_jobs(conn, jobs, inbox_id)

    return await hook.inbox.receive(delivery, follow)


def _header(headers: Mapping[str, str], name: str) -> str:
    return headers.get(name, "")[:_MAX_HEADER_CHARS].replace("\0", "")


async def _within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, or Transient once the time is over, even if `work` is slow to stop.

    A transaction that still commits afterwards does no harm: the forum's next try finds it and is a duplicate.
    """
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if done:
        return task.result()
    task.add_done_callback(lambda late: late.cancelled() or late.exception())
    task.cancel()
    raise Transient(f"the database took more than {seconds:g} s")


def _response(verdict: Verdict) -> Response:
    content = {"status": verdict.result.value} | ({"reason": verdict.reason} if verdict.reason else {})
    headers = {}
    if verdict.result is Result.UNAVAILABLE:
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    if verdict.result in (Result.TOO_LARGE, Result.TOO_SLOW):
        headers["Connection"] = "close"  # what is left of the body is not waited for
    return JSONResponse(content, STATUS[verdict.result], headers)
