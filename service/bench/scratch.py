"""A migrated database of a bench's own, on the same server as the one in use."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo

from service.store.migrate import migrate
from service.store.pool import translated


def new_name() -> str:
    """A name that no database has."""
    return f"ariane_bench_{secrets.token_hex(4)}"


@asynccontextmanager
async def scratch_database(url: str) -> AsyncIterator[str]:
    """The address of a new database with our schema, dropped afterwards; Misconfigured when it may not be made."""
    name = new_name()
    with translated():
        async with await AsyncConnection.connect(url, autocommit=True) as admin:
            await admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            try:
                scratch = make_conninfo(url, dbname=name)
                await migrate(scratch)
                yield scratch
            finally:
                await admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
