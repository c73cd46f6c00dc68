"""Real processes killed, stopped, doubled and cut off from their database in mid-answer: one reply a question."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from service.demo.processes import Children
from service.domain import Result
from service.embedded import DATA_FOLDER, ensure_running, postmaster
from service.simulator import misbehave
from service.simulator.forum import Author
from service.simulator.model import Member, Post
from service.simulator.posting import Desk, Draft, Pending
from service.simulator.state import BOT_ID
from service.simulator.switches import Fault, Switch
from service.store.migrate import migrate
from service.store.pool import connection
from tests.e2e.loop import QUESTION, Loop, whole_loop
from tests.e2e.processes import start_web, start_worker, until, until_idle, until_met

pytestmark = pytest.mark.chaos

HELD_SECONDS = 3600.0
"""What stands for "until the test lets it go"."""


@pytest.fixture
async def children(tmp_path: Path) -> AsyncIterator[Children]:
    async with Children(tmp_path / "logs") as started:
        yield started


def answered(loop: Loop) -> Counter[int | None]:
    """How many replies of the bot each post has, by its number."""
    return Counter(post.reply_to for post in loop.room.forum.posts.values() if post.user_id == 1000)


def make_forgetful(loop: Loop) -> None:
    """Let the forum take the same text twice: that nothing is doubled is then our doing alone."""
    loop.room.desk.limits = replace(loop.room.desk.limits, memo_seconds=0, unique_post_minutes=0)


async def answer_jobs(loop: Loop) -> list[str]:
    """The status of each job that answers."""
    async with connection(loop.services.pool) as conn:
        cursor = await conn.execute("SELECT status::text FROM procrastinate_jobs WHERE task_name = 'answer_post'")
        return [status for (status,) in await cursor.fetchall()]


@dataclass
class Holding:
    """Holds the request that the forum is to answer after HELD_SECONDS until the test lets it go."""

    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    carried_out: int = 0
    """The bot's posts that the forum took, or knew already."""

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sleep, submit = asyncio.sleep, Desk.submit_once

        async def wait(seconds: float) -> None:
            await (self.let_go.wait() if seconds == HELD_SECONDS else sleep(seconds))

        def submit_once(desk: Desk, member: Member, draft: Draft, *, approval: bool) -> Post | Pending:
            made = submit(desk, member, draft, approval=approval)
            self.carried_out += member.id == BOT_ID
            return made

        monkeypatch.setattr(misbehave, "asyncio", SimpleNamespace(sleep=wait))
        monkeypatch.setattr(Desk, "submit_once", submit_once)


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> Holding:
    holds = Holding()
    holds.install(monkeypatch)
    return holds


def hold(loop: Loop, moment: str, post: dict[str, int]) -> tuple[Switch, ...]:
    """Make the forum slow just where a worker is to be met."""
    on = loop.room.switches.turn_on
    match moment:
        case "before":
            return (on(Fault.SLOW, method="GET", path="/u/", times=1, seconds=3),)
        case "while":
            return (on(Fault.SLOW, method="POST", path="/posts.json", times=1, seconds=HELD_SECONDS),)
        case _:
            make_forgetful(loop)
            lost = on(Fault.LOST, method="POST", path="/posts.json", times=1)
            return lost, on(Fault.SLOW, method="GET", path=f"/posts/{post['id']}/replies", times=1, seconds=3)


@pytest.mark.parametrize("moment", ["before", "while", "after"])
async def test_a_worker_killed_around_its_post_leaves_one_reply(
    loop: Loop, children: Children, holding: Holding, moment: str
) -> None:
    post = await loop.say(QUESTION)
    held = hold(loop, moment, post)
    await loop.delivered()
    doomed = await start_worker(children, loop.settings, "doomed")
    await until_met(loop, *held)
    assert sum(answered(loop).values()) == (1 if moment == "after" else 0)
    if moment == "while":  # the other one is to post first
        await start_worker(children, loop.settings, "second")
    doomed.process.kill()
    await doomed.process.wait()
    if moment != "while":
        await start_worker(children, loop.settings, "second")
    await until_idle(loop)
    if moment == "while":  # the dead worker's request is carried out at last
        assert holding.carried_out == 1
        holding.let_go.set()

        async def carried_out() -> bool:
            return holding.carried_out == 2

        await until(carried_out)
    assert answered(loop) == {post["post_number"]: 1}
    trace = await loop.trace(post["id"])
    assert trace is not None
    assert (trace.outcome, trace.reason) == ("posted", Result.ANSWERED)


