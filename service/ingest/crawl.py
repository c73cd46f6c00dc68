"""Fill the index from the forum itself, page by page, while the forum and the live service go on."""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from service.discourse.listings import ListedTopic, PostPage
from service.domain import Category, CategoryId, Post, PostId, Topic, TopicId
from service.errors import Rejected, Transient
from service.ingest.backfill import Backfill, embed_rest
from service.ingest.crawl_ports import CrawlCursor, Crawls, Stage
from service.ingest.crawled_forum import CrawledForum
from service.ingest.put_read import put_posts_read, put_topics_read
from service.ingest.share import embed_meanwhile
from service.telemetry import log

PAGE_IDS = 50
"""Ids that a page of posts covers at least (docs/discourse, section 5)."""
CHUNK = 20
"""Posts of a topic that the forum gives at a time."""
PAGES_A_BATCH = 10
"""Pages read for one writing: a killed crawl reads at most so many again."""
MAX_FAILURES = 3
"""Topics, or pages of them, in a row that can't be read before it is the forum that is down."""
UNTOLD = 2**31 - 1
"""Posts expected of a topic whose number of posts isn't known: more than any has."""
MAX_WALKS = 10
"""Walks through what is new; what comes after the last one is for the live service."""


T = TypeVar("T")


@dataclass(slots=True)
class Crawled:
    """What a crawl left out, and how often."""

    unreadable: int = 0
    unseen_topics: int = 0
    unread_topics: int = 0
    skipped_pages: int = 0


