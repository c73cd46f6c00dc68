"""What the moderators' pages work with, and how a request reaches it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, cast

from fastapi import Depends, Request

from service.moderation.place import Site, site_of
from service.settings import Settings
from service.store.pool import Pool
from service.store.sessions import SessionLife, SessionStore


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything a page may need; pages make their stores on `pool`."""

    settings: Settings
    pool: Pool
    sessions: SessionStore
    clock: Callable[[], datetime]

    @property
    def site(self) -> Site:
        return site_of(self.settings.moderation)

    @property
    def secret(self) -> bytes:
        """The secret that we share with the forum; empty when there is none."""
        return self.settings.moderation.connect_secret.get_secret_value().encode()

    @property
    def life(self) -> SessionLife:
        chosen = self.settings.moderation
        return SessionLife(timedelta(minutes=chosen.idle_minutes), timedelta(hours=chosen.absolute_hours))


async def desk(request: Request) -> Desk:
    return cast("Desk", request.app.state.desk)


Here = Annotated[Desk, Depends(desk)]