async def test_two_web_processes_and_a_hundred_deliveries_give_one_row_and_one_reply(
    loop: Loop, children: Children
) -> None:
    loop.room.switches.turn_on(Fault.HOOK_DROP)
    post = await loop.say(QUESTION)
    assert loop.room.webhooks is not None
    created = next(d for d in loop.room.webhooks.kept.values() if d.event == "post_created")
    webs = await asyncio.gather(*(start_web(children, loop.settings, name) for name in ("web1", "web2")))
    headers = {
        "X-Discourse-Instance": loop.settings.forum.base_url,
        "X-Discourse-Event-Type": "post",
        "X-Discourse-Event": "post_created",
        "X-Discourse-Event-Signature": created.signature,
    }
    async with httpx.AsyncClient(timeout=30, limits=httpx.Limits(max_connections=100)) as client:
        answers = await asyncio.gather(
            *(
                client.post(url, content=created.body, headers=headers | {"X-Discourse-Event-Id": str(n)})
                for n in range(50)
                for _, url in webs
            )
        )
    assert Counter(answer.json()["status"] for answer in answers) == {"stored": 1, "duplicate": 99}
    async with connection(loop.services.pool) as conn:
        assert (await conn.execute("SELECT FROM inbox")).rowcount == 1
    assert await answer_jobs(loop) == ["todo"]
    await asyncio.gather(*(start_worker(children, loop.settings, name) for name in ("worker1", "worker2")))
    await until_idle(loop)
    assert answered(loop) == {post["post_number"]: 1}


@pytest.mark.parametrize("grace_seconds", [20.0, 0.5], ids=["finishes", "hands over"])
async def test_a_worker_told_to_stop_in_mid_answer_leaves_one_reply(
    loop: Loop, children: Children, grace_seconds: float
) -> None:
    post = await loop.say(QUESTION)
    held = loop.room.switches.turn_on(Fault.SLOW, method="GET", path="/u/", times=1, seconds=2)
    await loop.delivered()
    stopped = await start_worker(children, loop.settings, "stopped", WORKER__SHUTDOWN_GRACE_SECONDS=grace_seconds)
    await until_met(loop, held)
    stopped.process.terminate()
    assert await asyncio.wait_for(stopped.process.wait(), 20) == 0
    if grace_seconds < 1:
        assert answered(loop) == {}
        assert await answer_jobs(loop) == ["todo"]
        await start_worker(children, loop.settings, "second")
        await until_idle(loop)
    assert answered(loop) == {post["post_number"]: 1}
    trace = await loop.trace(post["id"])
    assert trace is not None
    assert trace.outcome == "posted"


async def say(loop: Loop, n: int) -> Post:
    """Ask without the forum's REST calls, whose faults are for the bot."""
    member = loop.room.forum.members[2]
    by = Author(member, datetime.now(UTC))
    return loop.room.forum.create_post(by, topic_id=10, raw=f"{QUESTION} Number {n}.")


@pytest.mark.heavy
async def test_a_postgres_restarted_in_mid_answer_costs_no_question(
    own_server: Path, tmp_path: Path, children: Children
) -> None:
    url = await asyncio.to_thread(ensure_running, own_server, idle_stop_seconds=60)
    await migrate(url)
    async with whole_loop(url, tmp_path) as loop:
        hooks = loop.room.webhooks
        assert hooks is not None
        make_forgetful(loop)
        _, webhook_url = await start_web(children, loop.settings, "web")
        hooks.hook = replace(hooks.hook, url=webhook_url)
        held = [
            loop.room.switches.turn_on(Fault.SLOW, method=method, path=path, times=1, seconds=2)
            for method, path in (("GET", "/u/"), ("POST", "/posts.json"))
        ]
        posts = [await say(loop, n) for n in range(5)]
        await loop.delivered()
        await start_worker(children, loop.settings, "worker")
        await until_met(loop, *held)
        server = postmaster(own_server / DATA_FOLDER)
        assert server is not None
        server.send_signal(signal.SIGQUIT)  # what pg_ctl -m immediate sends
        await asyncio.to_thread(server.wait, 10)
        posts.append(await say(loop, 5))
        await loop.delivered()
        refused = [delivery for delivery in hooks.kept.values() if delivery.status == 503]
        assert posts[-1].id in {delivery.object_id for delivery in refused if delivery.event == "post_created"}
        assert await asyncio.to_thread(ensure_running, own_server, idle_stop_seconds=60) == url
        posts.append(await say(loop, 6))

        async def taken() -> bool:
            for delivery in [d for d in hooks.kept.values() if d.status != 200]:
                hooks.redeliver(delivery.id)
            await loop.delivered()
            return all(delivery.status == 200 for delivery in hooks.kept.values())

        await until(taken)
        await until_idle(loop)
        assert answered(loop) == dict.fromkeys((post.number for post in posts), 1)


async def test_a_worker_that_slept_through_its_takeover_posts_nothing_more(loop: Loop, children: Children) -> None:
    post = await loop.say(QUESTION)
    held = loop.room.switches.turn_on(Fault.SLOW, method="GET", path="/u/", times=1, seconds=1)
    await loop.delivered()
    asleep = await start_worker(children, loop.settings, "asleep")
    await until_met(loop, held)
    asleep.process.send_signal(signal.SIGSTOP)
    try:
        await start_worker(children, loop.settings, "second")
        await until_idle(loop)
        assert answered(loop) == {post["post_number"]: 1}
    finally:
        asleep.process.send_signal(signal.SIGCONT)
    again = await loop.say(f"{QUESTION} Once more.")
    await until_idle(loop)
    await asyncio.sleep(1)
    assert answered(loop) == {post["post_number"]: 1, again["post_number"]: 1}
