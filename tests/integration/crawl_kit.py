"""A simulated forum on a real socket, in virtual time, whose every request a test sees, and may answer itself."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.ingest.backfill import Backfill
from service.ingest.crawl import ForumCrawl
from service.ingest.eligibility import IndexRules
from service.settings import Settings
from service.simulator.app import create_simulator
from service.simulator.forum import Forum
from service.simulator.limits import Limits
from service.store.corpus import CorpusStore
from service.store.crawl import CrawlStore
from service.store.pool import Pool
from service.wiring.crawl import open_crawler
from tests.fakes.embedder import HashEmbedder
from tests.fakes.serving import served
from tests.integration.crawl_process import PROFILE
from tests.integration.store_data import rows
from tests.simulated import KEY, START, Clock

SOURCE = "the forum"
RULES = IndexRules(frozenset({"ariane"}), index_banners=False)
COMPARED = {
    "categories": "*",
    "topics": "topic_id, title, slug, category_id, archetype, visible, closed, archived, deleted, tags, length",
    "posts": "post_id, topic_id, post_number, post_type, user_id, username, created_at, updated_at,"
    " reply_to_post_number, refusal, body, length",
    "postings": "*",
    "document_frequencies": "*",
    "embeddings": "post_id, passage, digest, embedding",
    "topic_embeddings": "topic_id, grain, embedding",
}
"""All that a backfill stores, but not when it did."""

Answer = Callable[[str], int | None]
"""The status that a path with its query gets instead of the forum's answer, or None."""


@dataclass
class ServedForum:
    """What was asked of the forum, and with what it was refused; `watch` runs between two requests."""

    forum: Forum
    clock: Callable[[], datetime]
    limits: Limits = field(default_factory=Limits)
    answer: Answer = lambda path: None
    watch: Callable[[int], None] = lambda count: None
    asked: list[str] = field(default_factory=list)
    refused: int = 0

    def app(self) -> ASGIApp:
        app = create_simulator(self.forum, api_keys={KEY: "ariane"}, limits=self.limits, clock=self.clock)

        async def seen(scope: Scope, receive: Receive, send: Send) -> None:
            path = scope["path"] + ("?" + scope["query_string"].decode() if scope["query_string"] else "")
            self.asked.append(path)
            self.watch(len(self.asked))
            if status := self.answer(path):
                body = json.dumps({"errors": ["no"]}).encode()
                kind = [(b"content-type", b"application/json")]
                await send({"type": "http.response.start", "status": status, "headers": kind})
                await send({"type": "http.response.body", "body": body})
                return

            async def counted(message: Message) -> None:
                self.refused += message.get("status") == 429
                await send(message)

            await app(scope, receive, counted)

        return seen


@contextmanager
def on_a_socket(forum: ServedForum) -> Iterator[str]:
    with served(forum.app()) as url:
        yield url


@dataclass
class Crawling:
    """Crawls of one served forum into one database."""

    url: str
    clock: Clock
    pool: Pool
    embedder: HashEmbedder = field(default_factory=lambda: HashEmbedder(PROFILE))
    told: list[tuple[str, int, int]] = field(default_factory=list)
    waited: float = 0.0

    @asynccontextmanager
    async def opened(self, *, as_bot: bool = False, corpus: CorpusStore | None = None) -> AsyncIterator[ForumCrawl]:
        settings = Settings(forum={"base_url": self.url, "api_key": KEY, "bot_username": "ariane"})

        async def sleep(seconds: float) -> None:
            self.waited += seconds
            self.clock.now = START + timedelta(seconds=self.waited)

        def hear(step: str, done: int, total: int) -> None:
            self.told.append((step, done, total))

        corpus, crawls = corpus or CorpusStore(self.pool), CrawlStore(self.pool)
        at = Backfill(corpus, corpus, self.embedder, RULES, hear, crawls)
        async with open_crawler(settings, as_bot=as_bot, clock=lambda: self.waited, sleep=sleep) as forum:
            yield ForumCrawl(SOURCE, forum, crawls, at)

    async def run(self, *, as_bot: bool = False, corpus: CorpusStore | None = None) -> ForumCrawl:
        async with self.opened(as_bot=as_bot, corpus=corpus) as crawl:
            await crawl.run()
        return crawl


async def stored(pool: Pool) -> dict[str, list[tuple[object, ...]]]:
    """Every row that a backfill makes, table by table."""
    made: dict[str, list[tuple[object, ...]]] = {}
    for table, columns in COMPARED.items():
        found = await rows(pool, f"SELECT {columns} FROM {table} ORDER BY 1, 2")
        made[table] = [tuple(str(value) for value in row) for row in found]
    return made


async def emptied(pool: Pool) -> None:
    """Forget everything, the crawls too."""
    async with pool.connection() as conn:
        await conn.execute(f"TRUNCATE {', '.join(COMPARED)}, backfills, crawls, crawled_topics CASCADE".encode())
