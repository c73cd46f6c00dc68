"""What the searches of questions take of a pool of connections, and give back."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from service.answer.retrieve import retrieve
from service.domain import ENGLISH, Candidate, Question, TopicHit, TopicId, Trace
from service.errors import Transient
from service.settings import DatabaseSettings, RetrievalSettings
from service.store.corpus import CorpusStore
from service.store.pool import Pool, connection, open_pool
from service.store.search import SearchStore
from tests.fakes.answering import FakeEmbedder
from tests.integration.store_data import PUBLIC, TOPIC, indexed, post

SETTINGS = RetrievalSettings()
QUESTION = Question("red fruit?", ENGLISH, condensed="does red fruit crack in the sun?")


@pytest.fixture
async def small(database_url: str) -> AsyncIterator[Pool]:
    """A pool of two connections, on ten topics."""
    async with open_pool(database_url, DatabaseSettings(pool_max_size=2)) as pool:
        corpus = CorpusStore(pool)
        await corpus.put_categories([PUBLIC])
        await corpus.put_topics([replace(TOPIC, id=TopicId(n)) for n in range(1, 11)])
        await corpus.put_posts([indexed(post(n, topic_id=TopicId(n)), f"red fruit {n}") for n in range(1, 11)])
        yield pool


async def test_many_questions_at_once_share_a_pool_of_two(small: Pool) -> None:
    search = SearchStore(small)
    asked = [retrieve(QUESTION, FakeEmbedder(), search, SETTINGS, Trace()) for _ in range(8)]
    found = await asyncio.gather(*asked)
    assert [sorted(one.topic_id for one in candidates) for candidates in found] == [list(range(1, 11))] * 8
    assert small.get_stats()["pool_available"] == 2


async def test_a_search_that_fails_ends_the_statements_of_the_others(small: Pool) -> None:
    class Failing(SearchStore):
        async def keyword_posts(self, *given: Any, **without: Any) -> list[Candidate]:
            async with connection(small) as conn:
                while await statements(conn) == 0:
                    await asyncio.sleep(0.01)
            raise Transient("the database can't do this now")

        async def keyword_topics(self, *given: Any, **without: Any) -> list[TopicHit]:
            async with connection(small) as conn:
                await conn.execute("SELECT pg_sleep(25)")
            return []

    async def statements(conn: Any) -> int:
        cursor = await conn.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'"
            " AND query LIKE 'SELECT pg_sleep%'"
        )
        [count] = await cursor.fetchone()
        return int(count)

    with pytest.raises(Transient, match="can't do this now"):
        await retrieve(replace(QUESTION, condensed=""), FakeEmbedder(), Failing(small), SETTINGS, Trace())
    assert small.get_stats()["pool_available"] == 2
    async with connection(small) as conn:
        assert await statements(conn) == 0
