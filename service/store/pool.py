"""The connection pool, and what every database error means to us."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.types import TypeInfo
from psycopg_pool import AsyncConnectionPool

from service.database_address import check_address
from service.errors import ArianeError, Misconfigured, Transient
from service.settings import DatabaseSettings

Connection = AsyncConnection[TupleRow]
Pool = AsyncConnectionPool[Connection]

RECONNECT_SECONDS = 5.0
"""How long a lost connection is tried again, with doubling waits, before the next caller starts anew: the pool is back
some seconds after an outage of any length. The library's own 5 minutes let it sleep on for 2 of them."""

MIGRATE_FIRST = "run `ariane migrate`"

_MIGRATE_CODES = {"42P01", "42703", "42704", "42883", "3F000"}
"""Undefined table, column, object (the vector type), function, schema."""

_MISCONFIGURED_CODES = {"28000", "28P01", "3D000", "42501"}
"""No such role or not let in, wrong password, no such database, no permission."""

_TRANSIENT_CODES = {"25006", "25P03", "40001", "40P01", "55P03", "57014", "57P01", "57P02", "57P03", "57P05"}
"""Read-only (a failover), idle in transaction, serialization, deadlock, lock timeout, statement timeout, shutdowns."""

_TRANSIENT_CLASSES = ("08", "53", "58")
"""Connection exception, insufficient resources (too many connections, disk full), system error."""

_REFUSALS = ("authentication failed", "does not exist", "no password supplied", "pg_hba.conf", "is not permitted")
"""libpq gives no SQLSTATE for a connection that the server refuses, only its words."""


def error_of(exc: psycopg.Error) -> ArianeError | None:
    """What a psycopg or pool error means: Transient, Misconfigured, or None for a bug of ours (constraint, syntax)."""
    code = exc.sqlstate
    text = " ".join((str(exc) if code is None else str(exc).partition("\n")[0]).split())  # the rest quotes rows
    if code is None:
        if isinstance(exc, psycopg.OperationalError):  # pool timeouts and lost connections are of this class too
            if any(words in text for words in _REFUSALS):
                return Misconfigured(f"the database refuses us: {text}; check database.url")
            return Transient(f"the database can't be reached: {text}")
        if isinstance(exc, psycopg.ProgrammingError):
            return Misconfigured(f"database.url can't be used: {text}")
        return None
    if code in _MIGRATE_CODES:
        return Misconfigured(f"the database's schema is not ours ({text}): {MIGRATE_FIRST}")
    if code in _MISCONFIGURED_CODES:
        return Misconfigured(f"the database refuses us: {text}; check database.url and its user's rights")
    if code in _TRANSIENT_CODES or code.startswith(_TRANSIENT_CLASSES):
        return Transient(f"the database can't do this now ({code}): {text}")
    return None


@contextmanager
def translated() -> Iterator[None]:
    """Raise our errors in place of psycopg's; what can only be a bug of ours goes through as it is."""
    try:
        yield
    except psycopg.Error as exc:
        ours = error_of(exc)
        if ours is None:
            raise
        raise ours from exc


@asynccontextmanager
async def connection(pool: Pool) -> AsyncIterator[Connection]:
    """A pooled connection in autocommit, with translated errors."""
    with translated():
        async with pool.connection() as conn:
            yield conn


@asynccontextmanager
async def transaction(pool: Pool) -> AsyncIterator[Connection]:
    """A pooled connection in one transaction, with translated errors."""
    async with connection(pool) as conn, conn.transaction():
        yield conn


@asynccontextmanager
async def timed_transaction(pool: Pool, *, timeout_seconds: float) -> AsyncIterator[Connection]:
    """A transaction each statement of which ends in Transient when it takes longer than that."""
    async with transaction(pool) as conn:
        timeout_ms = max(1, round(timeout_seconds * 1000))  # 0 would be none
        await conn.execute("SELECT set_config('statement_timeout', %s, true)", (str(timeout_ms),))
        yield conn


def connection_arguments(settings: DatabaseSettings, application_name: str) -> dict[str, Any]:
    """libpq's parameters for every connection of ours: a dead peer is noticed within about half a minute."""
    return {
        "application_name": application_name,
        "connect_timeout": settings.connect_timeout_seconds,
        "keepalives": 1,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
        "autocommit": True,
    }


@asynccontextmanager
async def open_pool(
    url: str, settings: DatabaseSettings | None = None, *, application_name: str = "ariane"
) -> AsyncIterator[Pool]:
    """A pool of autocommit connections that know pgvector's halfvec.

    Raises at once Misconfigured (bad address, refused, not migrated) or Transient (not reachable).
    """
    settings = settings or DatabaseSettings()
    arguments = connection_arguments(settings, application_name)
    timeout_ms = str(round(settings.statement_timeout_seconds * 1000))
    halfvec = await _halfvec(url, arguments)

    async def configure(conn: Connection) -> None:
        await conn.execute(
            "SELECT set_config('statement_timeout', %(ms)s, false),"
            " set_config('idle_in_transaction_session_timeout', %(ms)s, false)",
            {"ms": timeout_ms},
        )
        register_halfvec_info(conn, halfvec)

    async def check(conn: Connection) -> None:
        try:
            await AsyncConnectionPool.check_connection(conn)
        except psycopg.Error:
            await pool.check()  # after a restart all are dead: found one by one, each would cost a longer wait
            raise

    pool = AsyncConnectionPool[Connection](
        url,
        kwargs=arguments,
        min_size=1,
        max_size=settings.pool_max_size,
        timeout=settings.connect_timeout_seconds,
        reconnect_timeout=RECONNECT_SECONDS,
        configure=configure,
        check=check,
        name=application_name,
        open=False,
    )
    async with pool:
        yield pool


async def _halfvec(url: str, arguments: dict[str, Any]) -> TypeInfo:
    """Asked once: by pgvector's own registering each connection would ask for four types, in a dozen round trips."""
    with translated():
        check_address(url, "database.url")
        async with await AsyncConnection.connect(url, **arguments) as conn:
            found = await TypeInfo.fetch(conn, "halfvec")
    if found is None:
        raise Misconfigured(f"the database is empty: {MIGRATE_FIRST}")
    return found
