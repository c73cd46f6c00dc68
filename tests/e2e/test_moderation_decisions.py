"""A moderator decides on the pages, the worker carries it out on the forum: once, whatever is clicked or killed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from service.demo.processes import Children
from service.simulator.switches import Fault, Switch
from service.store.pool import connection
from tests.e2e.loop import QUESTION, Loop, whole_loop
from tests.e2e.processes import start_worker, until_idle, until_met
from tests.moderators import Pages, open_pages


@asynccontextmanager
async def moderator_of(loop: Loop) -> AsyncIterator[Pages]:
    """The pages, a moderator signed in."""
    async with open_pages(loop.services.pool, loop.settings) as pages:
        await pages.sign_in()
        yield pages


@pytest.fixture
async def loop(database_url: str, tmp_path: Path) -> AsyncIterator[Loop]:
    async with whole_loop(database_url, tmp_path, answering="shadow") as running:
        yield running


async def asked_in_shadow(loop: Loop) -> dict[str, Any]:
    post = await loop.say(QUESTION)
    await loop.drain()
    trace = await loop.trace(post["id"])
    assert trace is not None
    assert (trace.outcome, loop.replies()) == ("shadowed", [])
    return post


async def deeds(loop: Loop) -> list[tuple[str, str | None]]:
    async with connection(loop.services.pool) as conn:
        cursor = await conn.execute("SELECT kind, outcome FROM answer_deeds ORDER BY deed_id")
        return [(kind, outcome) for kind, outcome in await cursor.fetchall()]


async def test_an_answer_is_posted_from_shadow_corrected_and_hidden(loop: Loop) -> None:
    post = await asked_in_shadow(loop)
    async with moderator_of(loop) as pages:
        page = f"/answers/{post['id']}"
        kept = await pages.text(page)
        assert "in shadow" in kept
        clicks = await asyncio.gather(*(pages.post(f"{page}/post", {"why": ""}) for _ in range(4)))
        assert sorted(click.headers["location"].partition("done=")[2] for click in clicks) == [*["again"] * 3, "post"]
        await loop.drain()
        [reply] = loop.replies(post["post_number"])
        assert reply.splitlines()[0][:40] in kept.replace("&#39;", "'").replace("&#34;", '"')
        assert "posted" in await pages.text(page)

        better = "Open the valve a quarter turn until water comes, says a moderator."
        await pages.post(f"{page}/edit", {"raw": better, "why": "clearer"})
        await loop.drain()
        assert loop.replies(post["post_number"]) == [better]
        again = await pages.post(f"{page}/edit", {"raw": f"{better} Twice.", "why": "clearer"})
        assert again.headers["location"].endswith("done=again")

        await pages.post(f"{page}/hide", {"why": "no use"})
        await loop.drain()
    ours = [one for one in loop.room.forum.posts.values() if one.user_id == 1000]
    assert [bool(one.deleted_at or one.user_deleted) for one in ours] == [True]
    assert await deeds(loop) == [("post", "done"), ("edit", "done"), ("hide", "done")]


async def test_an_answer_whose_source_went_is_not_posted(loop: Loop) -> None:
    post = await asked_in_shadow(loop)
    loop.room.switches.turn_on(Fault.HOOK_DROP)  # nobody tells us that they went
    trace = await loop.trace(post["id"])
    assert trace is not None
    for source in trace.trace.sources:
        await loop.client.post("/simulator/moderate", json={"deed": "delete", "target": source.post_id})
    async with moderator_of(loop) as pages:
        await pages.post(f"/answers/{post['id']}/post", {})
        await loop.drain()
    assert loop.replies() == []
    assert await deeds(loop) == [("post", "source_gone")]


async def test_a_correction_begins_with_what_our_post_says(loop: Loop) -> None:
    post = await asked_in_shadow(loop)
    page = f"/answers/{post['id']}"
    async with moderator_of(loop) as pages:
        await pages.post(f"{page}/post", {})
        await loop.drain()
        trace = await loop.trace(post["id"])
        assert trace is not None
        for source in trace.trace.sources:
            await loop.client.post("/simulator/moderate", json={"deed": "delete", "target": source.post_id})
        await loop.drain()
        assert "Bring what it says now" in await pages.text(page)
        await pages.post(f"{page}/read", {})
        await loop.drain()
        shown = (await pages.text(page)).partition('<textarea id="raw"')[2].partition("</textarea>")[0]
    [reply] = loop.replies(post["post_number"])
    assert unescape(shown.partition(">\n")[2]) == reply
    assert await deeds(loop) == [("post", "done"), ("read", "done")]


async def test_a_decision_whose_answer_was_lost_is_done_once(loop: Loop) -> None:
    post, on = await asked_in_shadow(loop), loop.room.switches.turn_on
    page, better = f"/answers/{post['id']}", "Open the valve a quarter turn, says a moderator."
    async with moderator_of(loop) as pages:
        await pages.post(f"{page}/post", {})
        await loop.drain()
        for kind, method in (("edit", "PUT"), ("hide", "DELETE")):
            on(Fault.LOST, method=method, path="/posts/", times=1)
            await pages.post(f"{page}/{kind}", {"raw": better, "why": "clearer"})
            await loop.drain()
            assert list(loop.room.switches) == []  # it was met
    [ours] = [one for one in loop.room.forum.posts.values() if one.user_id == 1000]
    assert bool(ours.deleted_at or ours.user_deleted)
    assert await deeds(loop) == [("post", "done"), ("edit", "done"), ("hide", "done")]


@pytest.mark.chaos
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_worker_killed_around_the_post_leaves_one_reply(loop: Loop, tmp_path: Path, moment: str) -> None:
    post = await asked_in_shadow(loop)
    # The forum takes the same text twice: that nothing is doubled is our doing alone.
    loop.room.desk.limits = replace(loop.room.desk.limits, memo_seconds=0, unique_post_minutes=0)
    on, replies = loop.room.switches.turn_on, f"/posts/{post['id']}/replies"
    if moment == "before":
        held: tuple[Switch, ...] = (on(Fault.SLOW, method="GET", path=replies, times=1, seconds=3),)
    else:  # the answer to the post is lost, and the look for it takes long
        on(Fault.SLOW, method="GET", path=replies, times=1, seconds=0)
        lost = on(Fault.LOST, method="POST", path="/posts.json", times=1)
        held = (lost, on(Fault.SLOW, method="GET", path=replies, times=1, seconds=3))
    async with moderator_of(loop) as pages, Children(tmp_path / "logs") as children:
        doomed = await start_worker(children, loop.settings, "doomed")
        await asyncio.gather(*(pages.post(f"/answers/{post['id']}/post", {}) for _ in range(2)))
        await until_met(loop, *held)
        assert len(loop.replies()) == (1 if moment == "after" else 0)
        doomed.process.kill()
        await doomed.process.wait()
        await start_worker(children, loop.settings, "second")
        await until_idle(loop)
    assert len(loop.replies(post["post_number"])) == len(loop.replies()) == 1
    assert await deeds(loop) == [("post", "done")]