class ForumCrawl:
    """One crawl of one forum into one index; `source` names the forum and the terms on which it is read."""

    def __init__(self, source: str, forum: CrawledForum, crawls: Crawls, at: Backfill) -> None:
        self._source = source
        self._forum = forum
        self._crawls = crawls
        self.at = at
        self._reread: set[TopicId] = set()
        self._unknown: set[CategoryId] = set()
        self._failures = 0
        self.left_out = Crawled()

    async def run(self) -> bool:
        """Read the forum and embed what is new, or only embed where another process reads it: False.

        Raises as `read`, and as the embedder once all is read.
        """
        at = self.at
        async with self._crawls.alone(self._source) as alone:
            if alone:
                await embed_meanwhile(self.read(), at.corpus, at.embedder, at.claims)
        await embed_rest(at)
        await at.backfills.settle()
        return alone

    async def read(self) -> None:
        """Read what is left of the crawl, or all of a new one; an interrupted one goes on where it stopped.

        Raises Transient, to be run again, or Misconfigured where the forum shows nothing.
        """
        await self._read_categories()
        cursor = await self._crawls.cursor(self._source)
        if cursor is None or cursor.stage is Stage.DONE:
            newest = await self._forum.newest_post() or PostId(0)
            cursor = await self._keep(CrawlCursor(Stage.TOPICS, 0, newest, newest, PostId(0)))
        if cursor.stage is Stage.TOPICS:
            cursor = await self._read_topics(cursor)
        for _ in range(MAX_WALKS):
            if cursor.stage is Stage.POSTS:
                cursor = await self._walk(cursor)
            await self._fill_gaps()
            newest = await self._forum.newest_post() or PostId(0)
            if newest <= cursor.newest:
                break
            walk = replace(cursor, stage=Stage.POSTS, newest=newest, before=newest, floor=cursor.newest)
            cursor = await self._keep(walk)
        await self._read_categories()
        await self._keep(replace(cursor, stage=Stage.DONE))

    async def _keep(self, cursor: CrawlCursor) -> CrawlCursor:
        await self._crawls.keep_cursor(self._source, cursor)
        return cursor

    async def _read_categories(self) -> None:
        read_at = await self.at.corpus.now()
        await self.at.corpus.put_categories(await self._forum.categories(), read_at=read_at)
        await self.at.corpus.withdraw_private()

    async def _read_topics(self, cursor: CrawlCursor) -> CrawlCursor:
        """Every listed topic, newest first: those that come meanwhile push others to a later page, none is missed."""
        listed: list[ListedTopic] = []
        number, done, more = cursor.topic_page, 0, True
        read_at = await self.at.corpus.now()
        while more:
            page = await self._given(self._forum.topic_page(number))
            number += 1
            if page is None:  # its topics are found by their posts
                self.left_out.skipped_pages += 1
                continue
            self._count(page.faults)
            listed += page.topics
            # A page of nothing readable is not the end, an empty one is whatever it says.
            more = page.more and bool(page.topics or page.faults)
            if not more or number % PAGES_A_BATCH == 0:
                await self._put_topics([one.topic for one in listed], read_at=read_at)
                await self._crawls.expect(self._source, {one.topic.id: one.last_number for one in listed})
                cursor = await self._keep(replace(cursor, topic_page=number))
                done += len(listed)
                self.at.progress("topics", done, done + len(listed) * more)
                listed, read_at = [], await self.at.corpus.now()
        return await self._keep(replace(cursor, stage=Stage.POSTS))

    async def _walk(self, cursor: CrawlCursor) -> CrawlCursor:
        """All posts from the newest down."""
        self.at.progress("post ids", cursor.newest - cursor.before, cursor.newest - cursor.floor)
        read_at = await self.at.corpus.now()
        posts: list[Post] = []
        pages = 0
        async for page, before in self._pages_down(cursor.before, cursor.floor):
            posts += page.posts
            pages += 1
            if pages % PAGES_A_BATCH == 0 or before == cursor.floor:
                await self._put_posts(posts, read_at=read_at)
                posts, read_at = [], await self.at.corpus.now()
                cursor = await self._keep(replace(cursor, before=before))
                self.at.progress("post ids", cursor.newest - before, cursor.newest - cursor.floor)
        await self._put_posts(posts, read_at=read_at)
        return await self._keep(replace(cursor, stage=Stage.GAPS, before=cursor.floor))

    async def _pages_down(self, before: PostId, floor: PostId) -> AsyncIterator[tuple[PostPage, PostId]]:
        """The pages from `before` down to above `floor`, each with the id at which the next begins.

        A page that the forum can't give is left out, two in a row are not: then it is the forum that is down.
        """
        failed = False
        while before > floor:
            try:
                page = await self._forum.post_page(before)
            except Transient:
                if failed:
                    raise
                failed = True
                self.left_out.skipped_pages += 1
                log.warning("page_skipped", before=before)
                before = PostId(before - PAGE_IDS)
                continue
            failed = False
            self._count(page.faults)
            lowest = before if page.lowest is None else page.lowest
            before = PostId(max(min(before - PAGE_IDS, lowest - 1), floor))
            yield page, before

    async def _fill_gaps(self) -> None:
        """Read the topics that lack posts: the hidden, those of other types, and what was skipped."""
        topics = await self._crawls.incomplete(self._source)
        for done, topic_id in enumerate(topics, 1):
            if await self._given(self._read_topic(topic_id, whole=True)):
                await self._crawls.complete(self._source, topic_id)
            else:
                self.left_out.unread_topics += 1
            self.at.progress("incomplete topics", done, len(topics))

    async def _given(self, read: Awaitable[T]) -> T | None:
        """What it gives, None where the forum can't: a single topic would else end every crawl at its place."""
        try:
            given = await read
        except Transient as exc:
            self._failures += 1
            if self._failures >= MAX_FAILURES or exc.retry_after_seconds is not None:
                raise
            log.warning("topics_left_out", reason=str(exc))
            return None
        self._failures = 0
        return given

    async def _read_topic(self, topic_id: TopicId, *, whole: bool) -> bool:
        """Put a topic as it is now, with its first posts, or with all that are unknown; True when that is done."""
        read_at = await self.at.corpus.now()
        read = await self._forum.topic(topic_id)
        if read is None:
            self.left_out.unseen_topics += 1
            await self.at.corpus.remove_topic(topic_id, read_at=read_at)
            return True
        self._count(read.faults)
        await self._put_topics([read.topic], read_at=read_at)
        await self._crawls.expect(self._source, {topic_id: len(read.stream)})
        posts = list(read.posts)
        given = {post.id for post in posts}
        missing = [one for one in await self._crawls.unknown_posts(read.stream) if one not in given] if whole else []
        for start in range(0, len(missing), CHUNK):
            more, faults = await self._forum.posts_of(read.topic, missing[start : start + CHUNK])
            self._count(faults)
            posts += more
        await put_posts_read(posts, self._crawls, self.at, read_at=read_at)
        return True

    async def _put_topics(self, topics: Sequence[Topic], *, read_at: datetime) -> None:
        named = {topic.category_id for topic in topics if topic.category_id is not None}
        new = named - (await self.at.corpus.categories()).keys() - self._unknown
        if new:  # made since they were read; looked for once, after that it is private
            self._unknown |= new
            await self._read_categories()
        await put_topics_read(topics, self.at, read_at=read_at)

    async def _put_posts(self, posts: Sequence[Post], *, read_at: datetime) -> None:
        """Put a page of posts; a topic that isn't stored as they say is read first, once a crawl."""
        if not posts:
            return
        stored = await self._crawls.topics_stored({post.topic_id for post in posts})
        categories = await self.at.corpus.categories()
        for post in posts:
            if post.topic_id not in self._reread and _disagree(post, stored.get(post.topic_id), categories):
                self._reread.add(post.topic_id)
                if not await self._given(self._read_topic(post.topic_id, whole=False)):
                    await self._crawls.expect(
                        self._source, {post.topic_id: UNTOLD}
                    )  # once more with those that lack posts
        await put_posts_read(posts, self._crawls, self.at, read_at=read_at)

    def _count(self, faults: Sequence[Rejected]) -> None:
        for fault in faults:
            log.warning("entry_unreadable", fault=str(fault))
        self.left_out.unreadable += len(faults)


def _disagree(post: Post, topic: Topic | None, categories: Mapping[CategoryId, Category]) -> bool:
    """Whether the stored topic is not the one that a post of it tells of: retitled, moved, come back, or unknown."""
    if topic is None or (post.category_id is not None and post.category_id != topic.category_id):
        return True
    category = categories.get(topic.category_id or CategoryId(0))
    if category is None or category.read_restricted:  # its words are not stored
        return False
    return post.topic_title not in ("", topic.title)
