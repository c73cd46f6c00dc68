"""Checks of the forum: what the public sees of it, what the key may do, who the bot is there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from urllib.parse import quote

from service.discourse.calls import ForumCalls
from service.discourse.client import DiscourseClient
from service.discourse.shapes import fields_of
from service.doctor.check import Finding, fail, ok, warn
from service.doctor.patient import WAIT_SECONDS, NotExamined, Patient
from service.errors import Rejected, Transient
from service.remote import Refused
from service.settings import ForumSettings

KEY_MEND = (
    "Make a key for the bot's account alone (Admin, API) with topics:write, posts:edit and global:read, and give it in "
    "ARIANE_FORUM__API_KEY."
)


async def forum(patient: Patient) -> Finding:
    """An anonymous reader is answered, and sees categories: only what he sees is indexed."""
    settings = patient.settings.forum
    async with DiscourseClient(
        settings.base_url,
        api_key="",
        bot_username=settings.bot_username,
        timeout_seconds=float(WAIT_SECONDS),
        attempts=1,
    ) as client:
        categories = await client.public_categories()
    if not categories:
        return fail(
            f"{settings.base_url} shows an anonymous reader no category",
            "Ariane knows only what the public reads: open a category to everyone, and turn login_required off.",
        )
    return ok(f"{settings.base_url} shows the public {len(categories)} categories")


async def key(patient: Patient) -> Finding:
    """The forum knows the key as the bot's, and lets it read."""
    settings = patient.settings.forum
    if not settings.api_key.get_secret_value():
        return fail("forum.api_key is not set: nothing can be posted", KEY_MEND)
    async with _calls(settings) as calls:
        await calls.as_bot("GET", "site.json")
    return ok(f"the key reads as {settings.bot_username}; that it may post shows at the first reply")


async def account(patient: Patient) -> Finding:
    """The bot's account exists and may post enough links."""
    name = patient.settings.forum.bot_username
    if not patient.settings.forum.api_key.get_secret_value():
        raise NotExamined("it needs the key")
    async with _calls(patient.settings.forum) as calls:
        try:
            value = await calls.as_bot("GET", f"u/{quote(name, safe='')}.json")
        except Refused as exc:
            if exc.status != 404:
                raise
            return fail(f"the forum has no account {name}", "Make it, or set forum.bot_username to the bot's account.")
    user = fields_of(fields_of(value, "user").get("user"), "user.user")
    level = user.get("trust_level")
    if not isinstance(level, int):
        raise Rejected("the forum doesn't tell the account's trust level")
    detail = f"{name} has trust level {level}"
    if level == 0 and not (user.get("moderator") or user.get("admin")):
        return warn(f"{detail}: two links a post", f"Raise {name} to trust level 1 or more in Admin, Users.")
    return ok(detail)


async def newest_post_at(settings: ForumSettings) -> datetime | None:
    """When the newest post that the public sees was written; None when it sees none. Raises NotExamined."""
    async with _calls(settings) as calls:
        try:
            value = await calls.public("posts.json")
        except Transient as exc:
            raise NotExamined("it needs the forum") from exc
    posts = value.get("latest_posts") if value else None
    try:
        return max(datetime.fromisoformat(post["created_at"]) for post in posts) if posts else None
    except (TypeError, KeyError, ValueError) as exc:
        raise Rejected(f"the forum's latest posts can't be read: {exc}") from exc


@asynccontextmanager
async def _calls(settings: ForumSettings) -> AsyncIterator[ForumCalls]:
    async with ForumCalls(
        settings.base_url,
        api_key=settings.api_key.get_secret_value(),
        bot_username=settings.bot_username,
        timeout_seconds=float(WAIT_SECONDS),
        attempts=1,
    ) as calls:
        yield calls
