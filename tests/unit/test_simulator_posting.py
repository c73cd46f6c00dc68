"""What the simulated forum refuses and allows when somebody posts."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.simulator.limits import Limits
from service.simulator.switches import Fault
from tests.simulated import ADMIN_KEY, BOT_HEADERS, KEY, Clock, browser, room_of, simulator, tiny_forum

LONG_ENOUGH = "Twenty characters, or a few more."


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    return simulator(tiny_forum(tmp_path), Clock())


@pytest.fixture
async def client(tmp_path: Path, clock: Clock) -> AsyncIterator[httpx.AsyncClient]:
    async with browser(simulator(tiny_forum(tmp_path), clock, limits=Limits())) as made:
        yield made


async def post(client: httpx.AsyncClient, raw: str, *, as_user: str = "ariane", **fields: Any) -> httpx.Response:
    headers = {"Api-Key": ADMIN_KEY, "Api-Username": as_user}
    return await client.post("/posts.json", json={"raw": raw, "topic_id": 10} | fields, headers=headers)


async def test_a_reply_is_stored_and_given_back(client: httpx.AsyncClient) -> None:
    answer = await post(client, f"{LONG_ENOUGH} @alice  \n", reply_to_post_number=1)
    made = answer.json()
    assert (made["post_number"], made["reply_to_post_number"], made["username"]) == (7, 1, "ariane")
    assert made["raw"] == f"{LONG_ENOUGH} @alice"
    assert '<a class="mention" href="/u/alice">@alice</a>' in made["cooked"]
    read = (await client.get(f"/posts/{made['id']}.json")).json()
    assert read["raw"] == made["raw"]
    assert [p["id"] for p in (await client.get("/posts/1/replies.json")).json()] == [2, made["id"]]
    assert [p["id"] for p in (await client.get("/posts/1/replies.json?after=2")).json()] == [made["id"]]


async def test_a_form_works_like_json(client: httpx.AsyncClient) -> None:
    fields = {"raw": LONG_ENOUGH, "topic_id": "10", "reply_to_post_number": "2"}
    answer = await client.post("/posts.json", data=fields, headers=BOT_HEADERS)
    assert answer.status_code == 200
    assert answer.json()["reply_to_post_number"] == 2


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"raw": "too short"}, 422),
        ({"raw": "   "}, 422),
        ({"raw": "x" * 32_001}, 422),
        ({"raw": "x" * 32_000}, 200),
        ({"topic_id": 12}, 422),
        ({"topic_id": 11}, 422),
        ({"topic_id": 999}, 422),
        ({"topic_id": "words"}, 422),
        ({"topic_id": None, "title": "short", "category": 1}, 422),
        ({"topic_id": None, "title": "Long enough for a title", "category": 1}, 200),
        ({"topic_id": None, "title": "Long enough for a title", "category": 99}, 422),
        ({"topic_id": None, "title": "Long enough for a title", "category": 2}, 403),
        ({"raw": " ".join(["@alice"] * 11)}, 422),
        ({"raw": " ".join(["@alice"] * 10)}, 200),
        ({"raw": 5}, 400),
    ],
)
async def test_refusals(client: httpx.AsyncClient, fields: dict[str, Any], status: int) -> None:
    answer = await client.post("/posts.json", json={"raw": LONG_ENOUGH, "topic_id": 10} | fields, headers=BOT_HEADERS)
    assert answer.status_code == status
    if status == 422:
        assert answer.json()["action"] == "create_post"
        assert answer.json()["errors"]


async def test_staff_may_post_in_a_closed_topic(client: httpx.AsyncClient) -> None:
    assert (await post(client, LONG_ENOUGH, as_user="boss", topic_id=12)).status_code == 200


@pytest.mark.parametrize(("links", "status"), [(2, 200), (3, 422)])
async def test_new_members_get_two_links(client: httpx.AsyncClient, links: int, status: int) -> None:
    raw = " and ".join(f"[link](https://example.org/{i})" for i in range(links))
    assert (await post(client, raw, as_user="newbie")).status_code == status
    assert (await post(client, raw, as_user="alice")).status_code == 200


async def test_the_same_words_are_refused_for_five_minutes_in_any_topic(
    client: httpx.AsyncClient, clock: Clock
) -> None:
    assert (await post(client, LONG_ENOUGH)).status_code == 200
    clock.tick(200)
    assert (await post(client, LONG_ENOUGH, topic_id=13)).status_code == 422
    clock.tick(101)
    assert (await post(client, LONG_ENOUGH, topic_id=13)).status_code == 200


async def test_an_identical_create_gets_the_first_post_for_two_minutes(client: httpx.AsyncClient, clock: Clock) -> None:
    first = (await post(client, LONG_ENOUGH, reply_to_post_number=1)).json()["id"]
    clock.tick(119)
    assert (await post(client, LONG_ENOUGH, reply_to_post_number=1)).json()["id"] == first
    clock.tick(2)
    assert (await post(client, LONG_ENOUGH, reply_to_post_number=1)).status_code == 422


async def test_one_post_in_five_seconds(client: httpx.AsyncClient, clock: Clock) -> None:
    assert (await post(client, LONG_ENOUGH)).status_code == 200
    clock.tick(3)
    second = await post(client, f"{LONG_ENOUGH} Again.")
    assert (second.status_code, second.headers["retry-after"]) == (429, "2")
    assert second.json()["extras"]["wait_seconds"] == 2
    clock.tick(2)
    assert (await post(client, f"{LONG_ENOUGH} Again.")).status_code == 200


async def test_three_replies_in_a_row_are_enough(client: httpx.AsyncClient, clock: Clock) -> None:
    statuses = []
    for i in range(4):
        statuses.append((await post(client, f"{LONG_ENOUGH} {i}")).status_code)
        clock.tick(6)
    assert statuses == [200, 200, 200, 422]
    assert (await post(client, LONG_ENOUGH, as_user="alice")).status_code == 200
    assert (await post(client, f"{LONG_ENOUGH} 4")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Api-Key": "wrong", "Api-Username": "ariane"},
        {"Api-Key": "", "Api-Username": ""},
        {"Api-Key": KEY, "Api-Username": "alice"},
        {"Api-Key": KEY, "Api-Username": "nobody"},
        {"Api-Key": KEY},
        {"Api-Username": "ariane"},
    ],
)
async def test_a_wrong_key_is_refused_even_for_reading(client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    answer = await client.get("/posts/1.json", headers=headers)
    assert (answer.status_code, answer.json()["error_type"]) == (403, "invalid_access")


async def test_writing_needs_a_key(client: httpx.AsyncClient) -> None:
    answer = await client.post("/posts.json", json={"raw": LONG_ENOUGH, "topic_id": 10})
    assert (answer.status_code, answer.json()["error_type"]) == (403, "not_logged_in")


async def test_keys_share_sixty_requests_a_minute(client: httpx.AsyncClient, clock: Clock) -> None:
    for _ in range(60):
        assert (await client.get("/posts/1.json", headers=BOT_HEADERS)).status_code == 200
    refused = await client.get("/posts/1.json", headers={"Api-Key": ADMIN_KEY, "Api-Username": "boss"})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    assert (await client.get("/posts/1.json")).status_code == 200
    clock.tick(61)
    assert (await client.get("/posts/1.json", headers=BOT_HEADERS)).status_code == 200


async def test_anonymous_readers_get_fifty_requests_in_ten_seconds(client: httpx.AsyncClient, clock: Clock) -> None:
    codes = [(await client.get("/posts/1.json")).status_code for _ in range(51)]
    assert codes == [200] * 50 + [429]
    clock.tick(11)
    assert (await client.get("/posts/1.json")).status_code == 200


async def test_a_queued_post_waits_for_approval(tmp_path: Path, clock: Clock) -> None:
    app = simulator(tiny_forum(tmp_path), clock)
    room = room_of(app)
    room.switches.turn_on(Fault.ENQUEUE, times=1)
    async with browser(app) as client:
        answer = (await post(client, LONG_ENOUGH)).json()
        assert (answer["action"], answer["success"], answer.get("id")) == ("enqueued", True, None)
        assert len((await client.get("/t/10.json")).json()["post_stream"]["stream"]) == 4
        # an identical create tells the same again and queues nothing more
        assert (await post(client, LONG_ENOUGH)).json()["pending_post"]["id"] == answer["pending_post"]["id"]
        assert len(room.desk.pending) == 1
        approved = await client.post(f"/simulator/pending/{answer['pending_post']['id']}/approve")
        assert approved.json()["username"] == "ariane"
        assert len((await client.get("/t/10.json")).json()["post_stream"]["stream"]) == 5
        assert room.desk.pending == []


async def test_a_bot_edits_and_deletes_only_its_own_posts(client: httpx.AsyncClient) -> None:
    mine = (await post(client, LONG_ENOUGH)).json()["id"]
    edit = {"post": {"raw": f"{LONG_ENOUGH} Corrected."}}
    edited = await client.put(f"/posts/{mine}.json", json=edit, headers=BOT_HEADERS)
    assert (edited.json()["post"]["raw"], edited.json()["post"]["version"]) == (f"{LONG_ENOUGH} Corrected.", 2)
    assert (await client.put("/posts/1.json", json=edit, headers=BOT_HEADERS)).status_code == 403
    assert (await client.delete("/posts/1.json", headers=BOT_HEADERS)).status_code == 403
    assert (await client.delete(f"/posts/{mine}.json", headers=BOT_HEADERS)).status_code == 200
    assert (await client.get(f"/posts/{mine}.json")).status_code == 404


@pytest.mark.parametrize("body", [b"", b"[]", b"not json", b'{"raw": ', b"[" * 100_000])
async def test_a_body_that_is_no_object_is_refused(client: httpx.AsyncClient, body: bytes) -> None:
    headers = BOT_HEADERS | {"Content-Type": "application/json"}
    assert (await client.post("/posts.json", content=body, headers=headers)).status_code == 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=60), lambda x: st.lists(x, max_size=3)
)
FIELDS = st.sampled_from(["raw", "topic_id", "reply_to_post_number", "title", "category", "archetype"])
BODIES = st.dictionaries(FIELDS, JSON, max_size=6).map(json.dumps) | st.text(max_size=60)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=BODIES, kind=st.sampled_from(["application/json", "application/x-www-form-urlencoded", ""]))
def test_no_body_breaks_it(app: FastAPI, body: str, kind: str) -> None:
    async def send() -> int:
        async with browser(app) as client:
            headers = BOT_HEADERS | {"Content-Type": kind}
            return (await client.post("/posts.json", content=body.encode(), headers=headers)).status_code

    assert asyncio.run(send()) in {200, 400, 422}


@pytest.mark.parametrize(
    ("raw", "status", "kept"),
    [
        (r"A lone surrogate \ud800 is no text at all", 400, None),
        (r"A null character \u0000 is not kept", 200, "A null character  is not kept"),
        (r"Line one of it\n\nline two of it  \n", 200, "Line one of it\n\nline two of it"),
    ],
)
async def test_odd_characters(client: httpx.AsyncClient, raw: str, status: int, kept: str | None) -> None:
    headers = BOT_HEADERS | {"Content-Type": "application/json"}
    answer = await client.post("/posts.json", content=f'{{"raw": "{raw}", "topic_id": 10}}', headers=headers)
    assert (answer.status_code, answer.json().get("raw")) == (status, kept)
