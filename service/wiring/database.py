"""The database by settings: one of the operator's own, or the embedded one, started and migrated when it is needed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.embedded import ensure_running
from service.settings import Settings
from service.store.migrate import check_schema, migrate
from service.store.pool import Pool, open_pool

IDLE_STOP_SECONDS = 600.0
"""How long the embedded Postgres outlives its last client: the next command then starts at once."""


async def database_url(settings: Settings) -> str:
    """The configured database, or the embedded one of `home`, started if need be."""
    if url := settings.database.url.get_secret_value():
        return url
    return await asyncio.to_thread(ensure_running, settings.home, idle_stop_seconds=IDLE_STOP_SECONDS)


@asynccontextmanager
async def open_database(settings: Settings, name: str) -> AsyncIterator[Pool]:
    """A pool on a database whose schema is ours; raises Misconfigured or Transient.

    The embedded database has nobody else to migrate it: that happens here.
    """
    url = await database_url(settings)
    own = bool(settings.database.url.get_secret_value())
    if not own:
        await migrate(url)
    async with open_pool(url, settings.database, application_name=f"ariane-{name}") as pool:
        if own:
            await check_schema(pool)
        yield pool
