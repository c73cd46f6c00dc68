"""Fill the index from the forum's own database, and take out what the public no longer sees there."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from service.domain import Category, Post, PostId, Topic, TopicId
from service.errors import Rejected
from service.ingest.backfill import Backfill, embed_rest
from service.ingest.copied_vectors import Copied, ForumVectors, copy_vectors
from service.ingest.crawl_ports import CrawlCursor, Crawls, Stage
from service.ingest.put_read import put_posts_read, put_topics_read
from service.telemetry import log

MAX_WALKS = 10
"""Snapshots in which what is new is read; what comes after the last one is for the live service."""
PAGE = 5000
"""Stored posts, and topics, that are looked for on the forum at a time."""


class ForumSnapshot(ForumVectors, Protocol):
    """The forum at one moment, without what the public doesn't see."""

    async def categories(self) -> list[Category]: ...
    async def refusals(self) -> Mapping[str | None, int]: ...
    def posts(self, after: PostId) -> AsyncIterator[tuple[list[tuple[Post, Topic]], list[Rejected], PostId]]: ...
    async def newest_post(self) -> PostId: ...
    async def public_among(self, post_ids: Sequence[PostId]) -> set[PostId]: ...
    async def public_topics_among(self, topic_ids: Sequence[TopicId]) -> set[TopicId]: ...


class Snapshots(Protocol):
    def snapshot(self) -> AbstractAsyncContextManager[ForumSnapshot]: ...


class DatabaseBackfill:
    """One backfill from a forum's database; `source` names it and the terms on which it is read."""

    def __init__(self, source: str, forum: Snapshots, crawls: Crawls, at: Backfill) -> None:
        self._source = source
        self._forum = forum
        self._crawls = crawls
        self.at = at
        self.refused: dict[str, int] = {}
        self.unreadable = 0
        self.withdrawn = 0
        self.copied: Copied | None = None

    async def run(self, *, model_id: int | None) -> bool:
        """Read the posts, copy what vectors can be, embed the rest; only embed (False) where another process reads.

        `model_id` names the forum's embedding model where its name doesn't. Raises Rejected for one that it hasn't,
        Transient (to be run again) or Misconfigured.
        """
        async with self._crawls.alone(self._source) as alone:
            if alone:
                await self.read()
                async with self._forum.snapshot() as snapshot:
                    self.copied = await copy_vectors(snapshot, self._crawls, self.at, model_id=model_id)
        await embed_rest(self.at)
        await self.at.backfills.settle()
        return alone

    async def read(self) -> None:
        """Read the posts above the last one that an interrupted run read, or all; then withdraw what has gone."""
        cursor = await self._crawls.cursor(self._source)
        if cursor is None or cursor.stage is Stage.DONE:
            cursor = CrawlCursor(Stage.POSTS, 0, PostId(0), PostId(0), PostId(0))
        for _ in range(MAX_WALKS):
            before = cursor.floor
            cursor = await self._walk(cursor)
            if cursor.floor == before:
                break
        await self._withdraw()
        await self._crawls.keep_cursor(self._source, replace(cursor, stage=Stage.DONE))

    async def _walk(self, cursor: CrawlCursor) -> CrawlCursor:
        """One snapshot's public posts above the cursor's floor, topics first."""
        read_at = await self.at.corpus.now()
        stored: set[TopicId] = set()
        async with self._forum.snapshot() as snapshot:
            await self.at.corpus.put_categories(await snapshot.categories(), read_at=read_at)
            await self.at.corpus.withdraw_private()
            counts = dict(await snapshot.refusals())
            total, done = counts.pop(None, 0), 0
            self.refused = {str(reason): count for reason, count in counts.items()}
            async for rows, faults, last in snapshot.posts(cursor.floor):
                self._count(faults)
                topics = {topic.id: topic for _, topic in rows if topic.id not in stored}
                await put_topics_read(list(topics.values()), self.at, read_at=read_at)
                stored |= topics.keys()
                await put_posts_read([post for post, _ in rows], self._crawls, self.at, read_at=read_at)
                cursor = replace(cursor, floor=last)
                await self._crawls.keep_cursor(self._source, cursor)
                done += len(rows)
                self.at.progress("posts", done, max(done, total))
        return cursor

    async def _withdraw(self) -> None:
        """Take out what is stored as public and isn't on the forum; what was read or delivered since stays."""
        read_at = await self.at.corpus.now()
        async with self._forum.snapshot() as snapshot:
            newest = await snapshot.newest_post()
            topic_id = TopicId(0)
            while topics := await self._crawls.titled_topics(topic_id, PAGE):
                gone = set(topics) - await snapshot.public_topics_among(topics)
                for one in sorted(gone):
                    self.withdrawn += await self.at.corpus.remove_topic(one, read_at=read_at)
                topic_id = topics[-1]
            post_id = PostId(0)
            while posts := await self._crawls.eligible_upto(newest, after=post_id, limit=PAGE):
                await self._withdraw_posts(posts, snapshot, read_at)
                post_id = posts[-1]

    async def _withdraw_posts(self, posts: Sequence[PostId], snapshot: ForumSnapshot, read_at: datetime) -> None:
        gone = set(posts) - await snapshot.public_among(posts)
        if gone:
            self.withdrawn += await self.at.corpus.withdraw_posts(sorted(gone), read_at=read_at)

    def _count(self, faults: Sequence[Rejected]) -> None:
        for fault in faults:
            log.warning("entry_unreadable", fault=str(fault))
        self.unreadable += len(faults)
