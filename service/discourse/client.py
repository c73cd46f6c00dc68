"""The forum over REST: read as an anonymous reader, who sees what is public, and written to as the bot."""

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar
from urllib.parse import quote

from service.answer.ports import CreatedReply
from service.discourse.budget import Budget
from service.discourse.calls import UNSEEN, ForumCalls
from service.discourse.categories import read_categories
from service.discourse.members import groups_from_json
from service.discourse.names import folded_name
from service.discourse.own_reply import created, own_reply_to
from service.discourse.shapes import fields_of
from service.discourse.thread import asked_post, asked_topic, newest_after, whole_thread
from service.domain import Category, Post, PostId, Thread, Topic, TopicId
from service.errors import Rejected, Transient, Unsure
from service.remote import Params, Refused

P = ParamSpec("P")
T = TypeVar("T")


def _reading(read: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """A read that is tried again where the forum's answer can't be used: whoever asked has done nothing wrong."""

    @wraps(read)
    async def patient(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await read(*args, **kwargs)
        except Rejected as exc:
            raise Transient(f"the forum's answer can't be used: {exc}") from exc

    return patient


class DiscourseClient:
    """A Discourse forum; the ports service.answer.ports.Forum and service.ingest.ports.ForumReader say what it does."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str,
        bot_username: str,
        timeout_seconds: float,
        attempts: int,
        budget: Budget | None = None,
    ) -> None:
        self._bot = folded_name(bot_username)
        self._calls = ForumCalls(
            base_url,
            api_key=api_key,
            bot_username=bot_username,
            timeout_seconds=timeout_seconds,
            attempts=attempts,
            budget=budget,
        )

    async def __aenter__(self) -> Self:
        await self._calls.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._calls.__aexit__(kind, exc, trace)

    @property
    def up(self) -> bool | None:
        """Whether the forum answered when it was last called; None before it was."""
        return self._calls.up

    @_reading
    async def public_post(self, post_id: PostId) -> Post | None:
        """The post as the public sees it; without category and archetype, which its topic has."""
        value = await self._calls.public(f"posts/{post_id}.json")
        return None if value is None else asked_post(value, post_id)

    @_reading
    async def own_post(self, post_id: PostId) -> Post | None:
        """The post as the bot's own account sees it."""
        value = await self._own(f"posts/{post_id}.json")
        return None if value is None else asked_post(value, post_id)

    @_reading
    async def own_text(self, post_id: PostId) -> str | None:
        """The post as it was written, as the bot's own account sees it; None too of one that we took back.

        Its author's deletion leaves a stub for a day (docs/discourse, section 3).
        """
        value = await self._own(f"posts/{post_id}.json")
        if value is None or (fields := fields_of(value, "post")).get("user_deleted") or fields.get("deleted_at"):
            return None
        raw = fields.get("raw")
        if not isinstance(raw, str):
            raise Rejected("post.raw: expected a text")
        return raw

    @_reading
    async def own_topic(self, topic_id: TopicId) -> Topic | None:
        value = await self._own(f"t/{topic_id}.json")
        return None if value is None else asked_topic(value, topic_id)

    @_reading
    async def public_topic(self, topic_id: TopicId) -> Topic | None:
        value = await self._calls.public(f"t/{topic_id}.json")
        return None if value is None else asked_topic(value, topic_id)

    @_reading
    async def public_thread(self, topic_id: TopicId) -> Thread | None:
        """The topic and every post of it that the public sees; one that can't be read is logged and left out."""
        return await whole_thread(topic_id, self._calls.public, self._calls.patiently)

    @_reading
    async def public_categories(self) -> list[Category]:
        """The categories that the public sees, none where it sees nothing: what is missing is private."""
        return await read_categories(self._calls.public) or []

    @_reading
    async def our_reply_to(self, post_id: PostId) -> CreatedReply | None:
        return await own_reply_to(post_id, self._calls, self._bot)

    @_reading
    async def public_posts_after(self, post: Post) -> list[Post]:
        return await newest_after(post, self._calls.public)

    @_reading
    async def own_posts_after(self, post: Post) -> list[Post]:
        return await newest_after(post, self._own)

    @_reading
    async def is_staged(self, username: str) -> bool:
        """Whether the account was made for someone who only wrote an e-mail.

        Discourse hides inactive accounts, which staged ones are, from all but its staff: unknown counts as staged.
        """
        try:
            value = await self._calls.as_bot("GET", f"u/{quote(username, safe='')}.json")
        except Refused as exc:
            if exc.status == 404:
                return True
            raise
        return fields_of(fields_of(value, "user").get("user"), "user.user").get("staged") is True

    @_reading
    async def groups_of(self, username: str) -> frozenset[str]:
        """The names of a member's groups; none of an account that the forum doesn't show."""
        try:
            return groups_from_json(await self._calls.as_bot("GET", f"u/{quote(username, safe='')}.json"))
        except Refused as exc:
            if exc.status == 404:
                return frozenset()
            raise

    async def reply(self, *, topic_id: TopicId, post_number: int, raw: str) -> CreatedReply:
        body = {"raw": raw, "topic_id": topic_id, "reply_to_post_number": post_number}
        value = await self._calls.as_bot("POST", "posts.json", body=body)
        try:
            fields = fields_of(value, "reply")
            if fields.get("action") == "enqueued":
                return CreatedReply(None, None, enqueued=True)
            return created(fields_of(fields.get("post", fields), "reply"))
        except Rejected as exc:
            raise Unsure(f"forum: the answer to a reply can't be read: {exc}") from exc

    async def _own(self, path: str, params: Params | None = None) -> object | None:
        try:
            return await self._calls.as_bot("GET", path, params)
        except Refused as exc:
            if exc.status in UNSEEN:
                return None
            raise

    async def edit_own(self, post_id: PostId, raw: str, *, why: str) -> None:
        """Let our post say this; the forum keeps what it said before, and the reason."""
        await self._calls.as_bot("PUT", f"posts/{post_id}.json", body={"post": {"raw": raw, "edit_reason": why}})

    async def delete_own(self, post_id: PostId) -> None:
        await self._calls.as_bot("DELETE", f"posts/{post_id}.json")
