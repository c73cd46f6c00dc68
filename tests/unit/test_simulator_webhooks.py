"""What the simulated forum tells its webhook, and how deliveries go wrong on demand."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.discourse.signature import is_signed
from service.simulator.app import create_simulator
from service.simulator.forum import Author, Forum
from service.simulator.limits import NO_RATES
from service.simulator.model import Category, Event
from service.simulator.switches import Fault
from service.simulator.webhooks import ContentType, Hook, Webhooks
from tests.simulated import Clock, browser, room_of, tiny_forum

SECRET = "a secret of some length"


class Receiver:
    """An endpoint that keeps what it gets."""

    def __init__(self, status: int = 200) -> None:
        self.requests: list[httpx.Request] = []
        self.status = status

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(self.status)

    @property
    def events(self) -> list[str]:
        return [r.headers["x-discourse-event"] for r in self.requests]


def hooked(forum: Forum, receiver: Callable[[httpx.Request], httpx.Response], **options: Any) -> Webhooks:
    app = create_simulator(
        forum,
        hook=Hook("http://bot.example/webhooks/discourse", SECRET, **options),
        clock=Clock(),
        rng=random.Random(1),
        webhook_client=httpx.AsyncClient(transport=httpx.MockTransport(receiver)),
    )
    webhooks = room_of(app).webhooks
    assert webhooks
    return webhooks


@pytest.fixture
def forum(tmp_path: Path) -> Forum:
    return tiny_forum(tmp_path)


def by(forum: Forum, name: str) -> Author:
    member = forum.member(name)
    assert member
    return Author(member, Clock()())


@pytest.mark.parametrize("kind", list(ContentType))
async def test_a_delivery_is_signed_over_its_raw_bytes(forum: Forum, kind: ContentType) -> None:
    receiver = Receiver()
    webhooks = hooked(forum, receiver, content_type=kind)
    forum.create_post(by(forum, "alice"), topic_id=10, raw="Où est la clé, @ariane ?")
    await webhooks.drain()
    assert receiver.events == ["post_created", "notification_created"]
    request = receiver.requests[0]
    assert is_signed([SECRET.encode()], request.content, request.headers["x-discourse-event-signature"])
    assert request.headers["content-type"] == kind.value
    assert request.headers["x-discourse-event-type"] == "post"
    assert request.headers["x-discourse-instance"] == "http://127.0.0.1:4200"
    post = json.loads(request.content)["post"]
    assert (post["raw"], post["topic_title"], post["category_id"]) == (
        "Où est la clé, @ariane ?",
        "How to bleed a radiator",
        1,
    )
    assert "tags" not in post and "read_restricted" not in post


async def test_every_change_has_its_events(forum: Forum) -> None:
    receiver = Receiver()
    webhooks = hooked(forum, receiver)

    async def told(change: Callable[[], object]) -> list[str]:
        receiver.requests.clear()
        change()
        await webhooks.drain()
        return receiver.events

    boss, alice, now = by(forum, "boss"), by(forum, "alice"), Clock()()
    new = await told(lambda: forum.create_topic(alice, title="Another topic here", category_id=1, raw="Body"))
    assert new == ["topic_created", "post_created"]
    assert await told(lambda: forum.edit_post(1, raw="Edited", now=now)) == ["post_edited"]
    assert await told(lambda: forum.update_topic(replace(forum.topics[10], title="New title"), now=now)) == [
        "topic_edited"
    ]
    assert await told(lambda: forum.delete_post(alice, 4)) == ["post_edited", "post_destroyed"]
    assert forum.posts[4].user_deleted and "insult" not in forum.posts[4].raw
    assert await told(lambda: forum.delete_post(boss, 2)) == ["post_destroyed"]
    assert await told(lambda: forum.recover_post(2, now=now)) == ["post_recovered"]
    assert await told(lambda: forum.delete_post(boss, 1)) == ["post_destroyed", "topic_destroyed"]
    assert await told(lambda: forum.recover_post(1, now=now)) == ["post_recovered", "topic_recovered"]
    assert await told(lambda: forum.set_category(Category(1, "Garden", "garden", True))) == ["category_updated"]
    assert await told(lambda: forum.set_category(Category(9, "New", "new"))) == ["category_created"]
    assert await told(lambda: forum.hide_post(1, hidden=True, now=now)) == []


async def test_an_edit_notifies_only_those_it_mentions_first(forum: Forum) -> None:
    receiver = Receiver()
    webhooks = hooked(forum, receiver)
    post = forum.create_post(by(forum, "alice"), topic_id=10, raw="Nobody in particular")
    forum.edit_post(post.id, raw="Dear @ariane", now=Clock()())
    forum.edit_post(post.id, raw="Dear @ariane!", now=Clock()())
    await webhooks.drain()
    assert receiver.events == ["post_created", "post_edited", "notification_created", "post_edited"]


async def test_only_ticked_events_are_sent(forum: Forum) -> None:
    receiver = Receiver()
    webhooks = hooked(forum, receiver, events=frozenset({Event.NOTIFICATION_CREATED}))
    forum.create_post(by(forum, "alice"), topic_id=10, raw="Dear @ariane")
    await webhooks.drain()
    assert receiver.events == ["notification_created"]


async def test_private_things_are_sent_too(forum: Forum) -> None:
    receiver = Receiver()
    webhooks = hooked(forum, receiver)
    forum.create_post(by(forum, "boss"), topic_id=11, raw="Only for us, @ariane")  # and nobody outside is notified
    forum.create_post(by(forum, "boss"), topic_id=10, raw="A whisper, @ariane", post_type=4)
    await webhooks.drain()
    bodies = [json.loads(r.content) for r in receiver.requests]
    assert [b["post"]["raw"] for b in bodies] == ["Only for us, @ariane", "A whisper, @ariane"]


def _raise(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("no one there", request=request)


@pytest.mark.parametrize(
    ("receiver", "status", "note"),
    [(Receiver(200), 200, ""), (Receiver(500), 500, ""), (Receiver(404), 404, ""), (_raise, None, "ConnectError")],
)
async def test_a_failed_delivery_is_remembered_and_not_repeated(
    forum: Forum, receiver: Callable[[httpx.Request], httpx.Response], status: int | None, note: str
) -> None:
    webhooks = hooked(forum, receiver)
    forum.create_post(by(forum, "alice"), topic_id=10, raw="Hello")
    await webhooks.drain()
    (delivery,) = webhooks.kept.values()
    assert (delivery.status, delivery.note) == (status, note)
    assert delivery.took_ms is not None
    if isinstance(receiver, Receiver):
        assert len(receiver.requests) == 1


async def test_redelivering_sends_the_same_bytes_id_and_signature(forum: Forum) -> None:
    receiver = Receiver()
    webhooks = hooked(forum, receiver)
    post = forum.create_post(by(forum, "alice"), topic_id=10, raw="Hello")
    forum.edit_post(post.id, raw="Hello again", now=Clock()())
    webhooks.redeliver(1)
    await webhooks.drain()
    first, _, again = receiver.requests
    for name in ("x-discourse-event-id", "x-discourse-event-signature", "x-discourse-event"):
        assert first.headers[name] == again.headers[name]
    assert first.content == again.content


async def _faulty(forum: Forum, fault: Fault, **options: Any) -> Receiver:
    receiver = Receiver()
    app = create_simulator(
        forum,
        hook=Hook("http://bot.example/", SECRET),
        rng=random.Random(1),
        webhook_client=httpx.AsyncClient(transport=httpx.MockTransport(receiver)),
    )
    room = room_of(app)
    room.switches.turn_on(fault, **options)
    for i in range(6):
        forum.create_post(by(forum, "alice"), topic_id=10, raw=f"Post {i}")
    assert room.webhooks
    await room.webhooks.drain()
    return receiver


async def test_webhooks_go_wrong_on_demand(forum: Forum) -> None:
    def raws(receiver: Receiver) -> list[str]:
        return [json.loads(r.content)["post"]["raw"] for r in receiver.requests]

    in_order = [f"Post {i}" for i in range(6)]
    assert raws(await _faulty(forum, Fault.HOOK_DROP, times=2)) == in_order[2:]
    doubled = await _faulty(forum, Fault.HOOK_DOUBLE, times=1)
    assert sorted(raws(doubled)) == sorted([*in_order, "Post 0"])
    shuffled = raws(await _faulty(forum, Fault.HOOK_SHUFFLE, seconds=0.05))
    assert shuffled != in_order
    assert sorted(shuffled) == in_order
    assert raws(await _faulty(forum, Fault.HOOK_DELAY, times=1, seconds=0.05)) == [*in_order[1:], "Post 0"]
    forged = await _faulty(forum, Fault.HOOK_FORGE, times=1)
    good = [is_signed([SECRET.encode()], r.content, r.headers["x-discourse-event-signature"]) for r in forged.requests]
    assert good == [False] + [True] * 5


async def test_changes_over_rest_are_told(forum: Forum) -> None:
    receiver = Receiver()
    app = create_simulator(
        forum,
        hook=Hook("http://bot.example/", SECRET),
        api_keys={"k": None},
        limits=NO_RATES,
        webhook_client=httpx.AsyncClient(transport=httpx.MockTransport(receiver)),
    )
    headers = {"Api-Key": "k", "Api-Username": "boss"}
    async with browser(app) as client:
        await client.delete("/posts/2.json", headers=headers)
        await client.put("/posts/2/recover.json", headers=headers)
        await client.put("/posts/2.json", json={"post": {"raw": "Edited over the REST API."}}, headers=headers)
        await client.post("/posts.json", json={"raw": "Posted over the REST API.", "topic_id": 10}, headers=headers)
        await client.post("/simulator/ping")
    webhooks = room_of(app).webhooks
    assert webhooks
    await webhooks.drain()
    assert receiver.events == ["post_destroyed", "post_recovered", "post_edited", "post_created", "ping"]
