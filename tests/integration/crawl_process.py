"""A process that backfills from a forum in virtual time, to be killed: waiting only moves a clock kept in a file."""

import asyncio
import struct
import sys
from pathlib import Path

from service.domain import EmbeddingProfile
from service.ingest.backfill import Backfill
from service.ingest.crawl import ForumCrawl
from service.ingest.eligibility import IndexRules
from service.settings import Settings
from service.store.corpus import CorpusStore
from service.store.crawl import CrawlStore
from service.store.pool import open_pool
from service.wiring.crawl import open_crawler, source_of
from tests.fakes.embedder import HashEmbedder

PROFILE = EmbeddingProfile("toy", 100, 1, dimensions=8, window_tokens=64)
RULES = IndexRules(frozenset(), index_banners=False)


class FileClock:
    """Seconds since the file's beginning; `sleep` moves it for everyone who reads it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            self._write(0.0)

    def now(self) -> float:
        seconds: float = struct.unpack("d", self.path.read_bytes())[0]
        return seconds

    async def sleep(self, seconds: float) -> None:
        self._write(self.now() + seconds)

    def _write(self, seconds: float) -> None:
        written = self.path.with_suffix(".new")
        written.write_bytes(struct.pack("d", seconds))
        written.replace(self.path)


async def crawl(forum_url: str, database_url: str, clock: FileClock) -> None:
    settings = Settings(forum={"base_url": forum_url})
    opening = open_crawler(settings, as_bot=False, clock=clock.now, sleep=clock.sleep)
    async with open_pool(database_url) as pool, opening as forum:
        corpus, crawls = CorpusStore(pool), CrawlStore(pool)
        at = Backfill(corpus, corpus, HashEmbedder(PROFILE), RULES, lambda *_: None, crawls)
        await ForumCrawl(source_of(forum_url, RULES, reader="anyone"), forum, crawls, at).run()


if __name__ == "__main__":
    asyncio.run(crawl(sys.argv[1], sys.argv[2], FileClock(Path(sys.argv[3]))))
