"""A forum that refuses, lies, breaks off or changes in mid-answer: a decided outcome, nothing lost, nothing doubled."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from service.answer.ports import Answerer
from service.domain import Draft, Question, Source, Zone
from service.simulator.forum import Author
from service.simulator.switches import Fault, Switch
from tests.e2e.loop import QUESTION, Loop, whole_loop
from tests.e2e.test_silence import Scene

MANY = {"per_member_per_hour": 1000, "per_topic_per_hour": 1000}


@pytest.fixture
async def loop(database_url: str, tmp_path: Path) -> AsyncIterator[Loop]:
    async with whole_loop(database_url, tmp_path, limits=MANY) as running:
        yield running


async def outcome(loop: Loop, post: int) -> tuple[str, str | None, int]:
    """What is recorded of a question, and how many replies it has."""
    trace = await loop.trace(post)
    assert trace is not None
    return trace.outcome, trace.reason, len(loop.replies(loop.room.forum.posts[post].number))


async def edited(loop: Loop, scene: Scene, post: int) -> None:
    """A later event of the same post, which must change nothing."""
    forum = loop.room.forum
    forum.edit_post(post, raw=f"{forum.posts[post].raw} Please.", now=scene.now + timedelta(seconds=1))
    await loop.drain()


@pytest.mark.parametrize(
    ("status", "reason"), [(422, "forum_refused"), (413, "forum_refused"), (403, "forum_forbids"), (404, "topic_gone")]
)
async def test_a_refusal_is_final(loop: Loop, status: int, reason: str) -> None:
    scene = Scene(loop)
    post = scene.post()
    loop.room.switches.turn_on(Fault.STATUS, method="POST", path="/posts.json", times=1, status=status)
    await loop.drain()
    assert await outcome(loop, post) == ("skipped", reason, 0)
    await edited(loop, scene, post)
    assert await outcome(loop, post) == ("skipped", reason, 0)


BROKEN: dict[str, tuple[Fault, dict[str, Any]]] = {
    "conflict": (Fault.STATUS, {"status": 409}),
    "too many, in HTML": (Fault.STATUS, {"status": 429, "body": "html", "retry_after_seconds": 1}),
    "too many, in text": (Fault.STATUS, {"status": 429, "body": "text"}),
    "read-only": (Fault.STATUS, {"status": 503, "body": "html"}),
    "bad gateway": (Fault.STATUS, {"status": 502, "body": "html"}),
    "crash": (Fault.STATUS, {"status": 500, "body": "text"}),
    "firewall": (Fault.STATUS, {"status": 403, "body": "html"}),
    "a proxy's 404": (Fault.STATUS, {"status": 404, "body": "html"}),
    "login page": (Fault.STATUS, {"status": 200, "body": "html"}),
    "redirect": (Fault.STATUS, {"status": 302, "body": "html"}),
    "other JSON": (Fault.STATUS, {"status": 200, "body": "json"}),
    "garbage": (Fault.GARBAGE, {}),
    "truncated": (Fault.TRUNCATED, {}),
    "lost": (Fault.LOST, {}),
}


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/posts.json"), ("GET", "/posts/"), ("GET", "/t/"), ("GET", "/u/")]
)
async def test_a_broken_answer_loses_and_doubles_nothing(loop: Loop, method: str, path: str) -> None:
    scene, switches = Scene(loop), loop.room.switches
    posts = {}
    for number, (name, (fault, options)) in enumerate(BROKEN.items()):
        switches.turn_on(fault, method=method, path=path, times=1, **options)
        # Told apart by a number, not by words: those no source has, and with them the score is near the border of weak.
        posts[name] = scene.post(f"{QUESTION} ({number})")
        await loop.drain()
        switches.turn_off()
    found = {name: await outcome(loop, post) for name, post in posts.items()}
    assert found == dict.fromkeys(posts, ("posted", "answered", 1))


async def test_a_forum_that_forgets_its_categories_does_not_empty_the_index(loop: Loop) -> None:
    scene = Scene(loop)
    switches = [
        loop.room.switches.turn_on(Fault.STATUS, method="GET", path=path, times=2, status=200)
        for path in ("/site.json", "/categories.json")
    ]
    loop.room.forum.set_category(replace(loop.room.forum.categories[1], name="Gardens"))
    await loop.drain()
    assert not {switch.id for switch in switches} & {switch.id for switch in loop.room.switches}
    post = scene.post()
    await loop.drain()
    assert await outcome(loop, post) == ("posted", "answered", 1)


async def test_a_reply_that_waits_for_approval_is_not_sent_again(loop: Loop) -> None:
    scene = Scene(loop)
    post = scene.post()
    loop.room.switches.turn_on(Fault.ENQUEUE, times=1)
    await loop.drain()
    await edited(loop, scene, post)
    (waiting,) = loop.room.desk.pending
    assert await outcome(loop, post) == ("posted", "answered", 0)
    loop.room.desk.approve(waiting.id)
    await loop.drain()
    assert await outcome(loop, post) == ("posted", "answered", 1)


class Interrupted:
    """An answerer while whose first draft something happens on the forum."""

    def __init__(self, answerer: Answerer, happens: Callable[[], None]) -> None:
        self._answerer = answerer
        self._happens: list[Callable[[], None]] = [happens]

    async def draft(self, question: Question, sources: Sequence[Source], zone: Zone) -> Draft:
        draft = await self._answerer.draft(question, sources, zone)
        while self._happens:
            self._happens.pop()()
        return draft


def interrupted(loop: Loop, happens: Callable[[], None]) -> Loop:
    stages = loop.services.stages
    stages = replace(stages, answerer=Interrupted(stages.answerer, happens))
    return replace(loop, services=replace(loop.services, stages=stages))


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("deleted", "post_gone"),
        ("hidden", "post_hidden"),
        ("rewritten", "not_addressed"),
        ("topic deleted", "post_gone"),
        ("topic closed", "topic_closed"),
        ("topic private", "post_gone"),
    ],
)
async def test_a_question_that_changes_in_mid_answer_gets_none(loop: Loop, what: str, reason: str) -> None:
    scene, forum = Scene(loop), loop.room.forum
    boss = Author(forum.members[1], scene.now)
    topic = scene.topic()
    post = scene.post(topic=topic)

    def happens() -> None:
        match what:
            case "deleted":
                forum.delete_post(boss, post)
            case "hidden":
                forum.hide_post(post, hidden=True, now=scene.now)
            case "rewritten":
                forum.edit_post(post, raw="Never mind, I found it.", now=scene.now + timedelta(seconds=1))
            case "topic deleted":
                forum.delete_post(boss, scene.first_post(topic).id)
            case "topic closed":
                forum.update_topic(replace(forum.topics[topic], closed=True), now=scene.now)
            case _:
                forum.update_topic(replace(forum.topics[topic], category_id=2), now=scene.now)

    await interrupted(loop, happens).drain()
    trace = await loop.trace(post)
    assert trace is not None
    assert (trace.outcome, trace.reason) == ("skipped", reason)
    assert loop.replies(topic=topic) == []


@pytest.mark.parametrize("what", ["deleted", "hidden", "moved", "topic unlisted", "topic private"])
async def test_a_source_that_goes_in_mid_answer_is_not_cited(loop: Loop, what: str) -> None:
    scene, forum = Scene(loop), loop.room.forum
    topic = scene.topic("How to bleed a radiator that gurgles")
    source = scene.post("To bleed a radiator that gurgles, open the valve with the zqkey.", topic=topic)
    await loop.drain()
    post = scene.post(QUESTION)

    def happens() -> None:
        match what:
            case "deleted":
                forum.delete_post(Author(forum.members[1], scene.now), source)
            case "hidden":
                forum.hide_post(source, hidden=True, now=scene.now)
            case "moved":
                forum.add(replace(forum.posts[source], number=77))
            case "topic unlisted":
                forum.update_topic(replace(forum.topics[topic], visible=False), now=scene.now)
            case _:
                forum.update_topic(replace(forum.topics[topic], category_id=2), now=scene.now)

    control = scene.post(f"{QUESTION} First.", topic=scene.topic())
    await loop.drain()
    assert f"/{topic}/2)" in loop.replies(topic=forum.posts[control].topic_id)[0]
    assert (await outcome(loop, post))[0] == "posted"
    again = scene.post(f"{QUESTION} Once more.", topic=scene.topic())
    await interrupted(loop, happens).drain()
    (reply,) = loop.replies(topic=forum.posts[again].topic_id)
    assert f"/{topic}/2)" not in reply
    assert "zqkey" not in reply
    trace = await loop.trace(again)
    assert trace is not None
    assert "source_gone" in trace.trace.notes


async def test_a_topic_that_closes_just_before_the_post_refuses_it(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, forum, switches = Scene(loop), loop.room.forum, loop.room.switches
    topic = scene.topic()
    post = scene.post(topic=topic)
    take = switches.take

    def closing(fault: Fault, *, method: str = "", path: str = "") -> Switch | None:
        if method == "POST" and not forum.topics[topic].closed:  # after our last look
            forum.update_topic(replace(forum.topics[topic], closed=True), now=scene.now)
        return take(fault, method=method, path=path)

    monkeypatch.setattr(switches, "take", closing)
    await loop.drain()
    trace = await loop.trace(post)
    assert trace is not None
    assert (trace.outcome, trace.reason, loop.replies(topic=topic)) == ("skipped", "forum_refused", [])
