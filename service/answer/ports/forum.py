"""The forum as answering reads it and replies to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from service.domain import Post, PostId, Topic, TopicId


@dataclass(frozen=True, slots=True)
class CreatedReply:
    """What the forum said to our post: its id and number, or neither when it waits for approval."""

    post_id: PostId | None
    post_number: int | None
    enqueued: bool = False


class Forum(Protocol):
    """The forum's REST API as answering uses it.

    Every call raises Transient (slow, 429, 5xx, gone), Rejected with the forum's status (403, 404, 409, 422) or
    Misconfigured (the key is refused).
    """

    async def public_post(self, post_id: PostId) -> Post | None:
        """The post as an anonymous reader sees it now, or None when he doesn't."""
        ...

    async def public_topic(self, topic_id: TopicId) -> Topic | None:
        """The topic as an anonymous reader sees it now, or None when he doesn't."""
        ...

    async def own_post(self, post_id: PostId) -> Post | None:
        """The post as the bot's own account sees it now, or None when it doesn't."""
        ...

    async def own_topic(self, topic_id: TopicId) -> Topic | None:
        """The topic as the bot's own account sees it now, or None when it doesn't."""
        ...

    async def public_posts_after(self, post: Post) -> Sequence[Post]:
        """The newest posts of its topic that came after this one, as an anonymous reader sees them: a page at most."""
        ...

    async def own_posts_after(self, post: Post) -> Sequence[Post]:
        """The same, as the bot's own account sees them."""
        ...

    async def our_reply_to(self, post_id: PostId) -> CreatedReply | None:
        """Our earlier reply to this post, if the forum has one."""
        ...

    async def is_staged(self, username: str) -> bool: ...

    async def groups_of(self, username: str) -> frozenset[str]:
        """The names of a member's groups, as far as the forum shows them."""
        ...

    async def reply(self, *, topic_id: TopicId, post_number: int, raw: str) -> CreatedReply:
        """Post `raw` as a reply to that post. Raises Unsure when the forum may have stored it."""
        ...
