"""Several processes that embed one index: each text once, and a worker leaves alone what a backfill is at."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from service.domain import Embedded
from service.ingest.share import embed_part
from service.settings import Settings
from service.store.corpus import CorpusStore
from service.store.crawl import CrawlStore
from service.store.pool import Pool
from service.wiring.services import open_services
from service.wiring.work import work_of
from tests.fakes.embedder import HashEmbedder
from tests.integration.store_data import PROFILE, PUBLIC, TOPIC, indexed, post, rows


@dataclass
class Yielding(HashEmbedder):
    """Lets the others run before it answers."""

    async def embed_passages(self, texts: Sequence[str]) -> list[Embedded]:
        await asyncio.sleep(0.001)
        return await super().embed_passages(texts)


@pytest.fixture
async def corpus(pool: Pool) -> CorpusStore:
    store = CorpusStore(pool)
    await store.put_categories([PUBLIC])
    await store.put_topics([TOPIC])
    await store.put_posts([indexed(post(n), f"body {n}") for n in range(126, 186)])  # ids from 226
    return store


async def test_no_text_is_embedded_twice(corpus: CorpusStore, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.ingest.share.PART_IDS", 16)
    embedder = Yielding(PROFILE)

    async def process() -> None:
        claims = CrawlStore(pool)
        while (embedded := await embed_part(corpus, embedder, claims)) != 0:
            if embedded is None:
                await asyncio.sleep(0.005)

    await asyncio.gather(*(process() for _ in range(3)))
    assert len(embedder.embedded) == len(set(embedder.embedded)) == 60
    assert await rows(pool, "SELECT count(*) FROM embeddings") == [(60,)]


async def test_a_worker_leaves_alone_what_a_backfill_is_at(corpus: CorpusStore, pool: Pool, database_url: str) -> None:
    settings = Settings(database={"url": database_url})
    async with open_services(settings, "worker") as services:
        worker = work_of(services, asyncio.Event())
        async with CrawlStore(pool).claim(0) as ours:  # the ids below 256
            assert ours
            assert await worker.embed_pending() == 30
            assert await worker.embed_pending() == 0
        assert await rows(pool, "SELECT min(post_id), count(*) FROM embeddings") == [(256, 30)]
        assert await worker.embed_pending() == 30
        assert await worker.embed_pending() == 0
