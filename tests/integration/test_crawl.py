"""Backfill from the forum itself: the simulator over real sockets, in virtual time."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.domain import CategoryId
from service.errors import Misconfigured, Transient
from service.ingest.archive import read_categories
from service.ingest.backfill import Backfill, backfill_archive, embed_rest
from service.ingest.crawl_ports import Stage
from service.ingest.ports import IndexedPost
from service.simulator.archive import archive_lines, site_json
from service.simulator.forum import Author, Forum
from service.simulator.limits import Limits
from service.simulator.model import Category, Post
from service.store.corpus import CorpusStore
from service.store.crawl import CrawlStore
from service.store.pool import Pool
from tests.integration.crawl_kit import RULES, SOURCE, Crawling, ServedForum, emptied, on_a_socket, stored
from tests.integration.store_data import frequencies_are_exact, rows
from tests.integration.test_backfill import everything_stored
from tests.simulated import START, Clock, tiny_forum

MANY = 230
"""Posts of one more topic: five pages of ids, and more than a topic gives at once."""
SECRETS = ("Secret plans", "staff room", "duplicate?", "insult", "wrong place", "Unlisted")


@pytest.fixture
def forum(tmp_path: Path) -> Forum:
    """The tiny forum, with a topic of many posts, a banner, and a private one that is newer than all of them."""
    forum = tiny_forum(tmp_path)
    alice, boss = (Author(forum.members[number], START) for number in (2, 1))
    first = forum.create_topic(alice, title="Everything that I sowed this year", category_id=1, raw="Radishes, first.")
    for number in range(2, MANY + 1):
        forum.create_post(alice, topic_id=first.topic_id, raw=f"Then number {number}, a little later.")
    banner = forum.create_topic(boss, title="A word to everybody who reads here", category_id=1, raw="Be kind to all.")
    forum.add(replace(forum.topics[banner.topic_id], archetype="banner"))
    for _ in range(60):
        forum.create_post(boss, topic_id=11, raw="Secret plans for the summer, and for later.")
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


def alice_says(forum: Forum, topic_id: int, raw: str) -> Post:
    return forum.create_post(Author(forum.members[2], START), topic_id=topic_id, raw=raw)


def page_calls(asked: list[str]) -> list[str]:
    return [path for path in asked if path.startswith("/posts.json?before")]


async def test_the_forum_and_its_archive_give_the_same_rows(
    crawling: Crawling, forum: Forum, pool: Pool, tmp_path: Path
) -> None:
    path, site = tmp_path / "topics.jsonl", tmp_path / "site.json"
    path.write_text("\n".join(archive_lines(forum)), encoding="utf-8")
    site.write_text(json.dumps(site_json(forum)), encoding="utf-8")
    corpus = CorpusStore(pool)
    at = Backfill(corpus, corpus, crawling.embedder, RULES, lambda *_: None)
    await backfill_archive(path, categories=read_categories(site), vectors=None, at=at)
    by_file = await stored(pool)
    await emptied(pool)
    await crawling.run()
    assert await stored(pool) == by_file
    assert len(by_file["embeddings"]) == MANY + 3
    everything = await everything_stored(pool)
    assert not [secret for secret in SECRETS if secret in everything]
    assert await frequencies_are_exact(pool)


async def test_it_begins_below_a_page_of_private_posts(crawling: Crawling, served_forum: ServedForum) -> None:
    await crawling.run()
    newest = max(post.id for post in served_forum.forum.posts.values() if post.topic_id == 14)
    assert page_calls(served_forum.asked)[0] == f"/posts.json?before={newest}"
    assert crawling.told[-1][0] == "vectors"
    assert ("post ids", newest, newest) in crawling.told


async def test_running_twice_changes_nothing_and_embeds_nothing(crawling: Crawling, pool: Pool) -> None:
    await crawling.run()
    before, embedded = await stored(pool), len(crawling.embedder.embedded)
    await crawling.run()
    assert (await stored(pool), len(crawling.embedder.embedded)) == (before, embedded)


async def test_what_arrives_meanwhile_is_not_missed(
    crawling: Crawling, served_forum: ServedForum, forum: Forum, pool: Pool
) -> None:
    new: list[Post] = []

    def meddle(count: int) -> None:
        if count in (3, 7, 9):
            alice = Author(forum.members[2], START)
            new.append(forum.create_topic(alice, title=f"A new question, number {count}", category_id=1, raw="Why so?"))
            new.append(alice_says(forum, 10, f"One reply more, at request {count}."))

    served_forum.watch = meddle
    await crawling.run()
    assert len(new) == 6
    found = await rows(
        pool, "SELECT post_id FROM posts WHERE refusal IS NULL AND post_id = ANY(%s)", [p.id for p in new]
    )
    assert len(found) == 6


async def test_a_category_made_meanwhile_is_looked_for_before_it_counts_as_private(
    crawling: Crawling, served_forum: ServedForum, forum: Forum, pool: Pool
) -> None:
    def meddle(count: int) -> None:
        if count == 2:
            forum.set_category(Category(3, "Kitchen", "kitchen"))
            alice = Author(forum.members[2], START)
            forum.create_topic(alice, title="What to do with so many radishes", category_id=3, raw="Soup, perhaps?")

    served_forum.watch = meddle
    await crawling.run()
    assert await rows(pool, "SELECT refusal FROM posts JOIN topics USING (topic_id) WHERE category_id = 3") == [(None,)]


class Meddling(CorpusStore):
    """A corpus in which the live service closes a category after the forum was read, and before that is stored."""

    closed = False

    async def put_posts(self, indexed: Sequence[IndexedPost], *, read_at: datetime | None = None) -> int:
        if not self.closed:
            await self.close_category(CategoryId(1))
            await super().withdraw_private()
            self.closed = True
        return await super().put_posts(indexed, read_at=read_at)

    async def withdraw_private(self) -> int:
        return 0  # what a put brings back is not mended later


async def test_what_became_private_meanwhile_does_not_come_back(
    crawling: Crawling, served_forum: ServedForum, forum: Forum, pool: Pool
) -> None:
    meddling = Meddling(pool)

    def close(count: int) -> None:
        if meddling.closed and not forum.categories[1].read_restricted:
            forum.add(replace(forum.categories[1], read_restricted=True))

    served_forum.watch = close
    await crawling.run(corpus=meddling)
    assert await rows(pool, "SELECT count(*) FROM posts WHERE body IS NOT NULL") == [(0,)]
    assert "radiator" not in await everything_stored(pool)


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({"status": 429, "body": "html", "retry_after_seconds": 17}, 17),
        ({"status": 429, "body": "text"}, 5),
        ({"status": 503, "body": "html"}, 5),
        ({"status": 500, "times": 3}, 35),
        ({"fault": "garbage"}, 5),
        ({"fault": "truncated"}, 5),
    ],
)
async def test_it_waits_as_long_as_the_forum_asks_and_goes_on(
    crawling: Crawling, pool: Pool, options: dict[str, Any], seconds: float
) -> None:
    await crawling.run()
    undisturbed, took = await stored(pool), crawling.waited
    await emptied(pool)
    async with httpx.AsyncClient(base_url=crawling.url) as control:
        switch = {"fault": "status", "path": "/posts.json", "times": 1} | options
        (await control.post("/simulator/switches", json=switch)).raise_for_status()
    crawl = await crawling.run()
    assert await stored(pool) == undisturbed
    assert crawl.left_out.skipped_pages == 0
    more = crawling.waited - 2 * took
    assert seconds - 3 < more < seconds + 3


async def test_the_forums_own_limit_is_kept_without_a_refusal(crawling: Crawling, served_forum: ServedForum) -> None:
    await crawling.run()
    requests = len(served_forum.asked)
    assert served_forum.refused == 0
    assert crawling.waited == pytest.approx(0.6 * (requests - 1), abs=1.5)


async def test_a_tighter_limit_than_expected_only_takes_longer(
    crawling: Crawling, served_forum: ServedForum, pool: Pool
) -> None:
    served_forum.limits = Limits(anonymous_per_minute=7)
    with on_a_socket(served_forum) as url:
        await replace(crawling, url=url).run()
    assert served_forum.refused > 0
    assert await rows(pool, "SELECT count(*) FROM posts WHERE refusal IS NULL") == [(MANY + 3,)]


async def test_a_page_that_the_forum_can_not_give_is_made_up_for_topic_by_topic(
    crawling: Crawling, served_forum: ServedForum, pool: Pool
) -> None:
    await crawling.run()
    undisturbed = await stored(pool)
    await emptied(pool)
    bad = page_calls(served_forum.asked)[2]
    served_forum.answer = lambda path: 500 if path == bad else None
    crawl = await crawling.run()
    assert crawl.left_out.skipped_pages == 1
    assert await stored(pool) == undisturbed


async def test_a_post_that_can_not_be_read_sinks_nothing(crawling: Crawling, forum: Forum, pool: Pool) -> None:
    bad = forum.posts[50]
    forum.add(replace(bad, number=0))
    crawl = await crawling.run()
    assert crawl.left_out.unreadable >= 1
    assert await rows(pool, "SELECT count(*) FROM posts WHERE refusal IS NULL") == [(MANY + 2,)]


async def test_an_outage_ends_the_crawl_and_it_goes_on_where_it_stopped(
    crawling: Crawling, served_forum: ServedForum, pool: Pool
) -> None:
    await crawling.run()
    undisturbed = await stored(pool)
    for last in ("/latest.json", "/posts.json?before", "/t/"):
        await emptied(pool)
        served_forum.asked.clear()

        def answer(path: str, last: str = last) -> int | None:
            return 503 if any(one.startswith(last) for one in served_forum.asked[:-1]) else None

        served_forum.answer = answer
        with pytest.raises(Transient, match="503"):
            await crawling.run()
        served_forum.answer = lambda path: None
        await crawling.run()
        assert await stored(pool) == undisturbed


async def test_an_interrupted_crawl_reads_no_list_twice(
    crawling: Crawling, served_forum: ServedForum, pool: Pool
) -> None:
    served_forum.answer = lambda path: 503 if path.startswith("/posts.json?before") else None
    with pytest.raises(Transient):
        await crawling.run()
    cursor = await CrawlStore(pool).cursor(SOURCE)
    assert cursor is not None
    assert cursor.stage is Stage.POSTS
    served_forum.answer = lambda path: None
    served_forum.asked.clear()
    await crawling.run()
    assert not [path for path in served_forum.asked if path.startswith("/latest.json?order")]


async def test_a_site_that_wants_a_login_says_how_it_is_read(crawling: Crawling, served_forum: ServedForum) -> None:
    served_forum.answer = lambda path: 403
    with pytest.raises(Misconfigured, match="anonymous readers: a site that wants a login needs --as-bot"):
        await crawling.run()


async def test_as_the_bot_it_takes_half_of_what_the_site_shares_and_nothing_private(
    crawling: Crawling, served_forum: ServedForum, forum: Forum, pool: Pool
) -> None:
    await crawling.run()
    undisturbed = await stored(pool)
    await emptied(pool)
    forum.add(replace(forum.members[1000], moderator=True))  # sees everything, so that only our rules keep it out
    served_forum.asked.clear()
    start = crawling.waited
    await crawling.run(as_bot=True)
    assert crawling.waited - start == pytest.approx(2 * (len(served_forum.asked) - 1), abs=4)
    assert served_forum.refused == 0
    by_bot = await stored(pool)
    assert {table: by_bot[table] for table in ("postings", "embeddings")} == {
        table: undisturbed[table] for table in ("postings", "embeddings")
    }
    everything = await everything_stored(pool)
    assert not [secret for secret in SECRETS if secret in everything]


async def test_one_process_reads_while_others_help_to_embed(
    crawling: Crawling, served_forum: ServedForum, pool: Pool
) -> None:
    helper = replace(crawling, embedder=replace(crawling.embedder, embedded=[]))
    async with CrawlStore(pool).alone(SOURCE) as alone:
        assert alone
        async with helper.opened() as crawl:
            assert await crawl.run() is False
    assert served_forum.asked == []
    async with crawling.opened() as first:
        await first.read()
    async with crawling.opened() as one, helper.opened() as other:
        await asyncio.gather(*(embed_rest(crawl.at) for crawl in (one, other)))
    embedded = crawling.embedder.embedded + helper.embedder.embedded
    assert len(embedded) == len(set(embedded)) == MANY + 3


async def test_an_embedder_that_is_down_does_not_end_the_reading(crawling: Crawling, pool: Pool) -> None:
    crawling.embedder.down = Transient("the embedder is away")
    with pytest.raises(Transient, match="away"):
        await crawling.run()
    assert await rows(pool, "SELECT count(*) FROM posts WHERE refusal IS NULL") == [(MANY + 3,)]
    cursor = await CrawlStore(pool).cursor(SOURCE)
    assert cursor is not None
    assert cursor.stage is Stage.DONE
