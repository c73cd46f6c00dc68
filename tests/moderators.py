"""The moderators' pages for the tests: in this process, on a real database, signed in as whom the test chooses."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import httpx
from fastapi import FastAPI

from service.app import create_app
from service.domain import UserId
from service.moderation.access import SESSION_COOKIE, Session
from service.moderation.desk import Desk
from service.settings import Settings
from service.store.pool import Pool
from service.store.sessions import Person
from service.wiring.moderation import moderation_desk
from tests.simulated import Clock

CONNECT_SECRET = "shared-by-the-forum-and-us"
SETTINGS = Settings.model_validate(
    {
        "forum": {"base_url": "https://forum.example"},
        "webhook": {"secrets": ["a-secret-of-enough-characters"]},
        "moderation": {"public_url": "https://ariane.example", "connect_secret": CONNECT_SECRET},
    }
)
ADMIN = Person("boss", UserId(1), admin=True, moderator=False, groups=frozenset({"admins", "staff"}))
MODERATOR = Person("mia", UserId(6), admin=False, moderator=True, groups=frozenset({"moderators", "staff"}))


@dataclass(slots=True)
class Pages:
    """The pages and a browser at their root, "/moderation"; signed in once `sign_in` was called."""

    app: FastAPI
    desk: Desk
    client: httpx.AsyncClient
    clock: Clock
    session: Session | None = None

    async def sign_in(self, person: Person = MODERATOR) -> Session:
        """Be this person from now on."""
        secret = await self.desk.sessions.open(person, life=self.desk.life, now=self.clock())
        self.client.cookies.set(SESSION_COOKIE, secret)
        self.session = Session(person, secret)
        return self.session

    async def text(self, path: str, *, lang: str = "en") -> str:
        """A page's HTML, which must be there."""
        answer = await self.client.get(path, headers={"Accept-Language": lang})
        assert answer.status_code == 200, answer.text
        return answer.text

    async def post(self, path: str, fields: Mapping[str, str], **headers: str) -> httpx.Response:
        """Send a form as the page itself would: with the session's token, from our own origin."""
        csrf = {"csrf": self.session.csrf} if self.session else {}
        return await self.client.post(
            path, data={**csrf, **fields}, headers={"Origin": self.desk.site.origin, **headers}
        )

    async def post_json(self, path: str, value: object) -> httpx.Response:
        """Call the API as a script of the page would."""
        assert self.session is not None
        headers = {"Origin": self.desk.site.origin, "X-CSRF-Token": self.session.csrf}
        return await self.client.post(path, json=value, headers=headers)


@asynccontextmanager
async def open_pages(pool: Pool, settings: Settings = SETTINGS, *, clock: Clock | None = None) -> AsyncIterator[Pages]:
    """The web application of these settings, nobody signed in."""
    clock = clock or Clock(datetime.now(UTC))
    desk = replace(moderation_desk(pool, settings), clock=clock)
    app = create_app(settings, pool, desk=desk)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url=f"{desk.site.origin}{desk.site.root}"
    ) as client:
        yield Pages(app, desk, client, clock)


def visible(html: str) -> str:
    """The text of a page without its tags, its blanks single."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())
