"""A copy of a dataset's index to plant hostile posts in: the index itself, and the operator's, never see them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from psycopg import AsyncConnection, errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from eval.index import lock_key
from service.errors import Transient
from service.settings import DatabaseSettings
from service.store.pool import connection_arguments, translated

SUFFIX = "_safety"
_LONGEST_NAME = 63


@asynccontextmanager
async def copied(admin_url: str, source_url: str, settings: DatabaseSettings) -> AsyncIterator[str]:
    """The address of a copy of the database `source_url`, dropped afterwards; a killed run's is dropped first.

    `admin_url` is the database that the index was opened from: its locks keep others off the copy. Raises Transient
    while somebody uses the source or another run its copy, Misconfigured where databases may not be made.
    """
    source = str(conninfo_to_dict(source_url)["dbname"])
    name = f"{source[: _LONGEST_NAME - len(SUFFIX)]}{SUFFIX}"
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
    make = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(source))
    arguments = connection_arguments(settings, "ariane-eval")
    with translated():
        async with await AsyncConnection.connect(admin_url, **arguments) as admin:
            taken = await admin.execute("SELECT pg_try_advisory_lock(%s)", (lock_key(name),))
            if not (await taken.fetchone() or (False,))[0]:
                raise Transient("another safety run of this dataset is under way: try again when it has ended")
            await admin.execute(drop)
            try:
                await admin.execute(make)
            except errors.ObjectInUse as exc:
                raise Transient(
                    "this dataset's index is in use: try again when the other evaluation has ended"
                ) from exc
            try:
                yield make_conninfo(source_url, dbname=name)
            finally:
                await admin.execute(drop)
