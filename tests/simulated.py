"""A tiny forum in the simulator, for the tests: built in milliseconds, with a clock that only moves when told."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from service.simulator.app import create_simulator
from service.simulator.forum import Forum
from service.simulator.limits import NO_RATES, Limits
from service.simulator.model import Member
from service.simulator.room import Room
from service.simulator.state import load_yaml
from service.simulator.webhooks import Hook

KEY = "key-of-the-bot"
ADMIN_KEY = "key-of-everyone"
BOT_HEADERS = {"Api-Key": KEY, "Api-Username": "ariane"}
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

TINY = """
title: Tiny
members:
  - {id: 1, username: boss, name: Boss, trust_level: 4, moderator: true, admin: true}
  - {id: 2, username: alice, name: Alice, trust_level: 2}
  - {id: 3, username: Zoé, name: Zoé, trust_level: 1}
  - {id: 4, username: newbie, name: null, trust_level: 0}
  - {id: 5, username: OtherBot, name: Other Bot, trust_level: 1, bot: true}
categories:
  - {id: 1, name: Garden, slug: garden, read_restricted: false}
  - {id: 2, name: Staff, slug: staff, read_restricted: true}
topics:
  - id: 10
    title: How to bleed a radiator
    category: garden
    tags: [heating]
    lang: en
    posts:
      - {by: alice, at: 2025-01-01T08:00:00Z, raw: "How do I bleed a radiator? It gurgles."}
      - {by: Zoé, at: 2025-01-01T09:00:00Z, reply_to: 1, accepted: true, raw: "Open the valve with a key."}
      - {by: boss, at: 2025-01-01T10:00:00Z, post_type: 4, raw: "Staff only: is this a duplicate?"}
      - {by: alice, at: 2025-01-01T11:00:00Z, raw: "An insult that was flagged.", hidden: true}
      - {by: alice, at: 2025-01-01T12:00:00Z, raw: "Posted in the wrong place.", deleted: true}
      - {by: boss, at: 2025-01-01T13:00:00Z, post_type: 3, action: closed.enabled, raw: ""}
  - id: 11
    title: The staff room, where nobody else reads
    category: staff
    lang: en
    posts:
      - {by: boss, at: 2025-01-02T08:00:00Z, raw: "Secret plans for the spring."}
  - id: 12
    title: A topic that is closed to replies
    category: garden
    lang: en
    closed: true
    posts:
      - {by: Zoé, at: 2025-01-03T08:00:00Z, raw: "See /t/how-to-bleed-a-radiator/10 for the answer."}
  - id: 13
    title: A topic that no list shows
    category: garden
    lang: en
    visible: false
    posts:
      - {by: Zoé, at: 2025-01-04T08:00:00Z, raw: "Unlisted, but readable by whoever has the address."}
"""


class Clock:
    """A clock that stands still until `tick`."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def tick(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def tiny_forum(folder: Path, *, base_url: str = "http://127.0.0.1:4200", **bot: Any) -> Forum:
    """The forum above with the bot's account; `bot` overrides its fields."""
    path = folder / "forum.yml"
    path.write_text(TINY, encoding="utf-8")
    account: dict[str, Any] = {"id": 1000, "username": "ariane", "name": "Ariane", "trust_level": 1, "bot": False} | bot
    return load_yaml(path, base_url=base_url, bot=Member(**account))


def simulator(
    forum: Forum,
    clock: Clock,
    *,
    limits: Limits = NO_RATES,
    hook: Hook | None = None,
    hook_client: httpx.AsyncClient | None = None,
) -> FastAPI:
    keys: Mapping[str, str | None] = {KEY: "ariane", ADMIN_KEY: None}
    return create_simulator(forum, hook=hook, api_keys=keys, limits=limits, clock=clock, webhook_client=hook_client)


def room_of(app: FastAPI) -> Room:
    room = app.state.room
    assert isinstance(room, Room)
    return room


def browser(app: FastAPI) -> httpx.AsyncClient:
    """A client in this process, at the forum's own address (subfolder included)."""
    base = room_of(app).forum.base_url
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=base)
