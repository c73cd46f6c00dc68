"""Migrations against a real Postgres: fresh, again, at once, edited, ahead, behind."""

import asyncio
import shutil
from pathlib import Path

import psycopg
import pytest

from service.errors import Misconfigured
from service.store.migrate import check_schema, migrate, migrations_folder
from service.store.pool import Pool, open_pool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(migrations_folder(), tmp_path / "migrations"))


async def test_a_fresh_database_gets_everything_once(empty_database_url: str) -> None:
    first = await migrate(empty_database_url)
    assert [name for name in first if "procrastinate" not in name] == sorted(
        path.name for path in migrations_folder().glob("*.sql")
    )
    assert any(name.startswith("procrastinate/") for name in first)
    assert await migrate(empty_database_url) == []


async def test_two_starts_do_not_race(empty_database_url: str) -> None:
    first, second = await asyncio.gather(migrate(empty_database_url), migrate(empty_database_url))
    assert bool(first) != bool(second)


async def test_an_edited_file_is_named(empty_database_url: str, folder: Path) -> None:
    await migrate(empty_database_url, folder=folder)
    edited = folder / "0002_inbox.sql"
    edited.write_text(edited.read_text() + "\n-- edited\n")
    with pytest.raises(Misconfigured, match=r"0002_inbox\.sql was edited"):
        await migrate(empty_database_url, folder=folder)


async def test_a_broken_file_leaves_nothing_of_itself(empty_database_url: str, folder: Path) -> None:
    await migrate(empty_database_url, folder=folder)
    (folder / "9999_broken.sql").write_text("CREATE TABLE half (x int); SELECT 1 / 0;")
    with pytest.raises(psycopg.errors.DivisionByZero):
        await migrate(empty_database_url, folder=folder)
    (folder / "9999_broken.sql").write_text("CREATE TABLE half (x int);")
    assert await migrate(empty_database_url, folder=folder) == ["9999_broken.sql"]


async def test_a_database_ahead_of_the_program_is_refused(empty_database_url: str, folder: Path) -> None:
    (folder / "9999_later.sql").write_text("SELECT 1;")
    await migrate(empty_database_url, folder=folder)
    with pytest.raises(Misconfigured, match="newer than this program"):
        await migrate(empty_database_url)
    async with open_pool(empty_database_url) as pool:
        with pytest.raises(Misconfigured, match="newer than this program"):
            await check_schema(pool)


async def test_a_database_behind_is_told_to_migrate(pool: Pool) -> None:
    await check_schema(pool)
    async with pool.connection() as conn:
        await conn.execute("DELETE FROM schema_migrations WHERE name LIKE '0003%'")
    with pytest.raises(Misconfigured, match=r"lacks 0003_answers\.sql: run `ariane migrate`"):
        await check_schema(pool)
    async with pool.connection() as conn:
        await conn.execute("DROP TABLE schema_migrations")
    with pytest.raises(Misconfigured, match="run `ariane migrate`"):
        await check_schema(pool)


async def test_an_old_pgvector_is_told_so(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.store.migrate.PGVECTOR_AT_LEAST", "99.0.0")
    with pytest.raises(Misconfigured, match=r"too old \(99.0.0 or later is needed\)"):
        await migrate(empty_database_url)


async def test_the_queue_is_procrastinates_own(pool: Pool) -> None:
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT to_regclass('procrastinate_jobs'), count(procrastinate) FROM schema_migrations"
        )
        table, recorded = await cursor.fetchone() or (None, 0)
    assert table == "procrastinate_jobs"
    assert recorded > 30
