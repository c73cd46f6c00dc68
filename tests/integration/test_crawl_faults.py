"""Backfill from a forum that fails for good in some places, or says what can't be: that costs these places only."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.discourse.listings import TopicPage
from service.ingest.crawl_ports import Stage
from service.simulator.forum import Author, Forum
from service.store.crawl import CrawlStore
from service.store.pool import Pool
from tests.integration.crawl_kit import SOURCE, Crawling, ServedForum, emptied, on_a_socket, stored
from tests.integration.store_data import rows
from tests.simulated import START, Clock, tiny_forum

TOPIC = 10


@pytest.fixture
def forum(tmp_path: Path) -> Forum:
    """The tiny forum, a hidden post in two of its topics, which are read whole for that."""
    forum = tiny_forum(tmp_path)
    alice = Author(forum.members[2], START)
    for topic_id in (TOPIC, 12):
        post = forum.create_post(alice, topic_id=topic_id, raw=f"One more word on topic {topic_id}.")
        forum.create_post(alice, topic_id=topic_id, raw=f"And another word on topic {topic_id}.")
        forum.hide_post(post.id, hidden=True, now=START)
    return forum


@pytest.fixture
def served_forum(forum: Forum) -> ServedForum:
    return ServedForum(forum, Clock())


@pytest.fixture
def crawling(served_forum: ServedForum, pool: Pool) -> Iterator[Crawling]:
    clock = served_forum.clock
    assert isinstance(clock, Clock)
    with on_a_socket(served_forum) as url:
        yield Crawling(url, clock, pool)


Answer = Callable[[str], int | None]
FAILS: dict[str, Answer] = {
    "a topic": lambda path: 500 if path.startswith(f"/t/{TOPIC}.json") else None,
    "a page of topics": lambda path: 500 if path.startswith("/latest.json?order") and path.endswith("page=0") else None,
}


@pytest.mark.parametrize("what", FAILS)
async def test_what_always_fails_costs_only_itself(
    crawling: Crawling, served_forum: ServedForum, pool: Pool, what: str
) -> None:
    await crawling.run()
    undisturbed = await stored(pool)
    await emptied(pool)
    served_forum.answer = FAILS[what]
    crawl = await crawling.run()
    assert crawl.left_out.unread_topics + crawl.left_out.skipped_pages >= 1
    cursor = await CrawlStore(pool).cursor(SOURCE)
    assert cursor is not None and cursor.stage is Stage.DONE
    assert await rows(pool, "SELECT count(*) > 0 FROM posts WHERE topic_id = 12 AND refusal IS NULL") == [(True,)]
    served_forum.answer = lambda path: None
    await crawling.run()
    assert await stored(pool) == undisturbed


async def test_a_topic_that_nothing_else_tells_of_is_read_when_it_can_be(
    crawling: Crawling, served_forum: ServedForum, pool: Pool
) -> None:
    await crawling.run()
    undisturbed = await stored(pool)
    await emptied(pool)

    def answer(path: str) -> int | None:
        """Topics are known by their posts alone, and one can't be read while posts are walked through."""
        tries = sum(one.startswith(f"/t/{TOPIC}.json") for one in served_forum.asked)
        return 500 if path.startswith("/latest.json?order") or (f"/t/{TOPIC}.json" in path and tries <= 8) else None

    served_forum.answer = answer
    async with crawling.opened() as crawl:
        crawl._forum.topic_page = no_topics  # type: ignore[method-assign]  # the list is empty
        await crawl.run()
    assert await stored(pool) == undisturbed


async def no_topics(page: int) -> TopicPage:
    return TopicPage([], [], more=False)


async def test_refused_reads_of_the_bot_keep_to_the_budget_too(crawling: Crawling, served_forum: ServedForum) -> None:
    """Whether it is the key that is refused is asked once more each time."""
    served_forum.answer = lambda path: 403 if path.startswith("/t/") else None
    await crawling.run(as_bot=True)
    assert [path for path in served_forum.asked if path.startswith("/t/")]
    assert len(served_forum.asked) <= crawling.waited / 2 + 1
