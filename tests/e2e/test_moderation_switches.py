"""A moderator turns switches in one web process: another one and a running worker go by them within seconds."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from service.demo.processes import Children
from service.moderation.access import SESSION_COOKIE, Session
from service.store.sessions import SessionStore
from service.wiring.moderation import moderation_desk
from tests.e2e.loop import QUESTION, whole_loop
from tests.e2e.processes import start_web, start_worker, until, until_idle
from tests.moderators import MODERATOR

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]

SECONDS = 5.0
"""How soon every process goes by a change (spec P14)."""


async def test_a_change_reaches_every_process_within_five_seconds(database_url: str, tmp_path: Path) -> None:
    async with whole_loop(database_url, tmp_path, answering="off") as loop, Children(tmp_path / "logs") as children:
        (_, one), (_, other), _ = await asyncio.gather(
            start_web(children, loop.settings, "one"),
            start_web(children, loop.settings, "other"),
            start_worker(children, loop.settings, "worker"),
        )
        here, there = (url.removesuffix("/webhooks/discourse") for url in (one, other))
        life = moderation_desk(loop.services.pool, loop.settings).life
        secret = await SessionStore(loop.services.pool).open(MODERATOR, life=life, now=datetime.now(UTC))
        cookies = {SESSION_COOKIE: secret}
        headers = {"Origin": loop.settings.moderation.public_url, "X-CSRF-Token": Session(MODERATOR, secret).csrf}
        async with httpx.AsyncClient(cookies=cookies, headers=headers, timeout=10) as moderator:

            async def turn(name: str, value: str) -> None:
                body = {"name": name, "value": value, "why": "a test"}
                turned = await moderator.post(f"{here}/moderation/api/flags", json=body)
                assert turned.status_code == 200, turned.text

                async def reached() -> bool:
                    read = await moderator.get(f"{there}/moderation/api/flags")
                    return bool(read.json()["flags"].get(name) == value)

                await until(reached, seconds=SECONDS)

            async def outcome_of(raw: str) -> tuple[str, str | None]:
                asked = await loop.say(raw)
                await until_idle(loop)
                stored = await loop.trace(asked["id"])
                assert stored is not None
                return stored.outcome, stored.reason

            assert await outcome_of(QUESTION) == ("skipped", "answering_off")
            await turn("answering", "shadow")
            assert await outcome_of(f"{QUESTION} Once more.") == ("shadowed", "answered")
            await turn("answering", "on")
            assert await outcome_of(f"{QUESTION} And now?") == ("posted", "answered")
            await turn("category:1", "off")
            assert await outcome_of(f"{QUESTION} And here?") == ("skipped", "category_off")
            await turn("category:1", "on")
            await turn("group:trust_level_2:per_hour", "1")
            assert await outcome_of(f"{QUESTION} Too much?") == ("skipped", "member_limit")
