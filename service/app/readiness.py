"""Whether the web process can do its work: the database, its schema, and a worker behind it."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum

from service.errors import ArianeError, Transient
from service.store.migrate import check_schema
from service.store.pool import Pool, connection
from service.store.queue import worker_lives
from service.telemetry import log

CHECK_SECONDS = 3.0
"""Longest wait of one check."""


class Status(StrEnum):
    """Without a worker deliveries are still stored: refusing them would lose them, for the forum seldom tries twice."""

    OK = "ok"
    DEGRADED = "degraded"
    UNAVAILABLE = "unavailable"


async def readiness(pool: Pool, *, silent_seconds: float) -> tuple[Status, dict[str, str]]:
    """How the process stands, and each check in words; a worker silent for longer than that is taken for dead."""
    database = await _holds("database", lambda: _ask(pool))
    if not database:  # one wait is enough to know that nothing can be asked
        unknown = dict.fromkeys(("schema", "worker"), "not known: the database does not answer")
        return Status.UNAVAILABLE, {"database": "does not answer: see the log", **unknown}
    schema = await _holds("schema", lambda: check_schema(pool))
    worker = await _holds("worker", lambda: _ask_worker(pool, silent_seconds))
    return Status.UNAVAILABLE if not schema else Status.OK if worker else Status.DEGRADED, {
        "database": "ok",
        "schema": "ok" if schema else "is not this version's: run `ariane migrate`",
        "worker": "ok" if worker else "none was heard of lately: start `ariane worker`",
    }


async def _holds(name: str, ask: Callable[[], Awaitable[None]]) -> bool:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await ask()
    except (TimeoutError, ArianeError) as exc:
        log.warning("not_ready", check=name, error=f"{type(exc).__name__}: {exc}")
        return False
    return True


async def _ask(pool: Pool) -> None:
    async with connection(pool) as conn:
        await conn.execute("SELECT 1")


async def _ask_worker(pool: Pool, silent_seconds: float) -> None:
    async with connection(pool) as conn:
        if not await worker_lives(conn, silent_seconds=silent_seconds):
            raise Transient(f"no worker was heard of for {silent_seconds:g} s")
