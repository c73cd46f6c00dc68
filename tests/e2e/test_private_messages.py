"""A question in a private message: answered there once moderators allow it, and kept apart from public ones."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.simulator.model import Member
from service.store.flags import FlagStore
from service.store.pool import connection
from tests.e2e.loop import QUESTION, Loop, whole_loop
from tests.e2e.test_privacy import places_of
from tests.e2e.test_silence import Scene


@pytest.fixture
async def loop(database_url: str, tmp_path: Path) -> AsyncIterator[Loop]:
    async with whole_loop(database_url, tmp_path) as running:
        bot = running.room.forum.member("ariane")
        assert bot is not None
        seeing = Member(bot.id, bot.username, bot.name, 1, moderator=True)  # the simulator's messages have no guests
        running.room.forum.add(seeing)
        yield running


async def test_a_message_is_answered_once_it_is_allowed(loop: Loop) -> None:
    scene, pool = Scene(loop), loop.services.pool
    message = scene.topic("About zqtitle", category_id=None, archetype="private_message")
    before = scene.post(f"{QUESTION} zqbefore", topic=message)
    await loop.drain()
    assert loop.replies(topic=message) == []
    await FlagStore(pool).set("private_messages", "on", by="test", reason="test")
    after = scene.post(f"{QUESTION} zqafter", topic=message)
    await loop.drain()
    (reply,) = loop.replies(topic=message)
    assert "/t/how-to-bleed-a-radiator/10/" in reply
    first, second = await loop.trace(before), await loop.trace(after)
    assert first is not None
    assert second is not None
    assert (first.outcome, first.reason) == ("skipped", "private")
    assert second.outcome == "posted"
    async with connection(pool) as conn:
        rows = await (await conn.execute("SELECT post_id, private FROM traces ORDER BY trace_id")).fetchall()
    assert rows == [(before, True), (after, True)]
    assert await places_of(pool, "zqafter") == {"traces.trace"}
    assert await places_of(pool, "zqbefore") | await places_of(pool, "zqtitle") == set()
