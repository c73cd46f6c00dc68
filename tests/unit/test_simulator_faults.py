"""REST answers that go wrong on demand, in this process and over a real connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from service.simulator.switches import Fault, Switches, switch_from_json
from tests.simulated import BOT_HEADERS, Clock, browser, room_of, simulator, tiny_forum

RAW = "Twenty characters, or a few more."


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    return simulator(tiny_forum(tmp_path), Clock())


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """The simulator behind a real socket."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="off"))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield client
    server.should_exit = True
    await task


@pytest.mark.parametrize(
    ("options", "kind", "headers"),
    [
        ({"status": 429, "body": "html", "retry_after_seconds": 7}, "text/html", {"retry-after": "7"}),
        ({"status": 429, "body": "text"}, "text/plain", {}),
        ({"status": 503}, "application/json", {}),
        ({"status": 409}, "application/json", {}),
        ({"status": 403}, "application/json", {}),
    ],
)
async def test_statuses(app: FastAPI, options: dict[str, Any], kind: str, headers: dict[str, str]) -> None:
    room = room_of(app)
    async with browser(app) as client:
        body = {"fault": "status", "path": "/posts", "method": "post", "times": 1} | options
        assert (await client.post("/simulator/switches", json=body)).status_code == 200
        assert (await client.get("/posts/1.json")).status_code == 200
        draft = {"raw": RAW, "topic_id": 10}
        refused = await client.post("/posts.json", json=draft, headers=BOT_HEADERS)
        assert (refused.status_code, refused.headers["content-type"].partition(";")[0]) == (options["status"], kind)
        assert headers.items() <= dict(refused.headers).items()
        assert len(room.forum.posts) == 9
        assert (await client.post("/posts.json", json=draft, headers=BOT_HEADERS)).status_code == 200
        assert (await client.get("/simulator/switches.json")).json() == []


async def test_a_lost_response_leaves_the_post_and_a_retry_finds_it(app: FastAPI) -> None:
    room = room_of(app)
    draft = {"raw": RAW, "topic_id": 10, "reply_to_post_number": 1}
    async with served(app) as client:
        room.switches.turn_on(Fault.LOST, times=1, path="/posts.json")
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post("/posts.json", json=draft, headers=BOT_HEADERS)
        assert room.forum.posts[10].raw == RAW
        again = await client.post("/posts.json", json=draft, headers=BOT_HEADERS)
        assert (again.status_code, again.json()["id"], len(room.forum.posts)) == (200, 10, 10)


async def test_in_this_process_a_lost_response_is_the_error_a_client_would_see(app: FastAPI) -> None:
    room_of(app).switches.turn_on(Fault.LOST, times=1)
    async with browser(app) as client:
        with pytest.raises(httpx.ReadError):
            await client.post("/posts.json", json={"raw": RAW, "topic_id": 10}, headers=BOT_HEADERS)
    assert len(room_of(app).forum.posts) == 10


async def test_truncated_and_garbage(app: FastAPI) -> None:
    room = room_of(app)
    async with served(app) as client:
        room.switches.turn_on(Fault.TRUNCATED, times=1)
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get("/posts/1.json")
        room.switches.turn_on(Fault.GARBAGE, times=1)
        answer = await client.get("/posts/1.json")
        assert answer.status_code == 200
        with pytest.raises(ValueError, match=r"codec|JSON|Expecting"):
            answer.json()
        assert (await client.get("/posts/1.json")).json()["id"] == 1


async def test_slow(app: FastAPI) -> None:
    room_of(app).switches.turn_on(Fault.SLOW, times=1, seconds=0.5, path="/posts/1")
    async with served(app) as client:
        with pytest.raises(httpx.ReadTimeout):
            await client.get("/posts/1.json", timeout=0.1)
        assert (await client.get("/posts/1.json", timeout=2)).status_code == 200


async def test_pages_and_switches_always_behave(app: FastAPI) -> None:
    room_of(app).switches.turn_on(Fault.STATUS)
    async with browser(app) as client:
        assert (await client.get("/")).status_code == 200
        assert (await client.get("/simulator/switches.json")).status_code == 200
        assert (await client.get("/posts/1.json")).status_code == 500
        assert (await client.delete("/simulator/switches")).json() == []
        assert (await client.get("/posts/1.json")).status_code == 200


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"fault": "nonsense"},
        {"fault": "status", "status": 200},
        {"fault": "status", "status": "many"},
        {"fault": "slow", "seconds": 1e9},
        {"fault": "slow", "seconds": "nan"},
        {"fault": "slow", "times": 0},
        {"fault": "slow", "colour": "red"},
        {"fault": "status", "body": "poem"},
    ],
)
async def test_switches_that_make_no_sense_are_refused(app: FastAPI, values: dict[str, Any]) -> None:
    async with browser(app) as client:
        assert (await client.post("/simulator/switches", json=values)).status_code == 422
        assert (await client.get("/simulator/switches.json")).json() == []


def test_a_switch_is_used_up_by_matching_requests_only() -> None:
    switches = Switches()
    switch_from_json(switches, {"fault": "slow", "times": "2", "path": "/t/", "method": "get", "seconds": ""})
    assert switches.take(Fault.SLOW, method="POST", path="/t/1.json") is None
    assert switches.take(Fault.SLOW, method="GET", path="/posts.json") is None
    assert switches.take(Fault.STATUS, method="GET", path="/t/1.json") is None
    taken = [switches.take(Fault.SLOW, method="GET", path="/t/1.json") is not None for _ in range(3)]
    assert taken == [True, True, False]
    assert list(switches) == []
