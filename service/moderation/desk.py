"""What the moderators' pages work with, and how a request reaches it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, cast
from urllib.parse import urlsplit

from fastapi import Depends, Request

from service.settings import ModerationSettings, Settings
from service.store.pool import Pool
from service.store.sessions import SessionLife, SessionStore

MOUNT = "/moderation"


@dataclass(frozen=True, slots=True)
class Site:
    """Where the pages are, as browsers see it: `origin` is scheme, host and port, `root` the path they begin with."""

    origin: str
    root: str

    @property
    def secure(self) -> bool:
        return self.origin.startswith("https:")

    @property
    def return_url(self) -> str:
        """Where the forum sends back whoever signs in; the settings fix it, nothing of a request does."""
        return f"{self.origin}{self.root}/sign-in/return"

    def url(self, path: str) -> str:
        """The whole address of a page, for outside of the pages."""
        return f"{self.origin}{self.root}{path}"


def site_of(settings: ModerationSettings) -> Site:
    """Where `public_url` says that the pages are; a proxy in front takes its path off again."""
    url = urlsplit(settings.public_url)
    # As a browser writes it in Origin: in lower case, and without the port that goes without saying.
    host = url.netloc.lower().removesuffix(":443" if url.scheme == "https" else ":80")
    return Site(f"{url.scheme}://{host}", f"{url.path}{MOUNT}")


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
