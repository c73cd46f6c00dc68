"""The whole loop with models on servers: all of them and the forum behind doors, with switches."""

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import numpy as np
import yaml
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from starlette.types import ASGIApp, Receive, Scope, Send

from service.app import create_app, listen
from service.domain import PostId, Trace, Vector
from service.settings import Settings
from service.simulator.app import create_simulator
from service.simulator.forum import Author
from service.simulator.limits import NO_RATES
from service.simulator.model import Post
from service.simulator.webhooks import Hook
from service.store.pool import connection
from service.store.traces import StoredTrace
from service.wiring.services import open_services
from service.wiring.work import work_of
from service.worker import run_worker
from tests.e2e.loop import ANY_PORT, FAST, QUESTION, SECRET, Loop, address, fill_index, loop_settings, serving
from tests.fakes import ollama, tei
from tests.fakes.door import HOST, Door
from tests.fakes.forum import Fault, answer
from tests.fakes.model_server import FakeServer, shared_words
from tests.fakes.serving import served
from tests.simulated import ADMIN_KEY, KEY, room_of, tiny_forum
from tests.switching import switch_on

DIMENSIONS = 64
MANY = 200
"""Candidates, so that the questions asked before never crowd out the answer."""
ANSWER = "You bleed a radiator that gurgles with a small key: open the valve until water comes."
TIMEOUT_SECONDS = 0.5
"""Of every model server, and of one call to the forum."""
BREAKER_OPEN_SECONDS = 0.4
PROFILES = {
    "embedders": {
        "tiny": {
            "model": "bge-m3",
            "strategy": 1,
            "version": 9,
            "dimensions": DIMENSIONS,
            "window_tokens": 512,
            "cosine_floor": 0.6,
        }
    },
    "rerankers": {
        "tiny": {
            "name": "words",
            "weak": -4.0,
            "normal": 0.0,
            "references": [
                {"question": "how to bleed a radiator", "title": "radiator", "excerpt": "bleed", "logit": -1.0}
            ],
        }
    },
}
LIMITS = {"per_member_per_hour": 10_000, "per_topic_per_hour": 10_000, "per_hour": 10_000}


def word_vector(text: str) -> Vector:
    """A unit vector of the words: texts that share words point the same way."""
    vector = np.full(DIMENSIONS, 0.01, dtype=np.float32)
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(word.encode()) % DIMENSIONS] += 1.0
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def judged(query: str, text: str) -> float:
    """A logit by shared words; who asks the same has no answer."""
    return shared_words(query, text) - (20.0 if "?" in text else 0.0)


async def until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def hangs(scope: Scope, receive: Receive, send: Send) -> None:
    """No answer, for as long as the client waits."""
    await until_gone(receive)


async def drips(scope: Scope, receive: Receive, send: Send) -> None:
    """A byte now and then, for as long as the client waits."""
    gone = asyncio.create_task(until_gone(receive))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    while not gone.done():
        await send({"type": "http.response.body", "body": b" ", "more_body": True})
        await asyncio.sleep(0.02)


@dataclass
class FaultyForum:
    """The simulated forum, which misbehaves to the bot alone; after `dies` has seen a post made it hangs up on it."""

    app: ASGIApp
    always: Fault | None = None
    dies: bool = False
    dead: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        to_bot = (b"user-agent", b"Ariane") in scope["headers"]
        if to_bot and self.always is not None:
            await self.always(scope, receive, send)
        elif to_bot and (self.dead or (self.dies and scope["method"] == "POST")):
            if not self.dead:
                self.dead = True
                await self.app(scope, receive, _nowhere)
            receive.__self__.transport.abort()  # type: ignore[attr-defined]  # uvicorn's receive is its cycle's method
        else:
            await self.app(scope, receive, send)


async def _nowhere(message: Any) -> None:
    """Whatever is sent is lost."""


