"""Responding against the real ledger: killed at any call, or run twice at once, it leaves one reply and one trace."""

import asyncio
from typing import Any

import pytest

from service.answer.respond import give_up, respond
from service.domain import Duplicate, Posted, PostId, Result, Skipped, SkipReason
from service.errors import Transient
from service.store.ledger import LedgerStore
from service.store.pool import Pool, connection
from tests.fakes.answering import MENTION, NOW, Crash, Crashing, World, asking


async def traces(pool: Pool, post_id: PostId) -> list[tuple[Any, ...]]:
    async with connection(pool) as conn:
        cursor = await conn.execute(
            "SELECT outcome, reason, zone, jsonb_array_length(trace -> 'sources') FROM traces WHERE post_id = %s"
            " ORDER BY trace_id",
            (post_id,),
        )
        return list(await cursor.fetchall())


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_crash_at_any_call_leaves_one_reply_and_one_trace(pool: Pool, after: bool) -> None:
    for at in range(1, 60):
        world = World(asked=asking(id=PostId(9000 + at)), ledger=LedgerStore(pool))
        world.forum.remembers = False
        crashing = Crashing(at, after)
        try:
            await respond(world.asked, world.deps(crashing), now=NOW)
        except Crash:
            await respond(world.asked, world.deps(), now=NOW)
        assert len(world.forum.replies) == 1, at
        assert await traces(pool, world.asked.id) == [("posted", "answered", "normal", 3)], at
        assert await respond(world.asked, world.deps(), now=NOW) == Duplicate()
        if crashing.calls < at:
            return
        async with connection(pool) as conn:  # so that the limits of an hour don't end the loop
            await conn.execute("UPDATE answers SET claimed_at = claimed_at - interval '1 day'")
    pytest.fail("it never ended")


async def test_two_instances_at_once_leave_one_reply_and_one_trace(pool: Pool) -> None:
    world = World(ledger=LedgerStore(pool))
    await asyncio.gather(*(respond(world.asked, world.deps(), now=NOW) for _ in range(4)))
    assert len(world.forum.replies) == 1
    assert len(set(world.forum.attempts)) == 1
    assert len(await traces(pool, world.asked.id)) == 1


async def test_a_reply_to_our_reply_is_recognised_by_its_number(pool: Pool) -> None:
    world = World(ledger=LedgerStore(pool))
    await respond(world.asked, world.deps(), now=NOW)
    follow = asking("<p>how about winter?</p>", id=PostId(9100), post_number=72, reply_to_post_number=70)
    world.forum.posts[follow.id] = follow
    assert await respond(follow, world.deps(), now=NOW) == Posted(Result.ANSWERED, PostId(70_001))


async def test_help_is_given_once_a_topic(pool: Pool) -> None:
    world = World(asked=asking(f"<p>{MENTION}</p>"), ledger=LedgerStore(pool))
    assert await respond(world.asked, world.deps(), now=NOW) == Posted(Result.HELPED, PostId(70_000))
    again = asking(f"<p>{MENTION} ?</p>", id=PostId(9100), post_number=8)
    assert await respond(again, world.deps(), now=NOW) == Skipped(SkipReason.HELP_GIVEN)
    assert await traces(pool, again.id) == [("skipped", "help_given", None, None)]


async def test_a_question_given_up_is_closed_with_its_trace(pool: Pool) -> None:
    world = World(ledger=LedgerStore(pool))
    world.forum.meets = [Transient("busy")]
    with pytest.raises(Transient):
        await respond(world.asked, world.deps(), now=NOW)
    assert await give_up(world.asked, world.deps(), now=NOW) == Skipped(SkipReason.GIVEN_UP)
    assert await traces(pool, world.asked.id) == [("skipped", "given_up", "normal", 3)]
    assert await respond(world.asked, world.deps(), now=NOW) == Duplicate()
