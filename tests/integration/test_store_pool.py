"""What database errors become, on a real server and code by code."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg_pool import PoolTimeout

from service.errors import ArianeError, Misconfigured, Transient
from service.settings import DatabaseSettings
from service.store.pool import Pool, connection, error_of, open_pool, transaction, translated
from tests.conftest import with_database
from tests.integration.store_data import rows

TRANSIENT = [
    "08006", "08001", "25006", "25P03", "40001", "40P01", "53100", "53300", "55P03", "57014", "57P01", "57P02", "57P03",
    "58030",
]  # fmt: skip
MISCONFIGURED = ["28000", "28P01", "3D000", "42501", "42P01", "42703", "42704", "42883"]
BUGS = ["23505", "23514", "42601", "22001", "42P10"]


@pytest.mark.parametrize(
    ("code", "ours"),
    [(c, Transient) for c in TRANSIENT] + [(c, Misconfigured) for c in MISCONFIGURED] + [(c, None) for c in BUGS],
)
def test_each_code_has_its_meaning(code: str, ours: type[ArianeError] | None) -> None:
    meant = error_of(psycopg.errors.lookup(code)("words"))
    assert type(meant) is (ours or type(None))


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (PoolTimeout("couldn't get a connection after 10.00 sec"), Transient),
        (psycopg.OperationalError("server closed the connection unexpectedly"), Transient),
        (psycopg.OperationalError('FATAL: password authentication failed for user "a"'), Misconfigured),
        (psycopg.OperationalError('FATAL: database "a" does not exist'), Misconfigured),
        (psycopg.ProgrammingError('missing "=" after "a" in connection info string'), Misconfigured),
        (psycopg.InterfaceError("cursor already closed"), type(None)),
    ],
)
def test_errors_without_a_code_are_told_by_class_and_words(error: psycopg.Error, ours: type) -> None:
    assert type(error_of(error)) is ours


def test_other_errors_go_through_untouched() -> None:
    with pytest.raises(KeyError), translated():
        raise KeyError
    with pytest.raises(psycopg.errors.UniqueViolation), translated():
        raise psycopg.errors.UniqueViolation


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("not a url", "can't be used"),
        ("postgresql:///ariane?nonsense=1", "can't be used"),
    ],
)
async def test_an_unusable_address_is_a_persons_to_mend(url: str, words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        async with open_pool(url):
            pass


async def test_refusals_of_a_real_server(server_url: str, empty_database_url: str) -> None:
    with pytest.raises(Misconfigured, match="check database"):
        async with open_pool(with_database(server_url, "no_such_database")):
            pass
    with pytest.raises(Misconfigured, match="check database"):
        async with open_pool(server_url.replace("postgres@", "nobody@")):
            pass
    with pytest.raises(Misconfigured, match="run `ariane migrate`"):
        async with open_pool(empty_database_url):
            pass


async def test_nobody_listening_is_transient() -> None:
    with pytest.raises(Transient):
        async with open_pool("postgresql://127.0.0.1:1/ariane", DatabaseSettings(connect_timeout_seconds=2)):
            pass


@pytest.fixture
async def hurried(database_url: str) -> AsyncIterator[Pool]:
    settings = DatabaseSettings(pool_max_size=2, statement_timeout_seconds=0.3, connect_timeout_seconds=1)
    async with open_pool(database_url, settings, application_name="ariane test") as pool:
        yield pool


async def test_a_long_statement_and_a_full_pool_are_transient(hurried: Pool) -> None:
    with pytest.raises(Transient, match="57014"):
        await _run(hurried, "SELECT pg_sleep(5)")
    async with hurried.connection(), hurried.connection():
        with pytest.raises(Transient, match="can't be reached"):
            await _run(hurried, "SELECT 1")


async def test_a_killed_connection_is_transient_and_the_pool_recovers(hurried: Pool) -> None:
    with pytest.raises(Transient):
        await _run(hurried, "SELECT pg_terminate_backend(pg_backend_pid())")
    assert await rows(hurried, "SELECT current_setting('application_name'), '[1,2]'::halfvec::text") == [
        ("ariane test", "[1,2]")
    ]


async def test_connections_killed_while_idle_are_all_replaced_at_once(database_url: str, server_url: str) -> None:
    settings = DatabaseSettings(pool_max_size=6)
    async with open_pool(database_url, settings, application_name="ariane idle") as pool:
        await asyncio.gather(*(_run(pool, "SELECT pg_sleep(0.3)") for _ in range(6)))
        async with await psycopg.AsyncConnection.connect(server_url, autocommit=True) as admin:
            killed = await admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ariane idle'"
            )
        assert killed.rowcount > 2
        async with asyncio.timeout(4):  # found one by one they would take 1 + 2 + 4 + ... seconds
            await _run(pool, "SELECT 1")


async def test_a_missing_table_asks_for_the_migration(pool: Pool) -> None:
    with pytest.raises(Misconfigured, match="run `ariane migrate`"):
        await _run(pool, "SELECT * FROM no_such_table")


async def test_a_transaction_is_all_or_nothing(pool: Pool) -> None:
    with pytest.raises(asyncio.CancelledError):
        async with transaction(pool) as conn:
            await conn.execute("CREATE TABLE half ()")
            raise asyncio.CancelledError
    assert await rows(pool, "SELECT to_regclass('half')") == [(None,)]


async def _run(pool: Pool, query: str) -> None:
    async with connection(pool) as conn:
        await conn.execute(query.encode())