@dataclass(slots=True)
class ModelLoop:
    """The running loop, its worker, and what stands behind each door."""

    loop: Loop
    doors: Mapping[str, Door]
    servers: Mapping[str, FakeServer]
    forum: FaultyForum
    stop: asyncio.Event
    asked: list[Post] = field(default_factory=list)

    def ask(self, text: str = QUESTION) -> Post:
        """Post a question as a member does."""
        by = Author(self.loop.room.forum.members[2], datetime.now(UTC))
        post = self.loop.room.forum.create_post(by, topic_id=10, raw=f"{text} Number {len(self.asked)}.")
        self.asked.append(post)
        return post

    def answers(self, *posts: Post) -> list[int]:
        """How many replies each has."""
        return [len(self.loop.replies(post.number)) for post in posts]

    async def trace(self, post: Post) -> Trace:
        """What happened to a question that was posted, once that is written down."""
        found: list[StoredTrace] = []

        async def written() -> bool:
            found[:] = filter(None, [await self.loop.trace(PostId(post.id))])
            return bool(found)

        await until_true(written, seconds=10)
        assert found[0].outcome == "posted"
        return found[0].trace

    async def answered(self, *posts: Post, seconds: float = 30.0) -> float:
        """Wait until each has a reply; how long that took."""
        started = monotonic()
        await until(lambda: all(self.answers(*posts)), seconds=seconds)
        return monotonic() - started

    async def idle(self, *, seconds: float = 30.0) -> None:
        """Wait until the forum has sent everything and no job is left."""
        await self.loop.delivered()

        async def done() -> bool:
            return await self.loop.jobs_left() == 0

        await until_true(done, seconds=seconds)

    async def no_question_left(self) -> None:
        """Wait until no question waits or is being answered; posts may still wait to be indexed."""
        await self.loop.delivered()

        async def done() -> bool:
            async with connection(self.loop.services.pool) as conn:
                left = await conn.execute(
                    "SELECT FROM procrastinate_jobs WHERE task_name = 'answer_post' AND status IN ('todo', 'doing')"
                )
            return left.rowcount == 0

        await until_true(done, seconds=10)

    async def redeliver(self) -> None:
        """Send again what was refused, as a forum does where retries are on."""
        hooks = self.loop.room.webhooks
        assert hooks is not None
        await hooks.drain()
        for delivery in [one for one in hooks.kept.values() if one.status != 200]:
            hooks.redeliver(delivery.id)
        await hooks.drain()


async def until(condition: Callable[[], bool], *, seconds: float = 30.0) -> None:
    """Wait until it holds; fails when it doesn't in time."""

    async def holds() -> bool:
        return condition()

    await until_true(holds, seconds=seconds)


async def until_true(condition: Callable[[], Awaitable[bool]], *, seconds: float) -> None:
    deadline = monotonic() + seconds
    while not await condition():
        assert monotonic() < deadline, "it never came true"
        await asyncio.sleep(0.02)


@asynccontextmanager
async def model_loop(
    database_url: str,
    folder: Path,
    *,
    embedder: str = "ollama",
    user: Mapping[str, str] | None = None,
    **changed: dict[str, Any],
) -> AsyncIterator[ModelLoop]:
    """The loop on fakes behind doors, with a worker that runs; `user` is who it is to the database.

    `changed` are settings by section (`reranker` and `answerer` are those parts of `models`), over those of the tests.
    """
    async with AsyncExitStack() as stack:
        tei_embedder, fake_ollama = tei.FakeTei(embed=word_vector), ollama.FakeOllama(embed=word_vector)
        servers: dict[str, FakeServer] = {
            "embedder": tei_embedder if embedder == "tei" else fake_ollama,
            "reranker": tei.FakeTei(score=judged, max_batch=MANY),
            "model": ollama.FakeOllama(),
        }
        doors = {part: await _door(server, stack) for part, server in servers.items()}
        forum_socket = stack.enter_context(listen(ANY_PORT))
        web_socket = stack.enter_context(listen(ANY_PORT))
        doors["forum"] = await stack.enter_async_context(Door(partial(asyncio.open_connection, *_place(forum_socket))))
        known = {name: str(value) for name, value in conninfo_to_dict(database_url).items()}
        inner = f"{known['host']}/.s.PGSQL.{known.get('port', '5432')}"
        doors["database"] = await stack.enter_async_context(Door(partial(asyncio.open_unix_connection, inner)))
        base_url = _url(doors["forum"])
        settings = _settings(database_url, base_url, folder, doors, embedder, user or {}, changed)
        simulated = tiny_forum(folder, base_url=base_url)
        zoe = Author(simulated.members[3], datetime(2025, 2, 1, tzinfo=UTC))
        simulated.create_post(zoe, topic_id=10, raw=ANSWER)
        hook = Hook(f"{address(web_socket)}/webhooks/discourse", SECRET)
        simulator = create_simulator(simulated, hook=hook, api_keys={KEY: "ariane", ADMIN_KEY: None}, limits=NO_RATES)
        services = await stack.enter_async_context(open_services(settings, "test", long_lived=True))
        await fill_index(services, simulated, folder)
        await switch_on(services.pool, settings)
        faulty = FaultyForum(simulator)
        await stack.enter_async_context(serving(faulty, forum_socket))  # type: ignore[arg-type]  # any ASGI app will do
        webhooks = room_of(simulator).webhooks
        assert webhooks is not None
        stack.push_async_callback(webhooks.close)
        await stack.enter_async_context(serving(create_app(settings, services.pool), web_socket))
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=address(web_socket), timeout=10))
        stop = asyncio.Event()
        work = run_worker(settings, services.pool, work_of(services, stop), stop=stop, up=services.up)
        worker = asyncio.create_task(work)
        try:
            yield ModelLoop(
                Loop(settings, services, room_of(simulator), hook.url, client), doors, servers, faulty, stop
            )
        finally:
            stop.set()
            await worker


