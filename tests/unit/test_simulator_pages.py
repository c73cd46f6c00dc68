"""The pages of the simulated forum, as a browser without scripts uses them."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from selectolax.lexbor import LexborHTMLParser, LexborNode

from service.simulator.forum import Author
from service.simulator.limits import Limits
from tests.simulated import Clock, browser, room_of, simulator, tiny_forum

ORIGIN = {"Origin": "http://127.0.0.1:4200"}
RAW = "How long does it take, @ariane? <script>alert(1)</script>"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def app(tmp_path: Path, clock: Clock) -> FastAPI:
    return simulator(tiny_forum(tmp_path), clock, limits=Limits())


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with browser(app) as made:
        yield made


async def page(client: httpx.AsyncClient, url: str, status: int = 200) -> LexborHTMLParser:
    answer = await client.get(url, headers={"Accept": "text/html"})
    assert answer.status_code == status
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    tree = LexborHTMLParser(answer.text)
    assert all(s.attributes.get("src") and not s.text() for s in tree.css("script"))
    assert not tree.css("[style], [onclick]")
    return tree


async def send(client: httpx.AsyncClient, url: str, **fields: str) -> httpx.Response:
    return await client.post(url, data=fields, headers=ORIGIN)


async def become(client: httpx.AsyncClient, name: str) -> None:
    answer = await send(client, "/who", **{"as": name, "back": "/t/x/10"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/t/x/10")


def texts(tree: LexborHTMLParser, selector: str) -> list[str]:
    return [" ".join(n.text().split()) for n in tree.css(selector)]


def one(tree: LexborHTMLParser, selector: str) -> LexborNode:
    (node,) = tree.css(selector)
    return node


@pytest.mark.parametrize(
    "url",
    ["/", "/c/garden/1", "/t/x/10", "/t/x/10/2", "/new-topic", "/u/Zo%C3%A9", "/search?q=valve", "/search",
     "/simulator/deliveries", "/simulator/switches"],
)  # fmt: skip
async def test_pages(client: httpx.AsyncClient, url: str) -> None:
    tree = await page(client, url)
    assert "simulator" in texts(tree, ".notice")[0]


@pytest.mark.parametrize("url", ["/t/x/11", "/t/11", "/c/staff/2", "/t/x/99", "/u/nobody", "/nothing", "/t/x/words"])
async def test_what_is_not_there_or_not_for_all_is_a_page_too(client: httpx.AsyncClient, url: str) -> None:
    tree = await page(client, url, 404)
    assert texts(tree, "h1") == ["The requested URL or resource could not be found."]


async def test_a_visitor_sees_what_is_public(client: httpx.AsyncClient) -> None:
    assert texts(await page(client, "/"), ".row h2 a") == [
        "A topic that is closed to replies",
        "How to bleed a radiator",
    ]
    topic = await page(client, "/t/x/10/2")
    assert [n.attributes["id"] for n in topic.css("#posts > *")] == ["post_1", "post_2", "post_4", "post_6"]
    assert [n.attributes["id"] for n in topic.css(".wanted")] == ["post_2"]
    assert "insult" not in (topic.html or "")
    await become(client, "boss")
    assert "The staff room, where nobody else reads" in texts(await page(client, "/"), ".row h2 a")
    assert texts(await page(client, "/t/x/10"), ".mark.warn") == ["whisper: staff only", "hidden by flags"]


async def test_a_person_replies_and_waits_for_the_bot(app: FastAPI, client: httpx.AsyncClient, clock: Clock) -> None:
    answer = await send(client, "/t/10/reply", **{"as": "alice", "reply_to": "2", "raw": RAW})
    assert (answer.status_code, answer.headers["location"]) == (303, "/t/how-to-bleed-a-radiator/10/7")
    tree = await page(client, answer.headers["location"])
    assert texts(tree, "#post_7 .author") == ["alice"]
    assert texts(tree, "#post_7 .answers") == ["↩ Zoé"]
    assert not tree.css("#post_7 script")
    assert one(tree, "#waiting").attributes.get("hidden", "shown") == "shown"
    state = (await client.get("/simulator/topics/10/state.json")).json()
    assert state["waiting"] is True
    forum = room_of(app).forum
    forum.create_post(Author(forum.members[1000], clock()), topic_id=10, raw="About ten minutes.", reply_to=7)
    later = (await client.get("/simulator/topics/10/state.json")).json()
    assert later["waiting"] is False
    assert later["version"] != state["version"]
    assert "hidden" in one((await page(client, "/t/x/10")), "#waiting").attributes


async def test_waiting_ends_after_ten_minutes(client: httpx.AsyncClient, clock: Clock) -> None:
    await send(client, "/t/10/reply", **{"as": "alice", "raw": RAW})
    clock.tick(599)
    assert (await client.get("/simulator/topics/10/state.json")).json()["waiting"] is True
    clock.tick(2)
    assert (await client.get("/simulator/topics/10/state.json")).json()["waiting"] is False


async def test_a_refused_reply_keeps_its_text(client: httpx.AsyncClient) -> None:
    answer = await send(client, "/t/10/reply", **{"as": "alice", "raw": "too short"})
    assert answer.status_code == 422
    tree = LexborHTMLParser(answer.text)
    assert texts(tree, ".fault") == ["Body is too short (minimum is 20 characters)"]
    assert one(tree, "textarea").text() == "too short"
    assert "You post as alice." in texts(tree, ".composer .hint")
    assert "You post as alice." in texts(await page(client, "/t/x/10"), ".composer .hint")


async def test_a_closed_topic_has_no_composer(client: httpx.AsyncClient) -> None:
    await become(client, "alice")
    assert not (await page(client, "/t/x/12")).css("textarea")
    await become(client, "boss")
    assert (await page(client, "/t/x/12")).css("textarea")


async def test_a_new_topic(client: httpx.AsyncClient, clock: Clock) -> None:
    await become(client, "Zoé")
    fields = {"title": "Une question de plus", "category": "1", "lang": "fr", "raw": "Comment purger un radiateur ?"}
    answer = await send(client, "/new-topic", **fields)
    assert answer.headers["location"] == "/t/une-question-de-plus/14"
    tree = await page(client, "/t/une-question-de-plus/14")
    assert one(tree, "h1").attributes["lang"] == "fr"
    clock.tick(6)
    refused = await send(client, "/new-topic", **(fields | {"title": "court"}))
    assert (refused.status_code, "Comment purger" in refused.text) == (422, True)
    filled = await page(client, "/new-topic?title=A+%22title%22&body=%3C/textarea%3EText")
    assert one(filled, "#title").attributes["value"] == 'A "title"'
    assert one(filled, "textarea").text() == "</textarea>Text"


async def test_a_member_edits_and_deletes_his_own_posts_only(app: FastAPI, client: httpx.AsyncClient) -> None:
    await become(client, "alice")
    assert (await client.get("/p/2/edit")).status_code == 403
    assert (await send(client, "/p/2/edit", raw="Something else entirely")).status_code == 403
    assert one((await page(client, "/p/1/edit")), "textarea").text() == "How do I bleed a radiator? It gurgles."
    await send(client, "/p/1/edit", raw="How do I bleed a radiator, @ariane?", action="save")
    forum = room_of(app).forum
    assert forum.posts[1].version == 2
    await send(client, "/p/4/edit", action="delete")
    assert forum.posts[4].deleted_at and forum.posts[4].user_deleted


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {},
        {"Origin": "http://127.0.0.1:4200", "Host": "evil.example"},
    ],
)
async def test_other_sites_cannot_post(app: FastAPI, client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    for url in ("/t/10/reply", "/new-topic", "/who", "/p/1/edit", "/simulator/form", "/simulator/switches"):
        answer = await client.post(url, data={"as": "alice", "raw": RAW, "fault": "slow"}, headers=headers)
        assert answer.status_code == 403
    assert len(room_of(app).forum.posts) == 9
    assert list(room_of(app).switches) == []


@pytest.mark.parametrize("url", ["/", "/t/x/10", "/simulator/switches", "/simulator/switches.json"])
async def test_pages_are_for_this_machine_only(app: FastAPI, url: str) -> None:
    transport = httpx.ASGITransport(app, client=("192.0.2.7", 1234))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4200") as far:
        assert (await far.get(url)).status_code == 403
        assert (await far.get("/posts/1.json")).status_code == 200
    async with browser(app) as near:
        assert (await near.get(url, headers={"Host": "rebound.example"})).status_code == 403


async def test_going_back_never_leaves_the_forum(client: httpx.AsyncClient) -> None:
    for back in ("https://evil.example", "//evil.example", "/\\evil.example", ""):
        answer = await send(client, "/who", **{"as": "alice", "back": back})
        assert answer.headers["location"] == "/"


async def test_nobody_becomes_the_bot(client: httpx.AsyncClient) -> None:
    answer = await send(client, "/t/10/reply", **{"as": "ariane", "raw": RAW})
    assert answer.status_code == 403


async def test_switches_are_set_and_posts_approved_on_their_page(app: FastAPI, client: httpx.AsyncClient) -> None:
    room = room_of(app)
    await send(client, "/simulator/form", action="on", fault="enqueue", times="1", status="500", seconds="1")
    assert len(list(room.switches)) == 1
    await send(client, "/t/10/reply", **{"as": "alice", "raw": RAW})
    assert "How long does it take" in texts(await page(client, "/simulator/switches"), ".hits")[0]
    await send(client, "/simulator/form", action="approve", id=str(room.desk.pending[0].id))
    assert room.desk.pending == []
    assert len(room.forum.posts) == 10
    await send(client, "/simulator/form", action="on", fault="slow")
    await send(client, "/simulator/form", action="off", id="2")
    assert list(room.switches) == []
    assert (await send(client, "/simulator/form", action="on", fault="nonsense")).status_code == 422


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("/letter_avatar_proxy/v4/letter/a/5daacb/48.png", 200),
        ("/letter_avatar_proxy/v4/letter/%3C/5daacb/48.png", 200),
        ("/letter_avatar_proxy/v4/letter/a/red/48.png", 404),
        ("/images/emoji/twitter/seedling.png?v=14", 200),
        ("/images/emoji/twitter/nothing_such.png", 404),
        ("/simulator-colour/0088CC.svg", 200),
        ("/simulator-static/forum.css", 200),
        ("/simulator-static/../app.py", 404),
    ],
)
async def test_pictures(client: httpx.AsyncClient, url: str, status: int) -> None:
    answer = await client.get(url)
    assert answer.status_code == status
    assert "<<" not in answer.text
