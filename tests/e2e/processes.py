"""Real processes for a test: the simulator, the web process and workers, each with its log, all stopped at the end."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from time import monotonic

import psycopg

from service.demo.processes import Child, Children, until_answering
from service.settings import Settings
from service.simulator.switches import Switch
from tests.e2e.loop import SECRET, Loop
from tests.simulated import ADMIN_KEY, KEY

ROOT = Path(__file__).parents[2]
HOST = "127.0.0.1"
JOB_LOOPS = 3
"""Rows that one worker process has among procrastinate's workers."""


def environment(settings: Settings, **more: object) -> dict[str, str]:
    """The settings of a test as variables, with these changed (`WORKER__SHUTDOWN_GRACE_SECONDS=1`)."""
    worker = {f"WORKER__{name.upper()}": value for name, value in settings.worker.model_dump().items()}
    ours = {
        "HOME": settings.home,
        "DATABASE__URL": settings.database.url.get_secret_value(),
        "FORUM__BASE_URL": settings.forum.base_url,
        "FORUM__API_KEY": KEY,
        "FORUM__TIMEOUT_SECONDS": 30,
        "WEBHOOK__SECRETS": f'["{SECRET}"]',
        "RECONCILE__REQUESTS_PER_MINUTE": settings.reconcile.requests_per_minute,
        "LOG__FORMAT": "json",
    }
    variables = {f"ARIANE_{name}": str(value) for name, value in {**ours, **worker, **more}.items()}
    return _without_settings(os.environ) | variables | {"PYTHONPATH": str(ROOT)}


def _without_settings(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if not name.startswith("ARIANE_")}


async def start_worker(children: Children, settings: Settings, name: str, **more: object) -> Child:
    """A worker process that takes jobs."""
    url = settings.database.url.get_secret_value()
    before = await asyncio.to_thread(_last_loop, url)
    child = await children.start(name, "service", "worker", env=environment(settings, **more))

    async def works() -> bool:
        assert child.process.returncode is None, child.fault()
        return await asyncio.to_thread(_last_loop, url) >= before + JOB_LOOPS

    await until(works)
    return child


async def start_web(children: Children, settings: Settings, name: str) -> tuple[Child, str]:
    """A web process that answers, and the address of its webhook."""
    port = free_port()
    child = await children.start(name, "service", "serve", env=environment(settings, WEB__PORT=port))
    await until_answering(child, f"http://{HOST}:{port}/livez", seconds=30)
    return child, f"http://{HOST}:{port}/webhooks/discourse"


async def start_simulator(children: Children, forum: Path, port: int, webhook_url: str) -> Child:
    """A simulator process with the forum of this YAML file, which answers at `port`."""
    keys = {"SIMULATOR_WEBHOOK_SECRET": SECRET, "SIMULATOR_API_KEY": KEY, "SIMULATOR_MEMBER_KEY": ADMIN_KEY}
    options = ("--port", str(port), "--demo", str(forum), "--webhook", webhook_url, "--no-rates")
    env = _without_settings(os.environ) | keys | {"PYTHONPATH": str(ROOT)}
    child = await children.start("simulator", "service.simulator", *options, env=env)
    await until_answering(child, f"http://{HOST}:{port}/srv/status", seconds=30)
    return child


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


async def until(condition: Callable[[], Awaitable[bool]], *, seconds: float = 40.0) -> None:
    """Wait until it holds; fails when it doesn't in time."""
    deadline = monotonic() + seconds
    while not await condition():
        assert monotonic() < deadline, "it never came true"
        await asyncio.sleep(0.05)


async def until_met(loop: Loop, *switches: Switch) -> None:
    """Wait until each of these faults, set for one time, has met its request."""

    async def met() -> bool:
        return not {switch.id for switch in switches} & {switch.id for switch in loop.room.switches}

    await until(met)


async def until_idle(loop: Loop) -> None:
    """Wait until no job is left, with workers that run already."""
    await loop.delivered()

    async def idle() -> bool:
        return await loop.jobs_left() == 0

    await until(idle)


def _last_loop(url: str) -> int:
    with psycopg.connect(url) as conn:
        row = conn.execute("SELECT coalesce(max(id), 0) FROM procrastinate_workers").fetchone()
    return int(row[0]) if row else 0
