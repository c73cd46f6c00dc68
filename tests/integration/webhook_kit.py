"""What the tests of the webhook share: signed deliveries and a service on a real socket."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI

from service.app import create_app, listen, serve
from service.discourse.signature import sign
from service.settings import Settings, WebhookSettings, WebSettings
from service.store.pool import Pool

SECRET, SECOND_SECRET = "first-secret-of-two", "second-secret-of-two"
SETTINGS = Settings(
    web=WebSettings(port=0),
    webhook=WebhookSettings(secrets=(SECRET, SECOND_SECRET), max_body_bytes=20_000),
)
MENTION = '<p><a class="mention" href="/u/ariane">@ariane</a> how do I bleed a radiator?</p>'


def post_payload(post_id: int = 7, **changes: Any) -> dict[str, Any]:
    """A post as Discourse sends it, with these keys changed."""
    post = {
        "id": post_id,
        "topic_id": 3,
        "post_number": 2,
        "post_type": 1,
        "user_id": 5,
        "username": "lea",
        "name": "Léa",
        "raw": "@ariane how do I bleed a radiator?",
        "cooked": MENTION,
        "created_at": "2024-05-01T10:00:00.000Z",
        "updated_at": "2024-05-01T10:00:00.000Z",
        "reply_to_post_number": None,
        "deleted_at": None,
        "user_deleted": False,
        "hidden": False,
        "topic_archetype": "regular",
        "topic_title": "Radiators",
        "topic_slug": "radiators",
        "category_id": 1,
        "version": 1,
    }
    return {"post": {**post, **changes}}


def delivery(
    payload: object, event: str = "post_created", *, event_id: str = "101", secret: str = SECRET, **headers: str
) -> dict[str, Any]:
    """Keyword arguments of a signed POST; a payload that is bytes is sent as it is."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    signed = {
        "Content-Type": "application/json",
        "X-Discourse-Instance": "https://forum.example",
        "X-Discourse-Event-Id": event_id,
        "X-Discourse-Event-Type": event.partition("_")[0],
        "X-Discourse-Event": event,
        "X-Discourse-Event-Signature": sign(secret.encode(), body),
    }
    return {"url": "/webhooks/discourse", "content": body, "headers": {**signed, **headers}}


@asynccontextmanager
async def on_a_socket(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the app served on a real socket, stopped gracefully at the end of the block."""
    stop = asyncio.Event()
    socket = listen(SETTINGS.web)
    port = socket.getsockname()[1]
    serving = asyncio.create_task(serve(app, socket, stop=stop))
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10) as client:
            yield client
    finally:
        stop.set()
        await asyncio.wait_for(serving, 15)


@asynccontextmanager
async def service_on(pool: Pool, settings: Settings = SETTINGS) -> AsyncIterator[httpx.AsyncClient]:
    """The whole web process on a real socket."""
    async with on_a_socket(create_app(settings, pool)) as client:
        yield client


async def open_categories(pool: Pool) -> None:
    """Category 1 is public, category 2 is not."""
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO categories (category_id, name, slug, read_restricted)"
            " VALUES (1, 'Open', 'open', false), (2, 'Staff', 'staff', true)"
        )


async def rows(pool: Pool, query: str) -> list[tuple[Any, ...]]:
    async with pool.connection() as conn:
        return await (await conn.execute(query)).fetchall()


async def jobs(pool: Pool) -> list[str]:
    """The tasks in the queue, in the order they were added."""
    return [task for (task,) in await rows(pool, "SELECT task_name FROM procrastinate_jobs ORDER BY id")]
