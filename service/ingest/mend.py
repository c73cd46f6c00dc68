"""One page of the forum's lists compared with the index, and read again what differs (docs/adr/0015)."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol, TypeVar

from service.discourse.listings import PostPage, TopicPage
from service.discourse.recent_shapes import Notice
from service.domain import PostId, TopicId
from service.errors import Misconfigured, Transient
from service.ingest.compare import Difference, Drift, Stored, compare_posts, compare_topics
from service.ingest.index import Indexer, refresh_post, refresh_topic
from service.ingest.ports import ForumReader
from service.ingest.reconcile_ports import Mentions, ReconcileState
from service.telemetry import DRIFT_FOUND, DRIFT_MENDED, log

T = TypeVar("T")

MAX_FAILURES = 5
"""Readings in a row that fail before it is the forum that is down, and not one topic or page of it."""


class SlowForum(ForumReader, Protocol):
    """The forum within the reconciler's share of requests; raises Transient or Misconfigured."""

    async def post_page(self, before: PostId | None) -> PostPage:
        """The public posts from the id `before` downwards (None: the newest): at least those of 50 ids."""
        ...

    async def active_topics(self, page: int) -> TopicPage:
        """One page of the public topics, the one that was active last first."""
        ...

    async def created_topics(self, page: int) -> TopicPage:
        """One page of the public topics, newest first."""
        ...

    async def notices(self) -> list[Notice]:
        """The latest mentions of the bot and replies to it, newest first."""
        ...


@dataclass(frozen=True, slots=True)
class Reconciler:
    """What reconciling works with; the indexer's forum is `forum`, so that mending keeps to the same requests."""

    indexer: Indexer
    forum: SlowForum
    state: ReconcileState
    mentions: Mentions
    max_age: timedelta


@dataclass(slots=True)
class Report:
    """How many differences were found, and mended, by kind; and how many readings were left out."""

    found: Counter[Drift] = field(default_factory=Counter)
    mended: Counter[Drift] = field(default_factory=Counter)
    unread: int = 0
    _failures: int = 0

    async def tried(self, work: Awaitable[T]) -> T | None:
        """What it gives, None where the forum can't: one bad topic or page would else end every round at its place.

        Raises where work fails for the MAX_FAILURES-th time in a row, or the forum asks to be left alone.
        """
        try:
            given = await work
        except (Transient, Misconfigured) as exc:
            self._failures += 1
            asks_to_wait = isinstance(exc, Transient) and exc.retry_after_seconds is not None
            if asks_to_wait or self._failures >= MAX_FAILURES:
                raise
            self.unread += 1
            log.warning("reconcile_left_out", error=str(exc))
            return None
        self._failures = 0
        return given

    def add(self, found: Mapping[Drift, int], left: Mapping[Drift, int]) -> None:
        """Count what was found, of which `left` remains."""
        mended = Counter(found) - Counter(left)
        self.found.update(found)
        self.mended.update(mended)
        for kind, count in found.items():
            DRIFT_FOUND.labels(kind).inc(count)
            DRIFT_MENDED.labels(kind).inc(mended[kind])


async def mend_posts(at: Reconciler, report: Report, page: PostPage, above: PostId, upto: PostId) -> None:
    """Compare a page of posts, which shows all that the public sees with ids in (above, upto]."""

    async def differences() -> list[Difference]:
        posts = await at.state.posts(at.indexer.embedder.profile, above, upto, [post.id for post in page.posts])
        topics = {post.topic_id for post in page.posts} | {one.topic_id for one in posts.values() if one.topic_id}
        stored = Stored(posts, await at.state.topics(topics), await at.indexer.corpus.categories())
        expected = [post_id for post_id in posts if above < post_id <= upto]
        rules, embedder = at.indexer.rules, at.indexer.embedder
        return await asyncio.to_thread(compare_posts, page.posts, expected, stored, rules, embedder)

    await _mend(at, report, await differences(), differences)


async def mend_topics(at: Reconciler, report: Report, number: int, *, created: bool) -> bool:
    """Compare one page of topics, by creation or by activity; whether others follow, as after one left out."""
    page = await report.tried(at.forum.created_topics(number) if created else at.forum.active_topics(number))
    if page is None:
        return True
    listed = [one.topic for one in page.topics]

    async def differences() -> list[Difference]:
        topics = await at.state.topics({topic.id for topic in listed})
        stored = Stored({}, topics, await at.indexer.corpus.categories())
        return compare_topics(listed, stored, at.indexer.rules)

    await _mend(at, report, await differences(), differences)
    return page.more and bool(page.topics)


async def _mend(
    at: Reconciler, report: Report, found: Sequence[Difference], again: Callable[[], Awaitable[list[Difference]]]
) -> None:
    """Read again what differs, by the topic where that is surer or cheaper; what differs still is not mended."""
    if not found:
        return
    by_topic: dict[TopicId, list[Difference]] = defaultdict(list)
    for one in found:
        by_topic[one.topic_id].append(one)
    for topic_id, differences in by_topic.items():
        [post_id, *others] = [one.post_id for one in differences]
        # A post that is gone may have gone with its topic, or moved along with others.
        if post_id is None or others or differences[0].kind is Drift.POST_GONE:
            await report.tried(refresh_topic(topic_id, at.indexer))
        else:
            await report.tried(refresh_post(post_id, at.indexer))
    before, left = set(found), await again()
    report.add(Counter(one.kind for one in found), Counter(one.kind for one in left if one in before))
