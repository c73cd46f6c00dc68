"""What is examined: the settings, and of the database and the models what could be opened."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from service.errors import ArianeError
from service.inference.proved import Embedder
from service.settings import Settings
from service.store.flags import FlagStore
from service.store.pool import Pool, open_pool
from service.wiring.database import open_database
from service.wiring.embedders import Embedders
from service.wiring.models import UnprovedModels, unproved_models

WAIT_SECONDS = 4
"""Longest wait for one answer of another server: less than a check may take."""


class NotExamined(ArianeError):
    """A check needs what another check already found missing."""


@dataclass(frozen=True, slots=True)
class Patient:
    """One installation; what couldn't be opened is there as its error."""

    settings: Settings
    database: Pool | ArianeError
    models: UnprovedModels | ArianeError
    now: Callable[[], datetime]

    @property
    def pool(self) -> Pool:
        """The database, for checks that only make sense with it; raises NotExamined."""
        if isinstance(self.database, ArianeError):
            raise NotExamined("it needs the database")
        return self.database

    @property
    def opened_models(self) -> UnprovedModels:
        """Raises what kept them from being made."""
        if isinstance(self.models, ArianeError):
            raise self.models
        return self.models

    async def answering(self) -> Embedder:
        """The embedder whose vectors answer now; raises what keeps that from being told."""
        made = self.opened_models
        configured = [one for one in (made.embedder, made.other) if one is not None]
        return await Embedders(configured, FlagStore(self.pool)).answering()


def utc_now() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def open_patient(settings: Settings, *, now: Callable[[], datetime] = utc_now) -> AsyncIterator[Patient]:
    """The installation, with its database and models if they open; a schema of another version is opened too."""
    async with AsyncExitStack() as stack:
        models: UnprovedModels | ArianeError
        try:
            models = unproved_models(settings.models, stack)
        except ArianeError as exc:
            models = exc
        database: Pool | ArianeError
        try:
            database = await stack.enter_async_context(_database(settings))
        except ArianeError as exc:
            database = exc
        yield Patient(settings, database, models, now)


@asynccontextmanager
async def _database(settings: Settings) -> AsyncIterator[Pool]:
    url = settings.database.url.get_secret_value()
    if not url:  # the embedded one is started and brought up to date, as by every command
        async with open_database(settings, "doctor") as pool:
            yield pool
        return
    wait = min(settings.database.connect_timeout_seconds, WAIT_SECONDS)
    brief = {"connect_timeout_seconds": wait, "statement_timeout_seconds": float(WAIT_SECONDS)}
    async with open_pool(url, settings.database.model_copy(update=brief), application_name="ariane-doctor") as pool:
        yield pool
