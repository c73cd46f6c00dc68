"""The forum read as the reconciler does: slowly, page by page, and what it has told the bot of."""

from collections.abc import Callable
from typing import TypeVar

from service.discourse.client import DiscourseClient
from service.discourse.listings import PostPage, TopicPage, post_page_from_json, topic_page_from_json
from service.discourse.recent_shapes import Notice, notice_from_json
from service.discourse.shapes import fields_of
from service.domain import PostId
from service.errors import Rejected, Transient
from service.remote import Params

T = TypeVar("T")


class RecentReader(DiscourseClient):
    """Matches `service.ingest.mend.SlowForum`; the client's own calls keep to its budget too."""

    async def post_page(self, before: PostId | None) -> PostPage:
        """The public posts from the id `before` downwards: at least those of 50 ids (docs/discourse, section 5)."""
        return await self._page(post_page_from_json, "posts.json", None if before is None else {"before": before})

    async def active_topics(self, page: int) -> TopicPage:
        """One page of the public topics, the one that was active last first; pinned ones come before all."""
        return await self._page(topic_page_from_json, "latest.json", {"page": page})

    async def created_topics(self, page: int) -> TopicPage:
        """One page of the public topics, newest first: a topic keeps its place whatever is posted in it."""
        return await self._page(topic_page_from_json, "latest.json", {"order": "created", "page": page})

    async def notices(self) -> list[Notice]:
        """The latest mentions of the bot and replies to it, newest first; none without a key.

        A notification of another kind, or one that can't be read, is left out.
        """
        if not self._calls.has_key:
            return []
        try:
            fields = fields_of(await self._calls.as_bot("GET", "notifications.json"), "notifications")
            rows = fields.get("notifications")
            if not isinstance(rows, list):
                raise Rejected("notifications: expected a list")
        except Rejected as exc:
            raise Transient(f"the forum's notifications can't be used: {exc}") from exc
        found = [notice for row in rows if (notice := notice_from_json(row)) is not None]
        return sorted(found, key=lambda notice: notice.id, reverse=True)

    async def _page(self, read: Callable[[object], T], path: str, params: Params | None) -> T:
        value = await self._calls.patiently(path, params)
        if value is None:
            raise Transient(f"the forum shows {path} to nobody who isn't signed in")
        try:
            return read(value)
        except Rejected as exc:
            raise Transient(f"the forum's answer can't be used: {exc}") from exc
