"""`ariane reconcile` as an operator meets it, on a forum over real sockets."""

import asyncio
from pathlib import Path

import pytest

from service.commands import reconcile
from service.errors import Transient
from service.settings import ReconcileSettings
from service.store.reconcile import ReconcileStore
from tests.e2e.loop import Loop, whole_loop
from tests.integration.store_data import rows
from tests.integration.test_commands import refused, run
from tests.simulated import KEY

WAITS = "a worker, perhaps, reconciles this index now: waiting for its round to end, two minutes at most"
WAITING = """
SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database
WHERE locktype = 'advisory' AND datname = current_database() AND NOT granted
"""


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


async def test_it_waits_for_the_round_of_a_worker(database_url: str, tmp_path: Path) -> None:
    async with whole_loop(database_url, tmp_path) as loop:
        pool = loop.services.pool
        async with ReconcileStore(pool).alone() as ours:
            running = asyncio.create_task(
                asyncio.to_thread(run, "reconcile", "--once", url=database_url, env=settings_of(loop))
            )
            while not running.done() and not await rows(pool, WAITING):
                await asyncio.sleep(0.05)
        done = await running
    assert ours
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines().count(WAITS) == 1


async def test_it_gives_up_where_the_round_does_not_end(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reconcile, "WAIT_SECONDS", 0.05)
    async with whole_loop(database_url, tmp_path) as loop, ReconcileStore(loop.services.pool).alone():
        settings = loop.settings.model_copy(update={"reconcile": ReconcileSettings(requests_per_minute=200)})
        with pytest.raises(Transient, match="somebody else"):
            await reconcile.reconciled(settings, once=True)
    assert WAITS in capsys.readouterr().err


async def rows_of(loop: Loop) -> list[tuple[str | None, str | None]]:
    async with loop.services.pool.connection() as conn:
        cursor = await conn.execute("SELECT refusal, body FROM posts WHERE post_id = 2")
        return [(refusal, body) for refusal, body in await cursor.fetchall()]


def test_without_requests_it_refuses() -> None:
    done = run("reconcile", env={"ARIANE_RECONCILE__REQUESTS_PER_MINUTE": "0"})
    refused(done, "reconcile.requests_per_minute")
