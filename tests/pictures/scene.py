"""The scene of the pictures: the demo forum, Ariane beside it, and what three weeks of questions left behind."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from service.app import create_app, listen
from service.demo.processes import free_ports
from service.demo.tested import shipped_run
from service.settings import WebSettings
from service.simulator.app import create_simulator
from service.simulator.limits import NO_RATES
from service.simulator.model import Member
from service.simulator.state import BOT_ID, DEMO, load_yaml
from service.simulator.webhooks import Hook
from service.store.evaluations import EvaluationStore
from service.wiring.activation import turn
from service.wiring.configuration import configuration
from service.wiring.moderation import moderation_desk
from service.wiring.parts import stored_parts
from service.wiring.services import open_services
from service.wiring.work import work_of
from service.worker import run_worker
from tests.e2e.loop import SECRET, Loop, acting_as, address, fill_index, loop_settings, serving
from tests.moderators import CONNECT_SECRET
from tests.pictures.history import FEATURED, HELD_BACK, Question, date_back, like, questions, react
from tests.simulated import ADMIN_KEY, KEY, room_of

MODERATOR = "maelle"
HOST, PORTS = "127.0.0.1", (4200, 4300)
"""Where the forum and the pages are, if nobody else is there: the addresses stand in the pictures."""
UNLIMITED = {"per_member_per_hour": 1_000, "per_topic_per_hour": 1_000, "per_hour": 1_000}
DRAIN_SECONDS = 300.0
PLOT, BALCONY = 1, 2
"""Categories of the demo forum."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Where the forum and the pages are, and by language the topic with an answer and the question held in shadow."""

    forum: str
    pages: str
    topics: Mapping[str, int]
    answered: Mapping[str, int]
    shadowed: Mapping[str, int]


@asynccontextmanager
async def staged(database_url: str, folder: Path) -> AsyncIterator[Scene]:
    """The running scene, a worker included; everything stops with the block."""
    async with AsyncExitStack() as stack:
        ports = free_ports(HOST, *PORTS)
        forum_socket, web_socket = (stack.enter_context(listen(WebSettings(port=port))) for port in ports)
        forum, web = address(forum_socket), address(web_socket)
        settings = loop_settings(database_url, forum, folder, limits=UNLIMITED)
        moderation = type(settings.moderation).model_validate({"public_url": web, "connect_secret": CONNECT_SECRET})
        reconcile = type(settings.reconcile)(requests_per_minute=60)
        settings = settings.model_copy(update={"moderation": moderation, "reconcile": reconcile})
        simulated = load_yaml(DEMO, base_url=forum, bot=Member(BOT_ID, "ariane", "Ariane", trust_level=1))
        simulator = create_simulator(
            simulated,
            hook=Hook(f"{web}/webhooks/discourse", SECRET),
            api_keys={KEY: "ariane", ADMIN_KEY: None},
            limits=NO_RATES,
            connect_secrets={"127.0.0.1": CONNECT_SECRET},
        )
        services = await stack.enter_async_context(open_services(settings, "pictures"))
        await fill_index(services, simulated, folder)
        await stack.enter_async_context(serving(simulator, forum_socket))
        room = room_of(simulator)
        assert room.webhooks is not None
        stack.push_async_callback(room.webhooks.close)
        app = create_app(settings, services.pool, desk=moderation_desk(services.pool, settings))
        await stack.enter_async_context(serving(app, web_socket))
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=forum, timeout=30))
        loop = Loop(settings, services, room, f"{web}/webhooks/discourse", client)
        scene = await _play(loop, forum, f"{web}/moderation")
        stop = asyncio.Event()
        watch = [stored_parts(services.pool, "pictures", services.up)]
        work = run_worker(settings, services.pool, work_of(services, stop), stop=stop, up=services.up, watch=watch)
        worker = asyncio.create_task(work)
        try:
            yield scene
        finally:
            stop.set()
            await worker


async def _play(loop: Loop, forum: str, pages: str) -> Scene:
    """Three weeks in a minute: a week in shadow, then posted; last the questions that the pictures show."""
    pool, asked = loop.services.pool, questions()
    await EvaluationStore(pool).record_run(replace(shipped_run(), signature=configuration(loop.settings)))
    await _turn(loop, "posts_pipeline", "on", "the test of May passed")
    await _turn(loop, "input_gate", "on", "decline what isn’t for us")
    await _turn(loop, "answering", "shadow", "a first look")
    shadowed = [await _ask(loop, one) for one in asked[: len(asked) // 3]]
    await loop.drain(seconds=DRAIN_SECONDS)
    await _turn(loop, "answering", "on", "a week in shadow was good")
    posted = [await _ask(loop, one) for one in asked[len(asked) // 3 :]]
    await loop.drain(seconds=DRAIN_SECONDS)
    await react(loop, [one["id"] for one in posted])
    await date_back(pool, [one["id"] for one in (*shadowed, *posted)])
    featured = {lang: await _ask(loop, one) for lang, one in FEATURED.items()}
    await loop.drain(seconds=DRAIN_SECONDS)
    await like(loop, [one["topic_id"] for one in featured.values()])
    await _turn(loop, f"category:{PLOT}", "shadow", "the vegetable plot later")
    held = {lang: await _ask(loop, one, category=PLOT) for lang, one in HELD_BACK.items()}
    await loop.drain(seconds=DRAIN_SECONDS)
    await work_of(loop.services, asyncio.Event()).group_unanswered()
    return Scene(
        forum,
        pages,
        topics={lang: one["topic_id"] for lang, one in featured.items()},
        answered={lang: one["id"] for lang, one in featured.items()},
        shadowed={lang: one["id"] for lang, one in held.items()},
    )


async def _turn(loop: Loop, name: str, value: str, why: str) -> None:
    await turn(loop.services.pool, loop.settings, name, value, by=MODERATOR, reason=why)


async def _ask(loop: Loop, one: Question, *, category: int = BALCONY) -> dict[str, Any]:
    """Ask where the question says, a topic of its own being in this category; the created post."""
    place = {"title": one.title, "category": category} if one.title else {"topic_id": one.topic}
    body = {"raw": f"@ariane {one.text}", **place}
    answer = await loop.client.post("/posts.json", json=body, headers=acting_as(one.by))
    assert answer.status_code == 200, answer.text
    created: dict[str, Any] = answer.json()
    return created
