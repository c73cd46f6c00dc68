"""The whole loop for a test: a simulated forum, the service and a worker, over real sockets and a real database."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
from fastapi import FastAPI

from service.app import create_app, listen, serve
from service.domain import PostId
from service.ingest.archive import read_categories
from service.ingest.backfill import Backfill, backfill_archive
from service.settings import Settings, WebSettings
from service.simulator.app import create_simulator
from service.simulator.archive import archive_lines, site_json
from service.simulator.forum import Forum
from service.simulator.limits import NO_RATES
from service.simulator.room import Room
from service.simulator.webhooks import Hook
from service.store.profiles import ProfileStore
from service.store.traces import StoredTrace, TraceStore
from service.wiring.services import Services, open_services
from service.wiring.work import work_of
from service.worker import run_worker
from tests.simulated import ADMIN_KEY, KEY, room_of, tiny_forum
from tests.switching import switch_on

ANY_PORT = WebSettings(port=0)
SECRET = "a-secret-of-enough-characters"
QUESTION = "@ariane how do I bleed a radiator that gurgles?"
POLL_SECONDS = 0.2
"""How soon our worker finds a job whose retry is due; in service it takes up to a second, since nobody announces it."""
FAST = {
    "metrics_port": 0,
    "heartbeat_seconds": 0.3,
    "stalled_after_seconds": 1.5,
    "sweep_seconds": 0.3,
    "shutdown_grace_seconds": 5.0,
    "retry_base_seconds": 0.1,
    "retry_max_seconds": 0.5,
}


@dataclass(frozen=True, slots=True)
class Loop:
    """The running parts, and what a test does with them."""

    settings: Settings
    services: Services
    room: Room
    webhook_url: str
    client: httpx.AsyncClient

    async def say(self, raw: str, *, by: str = "alice", topic: int = 10, reply_to: int | None = None) -> dict[str, Any]:
        """Post as a member; the created post."""
        body: dict[str, Any] = {"raw": raw, "topic_id": topic}
        if reply_to is not None:
            body["reply_to_post_number"] = reply_to
        answer = await self.client.post("/posts.json", json=body, headers=acting_as(by))
        assert answer.status_code == 200, answer.text
        created: dict[str, Any] = answer.json()
        return created

    async def delivered(self) -> None:
        """Wait until the forum has sent every webhook it has to send."""
        assert self.room.webhooks is not None
        await self.room.webhooks.drain()

    async def drain(self, *, seconds: float = 30.0) -> None:
        """Let a worker run until no job is left to do."""
        await self.delivered()
        stop = asyncio.Event()
        with patch("service.worker.loop.POLL_SECONDS", POLL_SECONDS):
            working = run_worker(self.settings, self.services.pool, work_of(self.services, stop), stop=stop)
            worker = asyncio.create_task(working)
            try:
                async with asyncio.timeout(seconds):
                    while await self.jobs_left():
                        await asyncio.sleep(0.05)
            finally:
                stop.set()
                await worker

    async def jobs_left(self) -> int:
        async with self.services.pool.connection() as conn:
            row = await (
                await conn.execute(
                    "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
                    " AND task_name IN ('index_post', 'answer_post', 'remove_post', 'refresh_topic', 'refresh_post',"
                    " 'refresh_categories', 'carry_out')"
                )
            ).fetchone()
        return int(row[0]) if row else 0

    def replies(self, post_number: int | None = None, *, topic: int = 10) -> list[str]:
        """The raw text of the bot's posts in a topic (to one post)."""
        return [
            post.raw
            for post in self.room.forum.posts.values()
            if post.topic_id == topic and post.user_id == 1000 and post_number in (None, post.reply_to)
        ]

    async def trace(self, post_id: int) -> StoredTrace | None:
        return await TraceStore(self.services.pool).latest(PostId(post_id))


def acting_as(username: str) -> list[tuple[bytes, bytes]]:
    return [(b"Api-Key", ADMIN_KEY.encode()), (b"Api-Username", username.encode())]


@asynccontextmanager
async def whole_loop(
    database_url: str,
    folder: Path,
    *,
    answering: str = "on",
    limits: Mapping[str, int] | None = None,
    **forum: Any,
) -> AsyncIterator[Loop]:
    """A forum with the tiny content, indexed and switched on; everything stops with the block."""
    async with AsyncExitStack() as stack:
        forum_socket = stack.enter_context(listen(ANY_PORT))
        web_socket = stack.enter_context(listen(ANY_PORT))
        base_url, webhook_url = address(forum_socket), f"{address(web_socket)}/webhooks/discourse"
        settings = loop_settings(database_url, base_url, folder, limits=limits or {}, **forum)
        simulated = tiny_forum(folder, base_url=base_url)
        simulator = create_simulator(
            simulated, hook=Hook(webhook_url, SECRET), api_keys={KEY: "ariane", ADMIN_KEY: None}, limits=NO_RATES
        )
        services = await stack.enter_async_context(open_services(settings, "test"))
        await fill_index(services, simulated, folder)
        await switch_on(services.pool, settings, answering=answering)
        await stack.enter_async_context(serving(simulator, forum_socket))
        webhooks = room_of(simulator).webhooks
        assert webhooks is not None
        stack.push_async_callback(webhooks.close)
        await stack.enter_async_context(serving(create_app(settings, services.pool), web_socket))
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=base_url, timeout=10))
        yield Loop(settings, services, room_of(simulator), webhook_url, client)


@asynccontextmanager
async def serving(app: FastAPI, sock: socket.socket) -> AsyncIterator[None]:
    """The app on that socket, in this event loop, until the block ends."""
    stop = asyncio.Event()
    server = asyncio.create_task(serve(app, sock, stop=stop))
    try:
        yield
    finally:
        stop.set()
        await server


def address(sock: socket.socket) -> str:
    return f"http://127.0.0.1:{sock.getsockname()[1]}"


def loop_settings(
    database_url: str, base_url: str, folder: Path, *, limits: Mapping[str, int], **forum: Any
) -> Settings:
    return Settings.model_validate(
        {
            "home": folder,
            "database": {"url": database_url},
            "forum": {"base_url": base_url, "api_key": KEY, "known_bots": ["system", "OtherBot"], **forum},
            "webhook": {"secrets": [SECRET]},
            "worker": FAST,
            "limits": limits,
            "reconcile": {"requests_per_minute": 0},  # no request of its own where a test counts, or breaks, the next
        }
    )


async def fill_index(services: Services, forum: Forum, folder: Path) -> None:
    """Index the forum as it is, by the archive that an anonymous reader could make."""
    archive, site = folder / "archive.jsonl", folder / "site.json"
    archive.write_text("".join(f"{line}\n" for line in archive_lines(forum)), encoding="utf-8")
    site.write_text(json.dumps(site_json(forum)), encoding="utf-8")
    at = Backfill(services.corpus, services.corpus, services.embedder, services.rules, lambda *_: None)
    await backfill_archive(archive, categories=read_categories(site), vectors=None, at=at)
    await ProfileStore(services.pool).activate(services.embedder.profile.name)
