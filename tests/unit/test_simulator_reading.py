"""Who sees what in the simulated forum, and how lists are cut."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from service.simulator.archive import archive_lines, site_json
from service.simulator.forum import Author
from service.simulator.model import Category
from tests.simulated import ADMIN_KEY, BOT_HEADERS, Clock, browser, room_of, simulator, tiny_forum

STAFF = {"Api-Key": ADMIN_KEY, "Api-Username": "boss"}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with browser(simulator(tiny_forum(tmp_path), Clock())) as made:
        yield made


def ids(posts: list[dict[str, int]]) -> list[int]:
    return [p["id"] for p in posts]


@pytest.mark.parametrize(
    ("url", "anonymous", "bot", "staff"),
    [
        ("/posts/1.json", 200, 200, 200),
        ("/posts/3.json", 403, 403, 200),  # a whisper
        ("/posts/4.json", 200, 200, 200),  # hidden: shown as a notice
        ("/posts/5.json", 404, 404, 200),  # deleted
        ("/posts/7.json", 403, 403, 200),  # private category
        ("/posts/9.json", 200, 200, 200),  # unlisted topic
        ("/posts/99.json", 404, 404, 404),
        ("/posts/by_number/10/2.json", 200, 200, 200),
        ("/posts/by_number/10/5.json", 404, 404, 200),
        ("/posts/by_number/11/1.json", 403, 403, 200),
        ("/t/10.json", 200, 200, 200),
        ("/t/-/10.json", 200, 200, 200),
        ("/t/how-to-bleed-a-radiator/10.json", 200, 200, 200),
        ("/t/10/2.json", 200, 200, 200),
        ("/t/-/10/2.json", 200, 200, 200),
        ("/t/11.json", 403, 403, 200),
        ("/t/13.json", 200, 200, 200),
        ("/t/99.json", 404, 404, 404),
        ("/t/words.json", 404, 404, 404),
        ("/u/Zo%C3%A9.json", 200, 200, 200),
        ("/u/zo%C3%A9.json", 200, 200, 200),
        ("/u/nobody.json", 404, 404, 404),
        ("/nothing.json", 404, 404, 404),
    ],
)
async def test_what_each_reader_gets(client: httpx.AsyncClient, url: str, anonymous: int, bot: int, staff: int) -> None:
    codes = [(await client.get(url, headers=h)).status_code for h in ({}, BOT_HEADERS, STAFF)]
    assert codes == [anonymous, bot, staff]


async def test_errors_are_json(client: httpx.AsyncClient) -> None:
    for url, kind in (("/posts/99.json", "not_found"), ("/posts/7.json", "invalid_access")):
        body = (await client.get(url)).json()
        assert body["error_type"] == kind
        assert body["errors"]


async def test_a_hidden_post_shows_a_notice_without_its_text(client: httpx.AsyncClient) -> None:
    anonymous = (await client.get("/posts/4.json")).json()
    assert anonymous["hidden"] is True
    assert "insult" not in str(anonymous)
    assert "insult" in (await client.get("/posts/4.json", headers=STAFF)).json()["raw"]


async def test_topics_have_no_raw_and_hide_what_is_not_public(client: httpx.AsyncClient) -> None:
    topic = (await client.get("/t/10.json")).json()
    assert topic["post_stream"]["stream"] == [1, 2, 4, 6] == ids(topic["post_stream"]["posts"])
    assert all("raw" not in p for p in topic["post_stream"]["posts"])
    assert (await client.get("/t/10.json", headers=STAFF)).json()["post_stream"]["stream"] == [1, 2, 3, 4, 6]
    chosen = await client.get("/t/10/posts.json?post_ids[]=2&post_ids[]=3&post_ids[]=5&post_ids[]=7&post_ids[]=1")
    assert ids(chosen.json()["post_stream"]["posts"]) == [1, 2]


async def test_lists_show_no_private_or_unlisted_topic(client: httpx.AsyncClient) -> None:
    latest = (await client.get("/latest.json")).json()["topic_list"]["topics"]
    assert ids(latest) == [12, 10]
    assert ids((await client.get("/latest.json", headers=STAFF)).json()["topic_list"]["topics"]) == [12, 11, 10]
    assert ids((await client.get("/posts.json")).json()["latest_posts"]) == [8, 2, 1]  # 4 is hidden
    assert ids((await client.get("/categories.json")).json()["category_list"]["categories"]) == [1]
    assert ids((await client.get("/site.json")).json()["categories"]) == [1]
    assert ids((await client.get("/site.json", headers=STAFF)).json()["categories"]) == [1, 2]
    assert (await client.get("/search.json?q=secret")).json()["posts"] == []
    assert ids((await client.get("/search.json?q=valve+RADIATOR")).json()["posts"]) == [2]


async def test_a_long_topic_comes_in_chunks_and_newest_posts_in_pages(tmp_path: Path) -> None:
    clock = Clock()
    app = simulator(tiny_forum(tmp_path), clock)
    forum = room_of(app).forum
    alice = Author(forum.members[2], clock())
    for i in range(60):
        forum.create_post(alice, topic_id=11 if 20 <= i < 55 else 10, raw=f"Post {i}")
    async with browser(app) as client:
        topic = (await client.get("/t/10.json")).json()
        assert len(topic["post_stream"]["posts"]) == 20
        assert len(topic["post_stream"]["stream"]) == 29
        assert [p["post_number"] for p in (await client.get("/t/10/30.json")).json()["post_stream"]["posts"]][-1] == 31
        pages = []
        before = forum.last_ids["post"]
        while before > 0:
            pages.append(ids((await client.get(f"/posts.json?before={before}")).json()["latest_posts"]))
            before -= 50
        # each page covers 50 ids, however few of them are public
        assert [len(p) for p in pages] == [15, 13]
        every = [i for page in pages for i in page]
        assert every == sorted(every, reverse=True)


async def test_notifications_are_the_bots_own(client: httpx.AsyncClient) -> None:
    raw = 'Dear @ariane, look:\n\n[quote="alice, post:1, topic:10"]\n@Zoé said so\n[/quote]\n\n`@newbie`'
    body = {"raw": raw, "topic_id": 10, "reply_to_post_number": 2}
    await client.post("/posts.json", json=body, headers=STAFF)
    mine = (await client.get("/notifications.json", headers=BOT_HEADERS)).json()["notifications"]
    assert [(n["notification_type"], n["topic_id"], n["post_number"]) for n in mine] == [(1, 10, 7)]
    assert mine[0]["data"]["original_username"] == "boss"
    kinds = {}
    for name in ("alice", "Zoé", "newbie"):
        headers = [(b"Api-Key", ADMIN_KEY.encode()), (b"Api-Username", name.encode())]
        notes = (await client.get("/notifications.json", headers=headers)).json()["notifications"]
        kinds[name] = [n["notification_type"] for n in notes]
    assert kinds == {"alice": [3], "Zoé": [2], "newbie": []}


async def test_deleting_a_topic_takes_it_out_of_sight(tmp_path: Path) -> None:
    clock = Clock()
    app = simulator(tiny_forum(tmp_path), clock)
    forum = room_of(app).forum
    async with browser(app) as client:
        forum.delete_post(Author(forum.members[1], clock()), 1)
        assert [(await client.get(u)).status_code for u in ("/t/10.json", "/posts/1.json", "/posts/2.json")] == [
            404
        ] * 3
        forum.recover_post(1, now=clock())
        assert (await client.get("/t/10.json")).status_code == 200
        forum.set_category(Category(1, "Garden", "garden", read_restricted=True))
        assert (await client.get("/t/10.json")).status_code == 403


async def test_a_subfolder_install_has_all_its_addresses_below_it(tmp_path: Path) -> None:
    forum = tiny_forum(tmp_path, base_url="http://127.0.0.1:4200/forum")
    app = simulator(forum, Clock())
    async with browser(app) as client:
        post = (await client.get("/posts/8.json")).json()
        assert post["post_url"] == "/forum/t/a-topic-that-is-closed-to-replies/12/1"
        assert 'href="http://127.0.0.1:4200/forum/t/how-to-bleed-a-radiator/10"' in post["cooked"]
        assert (await client.get("http://127.0.0.1:4200/posts/8.json")).status_code == 404
        assert "/forum/simulator-static/forum.css" in (await client.get("/")).text


def test_the_archive_is_what_an_anonymous_reader_could_collect(tmp_path: Path) -> None:
    forum = tiny_forum(tmp_path)
    topics = [json.loads(line) for line in archive_lines(forum)]
    assert ids(topics) == [10, 12]
    assert [p["id"] for p in topics[0]["post_stream"]["posts"]] == topics[0]["post_stream"]["stream"] == [1, 2, 4, 6]
    assert ids(site_json(forum)["categories"]) == [1]