async def _door(server: FakeServer, stack: AsyncExitStack) -> Door:
    url = httpx.URL(stack.enter_context(served(server)))
    return await stack.enter_async_context(Door(partial(asyncio.open_connection, url.host, url.port)))


def _place(listening: Any) -> tuple[str, int]:
    host, port = listening.getsockname()[:2]
    return host, port


def _url(door: Door) -> str:
    return f"http://{HOST}:{door.port}"


def _settings(
    database_url: str,
    base_url: str,
    folder: Path,
    doors: Mapping[str, Door],
    embedder: str,
    user: Mapping[str, str],
    changed: Mapping[str, dict[str, Any]],
) -> Settings:
    profiles = folder / "profiles.yml"
    profiles.write_text(yaml.safe_dump(PROFILES), encoding="utf-8")
    through = make_conninfo(
        database_url, host=HOST, port=doors["database"].port, sslmode="disable", gssencmode="disable", **user
    )
    plain = loop_settings(database_url, base_url, folder, limits=LIMITS)
    served_by = {"profile": "tiny", "timeout_seconds": TIMEOUT_SECONDS}
    return Settings.model_validate(
        {
            **plain.model_dump(exclude={"models", "database", "forum", "worker"}),
            "forum": {**plain.forum.model_dump(), "timeout_seconds": TIMEOUT_SECONDS, "attempts": 2}
            | changed.get("forum", {}),
            "retrieval": {"candidates": MANY},
            "worker": FAST | {"max_attempts": 60, **changed.get("worker", {})},
            "database": {
                "url": through,
                "statement_timeout_seconds": 1.0,
                "search_timeout_seconds": 1.0,
                "connect_timeout_seconds": 1,
            },
            "models": {
                "profiles_file": str(profiles),
                "breaker_open_seconds": BREAKER_OPEN_SECONDS,
                "embedder": {"kind": embedder, "url": _url(doors["embedder"]), **served_by},
                "reranker": {"kind": "tei", "url": _url(doors["reranker"]), **served_by, **changed.get("reranker", {})},
                "answerer": {"kind": "ollama", "url": _url(doors["model"]), "deadline_seconds": 2 * TIMEOUT_SECONDS}
                | changed.get("answerer", {}),
                **changed.get("models", {}),
            },
        }
    )


REFUSALS: Mapping[str, Callable[[int], Fault]] = {
    "tei": lambda status: tei.refusal(status, "Overloaded" if status == 429 else "Backend", "no"),
    "ollama": lambda status: ollama.refusal(status, "no"),
    "forum": lambda status: answer(status, {"errors": ["no"], "error_type": "rate_limit"}),
}
"""An answer with this status in each server's own words."""
