"""Late questions against the real ledger: one reply of sources and one trace, or one skip, wherever it is killed."""

from datetime import timedelta
from typing import Any

import pytest

from service.answer.respond import respond
from service.domain import Duplicate, Post, Posted, PostId, Result, Skipped, SkipReason, UserId
from service.store.ledger import LedgerStore
from service.store.pool import Pool, connection
from service.store.traces import TraceStore
from tests.fakes.answering import NOW, Crash, Crashing, World, asking
from tests.integration.store_data import rows

AGO = timedelta(minutes=15)


def late_world(pool: Pool, post_id: int, *later: Post) -> World:
    world = World(asked=asking(id=PostId(post_id), created_at=NOW - AGO, updated_at=NOW - AGO))
    world.ledger = LedgerStore(pool)
    world.forum.posts.update({post.id: post for post in later})
    world.forum.remembers = False
    return world


def by_zoe(**changes: Any) -> Post:
    told = {"id": PostId(9900), "post_number": 9, "user_id": UserId(13), "username": "zoe"}
    return asking("<p>Every morning.</p>", **{**told, "created_at": NOW, **changes})


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_crash_at_any_call_leaves_one_list_of_sources_and_one_trace(pool: Pool, after: bool) -> None:
    for at in range(1, 60):
        world = late_world(pool, 9000 + at)
        crashing = Crashing(at, after)
        try:
            await respond(world.asked, world.deps(crashing), now=NOW)
        except Crash:
            await respond(world.asked, world.deps(), now=NOW)
        assert len(world.forum.replies) == 1, at
        assert world.answerer.calls == 0
        stored = await TraceStore(pool).latest(world.asked.id)
        assert stored is not None
        assert (stored.outcome, stored.reason) == ("posted", Result.ANSWERED)
        assert stored.trace.notes == ["late", "sources_alone"]
        assert stored.trace.waited_seconds == AGO.total_seconds()
        assert await respond(world.asked, world.deps(), now=NOW) == Duplicate()
        if crashing.calls < at:
            assert await rows(pool, "SELECT count(*) FROM traces") == [(at,)]
            return
        async with connection(pool) as conn:  # so that the limits of an hour don't end the loop
            await conn.execute("UPDATE answers SET claimed_at = claimed_at - interval '1 day'")
    pytest.fail("it never ended")


async def test_where_people_have_answered_the_claim_is_given_back_and_the_skip_says_why(pool: Pool) -> None:
    world = late_world(pool, 9000, by_zoe())
    assert await respond(world.asked, world.deps(), now=NOW) == Skipped(SkipReason.ANSWERED_BY_PEOPLE)
    assert await rows(pool, "SELECT count(*) FROM answers") == [(0,)]
    assert await rows(pool, "SELECT outcome, reason, trace FROM traces") == [
        ("skipped", "answered_by_people", {"waited_seconds": AGO.total_seconds()})
    ]
    assert world.forum.attempts == []


async def test_an_answer_kept_from_before_the_wait_has_its_trace_without_it(pool: Pool) -> None:
    world = World(ledger=LedgerStore(pool))
    assert isinstance(await respond(world.asked, world.deps(), now=NOW), Posted)
    async with connection(pool) as conn:
        await conn.execute("UPDATE traces SET trace = trace - 'waited_seconds'")
    stored = await TraceStore(pool).latest(world.asked.id)
    assert stored is not None
    assert stored.trace.waited_seconds is None
