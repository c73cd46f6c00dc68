"""What switches and limits of single categories and groups do to an answer."""

from dataclasses import replace

import pytest

from service.answer.limits import member_limit
from service.answer.ports import AnsweringMode, Flags
from service.answer.respond import respond
from service.domain import CategoryId, Outcome, Posted, PostId, Result, Shadowed, Skipped, SkipReason, UserId
from service.settings import LimitSettings
from tests.fakes.answering import NOW, FakeFlags, World, asking

HERE, ELSEWHERE = CategoryId(2), CategoryId(3)
ON = Flags(AnsweringMode.ON, posts_pipeline=True)


async def run(world: World) -> Outcome:
    return await respond(world.asked, world.deps(), now=NOW)


@pytest.mark.parametrize(
    ("mode", "outcome"),
    [
        (AnsweringMode.OFF, Skipped(SkipReason.CATEGORY_OFF)),
        (AnsweringMode.SHADOW, Shadowed(Result.ANSWERED)),
        (AnsweringMode.ON, Posted(Result.ANSWERED, PostId(70_000))),
    ],
)
async def test_a_category_holds_its_own_answers_back(mode: AnsweringMode, outcome: Outcome) -> None:
    assert await run(World(flags=FakeFlags(replace(ON, categories={HERE: mode})))) == outcome
    assert isinstance(await run(World(flags=FakeFlags(replace(ON, categories={ELSEWHERE: mode})))), Posted)


async def test_a_category_switched_off_costs_no_model_and_leaves_no_claim() -> None:
    world = World(flags=FakeFlags(replace(ON, categories={HERE: AnsweringMode.OFF})))
    await run(world)
    assert world.answerer.calls == 0
    assert world.ledger.rows == {}
    assert world.skipped() == [SkipReason.CATEGORY_OFF]


async def test_a_category_switched_off_while_answering_gets_no_post() -> None:
    world = World(flags=FakeFlags(ON, later=replace(ON, categories={HERE: AnsweringMode.OFF})))
    assert await run(world) == Skipped(SkipReason.CATEGORY_OFF)
    assert world.forum.attempts == []


async def test_a_category_does_not_allow_what_answering_does_not() -> None:
    flags = replace(ON, answering=AnsweringMode.SHADOW, categories={HERE: AnsweringMode.ON})
    assert await run(World(flags=FakeFlags(flags))) == Shadowed(Result.ANSWERED)


async def test_a_category_has_its_answers_an_hour() -> None:
    flags = replace(ON, category_per_hour={HERE: 1, ELSEWHERE: 0})
    world = World(flags=FakeFlags(flags))
    assert isinstance(await run(world), Posted)
    again = World(asked=asking(id=PostId(9100), post_number=8, user_id=UserId(55)), flags=FakeFlags(flags))
    again.ledger = world.ledger
    assert await run(again) == Skipped(SkipReason.CATEGORY_LIMIT)
    none = World(flags=FakeFlags(replace(ON, category_per_hour={HERE: 0})))
    assert await run(none) == Skipped(SkipReason.CATEGORY_LIMIT)


async def test_a_group_has_its_answers_an_hour() -> None:
    flags = replace(ON, group_per_hour={"trust_level_0": 0})
    world = World(flags=FakeFlags(flags))
    world.forum.groups = {world.asked.username: frozenset({"trust_level_0"})}
    assert await run(world) == Skipped(SkipReason.MEMBER_LIMIT)
    world = World(flags=FakeFlags(flags))
    assert isinstance(await run(world), Posted)


@pytest.mark.parametrize(
    ("groups", "limit"),
    [
        ({"trust_level_0"}, 1),
        ({"trust_level_0", "trust_level_1"}, 5),
        ({"trust_level_0", "trust_level_1", "experts"}, 5),
        ({"experts"}, 10),
        (set(), 10),
    ],
)
def test_the_largest_limit_of_a_members_groups_counts_else_the_setting(groups: set[str], limit: int) -> None:
    by_group = {"trust_level_0": 1, "trust_level_1": 5}
    assert member_limit(frozenset(groups), by_group, LimitSettings()) == limit
