"""Reads a whole forum page by page, within a budget: it waits where the forum asks for it, and tries again."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from service.discourse.budget import Budget
from service.discourse.calls import UNSEEN, ForumCalls
from service.discourse.categories import read_categories
from service.discourse.listings import (
    PostPage,
    TopicPage,
    WholeTopic,
    latest_active,
    post_page_from_json,
    topic_page_from_json,
)
from service.discourse.shapes import Fields, fields_of, readable_posts_of, stream_of
from service.discourse.thread import asked_topic
from service.domain import Category, Post, PostId, Topic, TopicId
from service.errors import Misconfigured, Rejected, Transient
from service.remote import Params, Refused
from service.telemetry import log

MAX_TRIES = 8
FIRST_WAIT_SECONDS = 5.0
MAX_WAIT_SECONDS = 60.0
"""Longest wait before another try where the forum names none; it doubles from the first."""
MAX_WISH_SECONDS = 900.0
"""Where the forum asks for more than this, the crawl ends, to be resumed later."""

T = TypeVar("T")


class ForumCrawler:
    """Matches `service.ingest.crawled_forum.CrawledForum`; `as_bot` reads with the bot's key, else as anyone may.

    Its calls must keep to the same budget and make one attempt each, else their retries would go around it.
    """

    def __init__(self, calls: ForumCalls, budget: Budget, *, as_bot: bool) -> None:
        self._calls = calls
        self._budget = budget
        self._as_bot = as_bot
        self.requests = 0

    async def categories(self) -> list[Category]:
        """The categories that this reader sees; raises Misconfigured where he sees nothing of the forum."""
        found = await self._patiently(lambda: read_categories(self._get))
        if found is None:
            who = "the bot's account" if self._as_bot else "anonymous readers: a site that wants a login needs --as-bot"
            raise Misconfigured(f"the forum shows nothing to {who}")
        return found

    async def topic_page(self, page: int) -> TopicPage:
        """One page of all listed topics, newest first."""

        async def read() -> TopicPage:
            return topic_page_from_json(await self._list("latest.json", {"order": "created", "page": page}))

        return await self._patiently(read)

    async def newest_post(self) -> PostId | None:
        """The highest id of a post that can be seen, or of one that comes close; None on an empty forum."""
        page = await self.post_page(None)
        if page.highest is not None:
            return page.highest

        # The newest 50 are all private: the walk begins at the newest post of the topic that was active last.
        async def read() -> TopicId | None:
            return latest_active(await self._list("latest.json", None))

        active = await self._patiently(read)
        whole = None if active is None else await self.topic(active)
        return max(whole.stream, default=None) if whole else None

    async def post_page(self, before: PostId | None) -> PostPage:
        """The posts from the id `before` downwards, 50 ids at least, those that can't be seen left out."""
        params = None if before is None else {"before": int(before)}

        async def read() -> PostPage:
            return post_page_from_json(await self._list("posts.json", params))

        return await self._patiently(read)

    async def topic(self, topic_id: TopicId) -> WholeTopic | None:
        """The topic with its first posts; None where it can't be seen."""

        async def read() -> WholeTopic | None:
            value = await self._get(f"t/{topic_id}.json", None)
            if value is None:
                return None
            topic = asked_topic(value, topic_id)
            posts, faults = readable_posts_of(value, topic)
            return WholeTopic(topic, posts, faults, stream_of(value))

        return await self._patiently(read)

    async def posts_of(self, topic: Topic, post_ids: Sequence[PostId]) -> tuple[list[Post], list[Rejected]]:
        """Some 20 of a topic's posts at most; those that can't be seen any more are missing."""

        async def read() -> tuple[list[Post], list[Rejected]]:
            ids = [int(post_id) for post_id in post_ids]
            value = await self._get(f"t/{topic.id}/posts.json", {"post_ids[]": ids})
            return ([], []) if value is None else readable_posts_of(value, topic)

        return await self._patiently(read)

    async def _list(self, path: str, params: Params | None) -> Fields:
        value = await self._get(path, params)
        if value is None:
            raise Transient(f"the forum doesn't show {path} any more")
        return value

    async def _get(self, path: str, params: Params | None) -> Fields | None:
        self.requests += 1
        if not self._as_bot:
            return await self._calls.public(path, params)
        try:
            return fields_of(await self._calls.as_bot("GET", path, params), "forum")
        except Refused as exc:
            if exc.status in UNSEEN:
                return None
            raise

    async def _patiently(self, read: Callable[[], Awaitable[T]]) -> T:
        """What a read gives, tried again where the forum is busy or slow, or its answer can't be used."""
        tried = 0
        while True:
            try:
                return await read()
            except (Transient, Rejected) as exc:
                tried += 1
                wish = exc.retry_after_seconds if isinstance(exc, Transient) else None
                if tried == MAX_TRIES or (wish is not None and wish > MAX_WISH_SECONDS):
                    raise Transient(f"the crawl can't go on now: {exc}", retry_after_seconds=wish) from exc
                wait = min(FIRST_WAIT_SECONDS * 2 ** (tried - 1), MAX_WAIT_SECONDS) if wish is None else wish
                log.warning("crawl_waits", seconds=wait, reason=str(exc))
                self._budget.postpone(wait)
