"""The forum over REST: read as an anonymous reader, who sees what is public, and written to as the bot."""

from collections.abc import Awaitable, Callable, Coroutine, Iterator
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
from service.discourse.shapes import (
    Fields,
    fields_of,
    id_of,
    post_from_json,
    readable_posts_of,
    stream_of,
    topic_from_json,
)
from service.domain import Category, Post, PostId, Thread, Topic, TopicId
from service.errors import Rejected, Transient, Unsure
from service.remote import Refused
from service.telemetry import log

CHUNK = 20
"""Posts that Discourse gives by `/t/ID/posts.json`, and by one page of replies (docs/discourse, section 5)."""
MAX_REPLY_PAGES = 10
SCANNED_AFTER = 2 * CHUNK
"""Posts looked through for our reply after the question, and CHUNK more at the topic's end."""

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
        return None if value is None else post_from_json(value)

    @_reading
    async def own_post(self, post_id: PostId) -> Post | None:
        """The post as the bot's own account sees it."""
        value = await self._own(f"posts/{post_id}.json")
        return None if value is None else post_from_json(value)

    @_reading
    async def own_topic(self, topic_id: TopicId) -> Topic | None:
        value = await self._own(f"t/{topic_id}.json")
        return None if value is None else topic_from_json(value)

    @_reading
    async def public_topic(self, topic_id: TopicId) -> Topic | None:
        value = await self._calls.public(f"t/{topic_id}.json")
        return None if value is None else topic_from_json(value)

    @_reading
    async def public_thread(self, topic_id: TopicId) -> Thread | None:
        """The topic and every post of it that the public sees; one that can't be read is logged and left out."""
        value = await self._calls.public(f"t/{topic_id}.json")
        if value is None:
            return None
        topic, stream = topic_from_json(value), stream_of(value)
        posts = _readable(value, topic)
        for chunk in _chunks(sorted(set(stream) - {post.id for post in posts})):
            value = await self._calls.patiently(f"t/{topic_id}/posts.json", {"post_ids[]": chunk})
            if value is None:  # gone since the first call
                return None
            posts += _readable(value, topic)
        return Thread(topic, tuple(posts), frozenset(stream).union(post.id for post in posts))

    @_reading
    async def public_categories(self) -> list[Category]:
        """The categories that the public sees, none where it sees nothing: what is missing is private."""
        return await read_categories(self._calls.public) or []

    @_reading
    async def our_reply_to(self, post_id: PostId) -> CreatedReply | None:
        """Our reply to this post: among its replies, else among the posts after it; None too when the post is gone."""
        try:
            asked = fields_of(await self._calls.as_bot("GET", f"posts/{post_id}.json"), "post")
        except Refused as exc:
            if exc.status in UNSEEN:
                return None
            raise
        topic_id, number = TopicId(id_of(asked, "topic_id", "post")), id_of(asked, "post_number", "post")
        try:
            return await self._among_replies(post_id, number) or await self._among_later_posts(
                post_id, topic_id, number
            )
        except Refused as exc:  # not "there is none": posting now might double it
            raise Transient(f"the forum gave the question, not what answers it: {exc}") from exc

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
            return _created(fields_of(fields.get("post", fields), "reply"))
        except Rejected as exc:
            raise Unsure(f"forum: the answer to a reply can't be read: {exc}") from exc

    async def _own(self, path: str) -> object | None:
        try:
            return await self._calls.as_bot("GET", path)
        except Refused as exc:
            if exc.status in UNSEEN:
                return None
            raise

    async def edit_own(self, post_id: PostId, raw: str, *, why: str) -> None:
        """Let our post say this; the forum keeps what it said before, and the reason."""
        await self._calls.as_bot("PUT", f"posts/{post_id}.json", body={"post": {"raw": raw, "edit_reason": why}})

    async def delete_own(self, post_id: PostId) -> None:
        await self._calls.as_bot("DELETE", f"posts/{post_id}.json")

    async def _among_replies(self, post_id: PostId, number: int) -> CreatedReply | None:
        """Our reply among those that Discourse counts as replies to the post; it counts quotes of it too."""
        after = 1
        for _ in range(MAX_REPLY_PAGES):
            page = _posts(await self._calls.as_bot("GET", f"posts/{post_id}/replies.json", {"after": after}))
            if found := self._ours(page, number):
                return found
            if len(page) < CHUNK:
                break
            after = max(id_of(post, "post_number", "reply") for post in page)
        return None

    async def _among_later_posts(self, post_id: PostId, topic_id: TopicId, number: int) -> CreatedReply | None:
        """Our reply among the topic's posts that are newer than the question, wherever it lists them."""
        later = [other for other in stream_of(await self._calls.as_bot("GET", f"t/{topic_id}.json")) if other > post_id]
        for chunk in _chunks(list(dict.fromkeys(later[:SCANNED_AFTER] + later[-CHUNK:]))):
            answer = fields_of(
                await self._calls.as_bot("GET", f"t/{topic_id}/posts.json", {"post_ids[]": chunk}), "topic"
            )
            stream = fields_of(answer.get("post_stream"), "topic.post_stream")
            if found := self._ours(_posts(stream.get("posts")), number):
                return found
        return None

    def _ours(self, posts: list[Fields], number: int) -> CreatedReply | None:
        for post in posts:
            # The published contract gives the number as text.
            to_it = str(post.get("reply_to_post_number")) == str(number)
            if to_it and folded_name(str(post.get("username"))) == self._bot:
                return _created(post)
        return None


def _readable(value: object, topic: Topic) -> list[Post]:
    posts, faults = readable_posts_of(value, topic)
    for fault in faults:
        log.warning("post_unreadable", topic_id=topic.id, fault=str(fault))
    return posts


def _posts(value: object) -> list[Fields]:
    if not isinstance(value, list):
        raise Rejected("forum: expected a list of posts")
    return [fields_of(entry, "post") for entry in value]


def _created(fields: Fields) -> CreatedReply:
    return CreatedReply(PostId(id_of(fields, "id", "reply")), id_of(fields, "post_number", "reply"))


def _chunks(post_ids: list[PostId]) -> Iterator[list[int]]:
    for start in range(0, len(post_ids), CHUNK):
        yield [int(post_id) for post_id in post_ids[start : start + CHUNK]]
