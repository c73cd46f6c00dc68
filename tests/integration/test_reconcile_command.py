"""`ariane reconcile` as an operator meets it, on a forum over real sockets."""

import asyncio
from pathlib import Path

from tests.e2e.loop import Loop, whole_loop
from tests.integration.test_commands import refused, run
from tests.simulated import KEY


def settings_of(loop: Loop, per_minute: str = "200") -> dict[str, str]:
    forum = loop.settings.forum
    return {
        "ARIANE_FORUM__BASE_URL": forum.base_url,
        "ARIANE_FORUM__API_KEY": KEY,
        "ARIANE_FORUM__KNOWN_BOTS": '["system", "OtherBot"]',
        "ARIANE_RECONCILE__REQUESTS_PER_MINUTE": per_minute,
        "ARIANE_LOG__LEVEL": "error",
    }


async def test_it_says_what_it_found_and_mended(database_url: str, tmp_path: Path) -> None:
    async with whole_loop(database_url, tmp_path) as loop:
        env = settings_of(loop)
        at_first = await asyncio.to_thread(run, "reconcile", url=database_url, env=env)
        assert (at_first.returncode, at_first.stdout) == (0, "")
        assert "the index and the forum agree" in at_first.stderr
        loop.room.forum.hide_post(2, hidden=True, now=loop.room.desk.clock())
        once = await asyncio.to_thread(run, "reconcile", "--once", url=database_url, env=env)
        assert (once.returncode, once.stdout) == (0, "")
        assert "post_gone: 1 found, 1 mended" in once.stderr
        assert await rows_of(loop) == [("hidden", None)]


async def rows_of(loop: Loop) -> list[tuple[str | None, str | None]]:
    async with loop.services.pool.connection() as conn:
        cursor = await conn.execute("SELECT refusal, body FROM posts WHERE post_id = 2")
        return [(refusal, body) for refusal, body in await cursor.fetchall()]


def test_without_requests_it_refuses() -> None:
    done = run("reconcile", env={"ARIANE_RECONCILE__REQUESTS_PER_MINUTE": "0"})
    refused(done, "reconcile.requests_per_minute")
