"""Late questions: sources without a model, silence where people have answered, and no change of a fixed text."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from service.answer.condense.condenser import Condensed
from service.answer.decided import Decided, carry_out
from service.answer.late import answered_by_people, waited
from service.answer.messages import Message, wordings
from service.answer.ports import AnsweringMode, DeedKind, Flags
from service.answer.respond import respond
from service.answer.trigger import Bot
from service.domain import (
    ENGLISH,
    FRENCH,
    Before,
    Lang,
    Outcome,
    Post,
    Posted,
    PostId,
    PostType,
    Question,
    Result,
    Shadowed,
    Skipped,
    SkipReason,
    UserId,
)
from service.errors import Transient
from service.settings import LimitSettings
from tests.fakes.answering import (
    MENTION,
    NOW,
    Crash,
    Crashing,
    FakeFlags,
    FakeReranker,
    FakeThreads,
    World,
    asking,
)
from tests.unit.test_decided import MemoryDeeds, OurPosts, deed

BOT = Bot("ariane", frozenset({"system", "recapbot"}), UserId(77))
AGO = timedelta(minutes=15)
GOOD = Posted(Result.ANSWERED, PostId(70_000))


def late(html: str = f"<p>{MENTION} how often should I water tomatoes in pots?</p>", **changes: Any) -> Post:
    return asking(html, **{"created_at": NOW - AGO, "updated_at": NOW - AGO, **changes})


def answering(**changes: Any) -> Post:
    """A member's answer to the question, five minutes ago."""
    told = {"id": PostId(9010), "post_number": 8, "user_id": UserId(13), "username": "zoe"}
    at = NOW - timedelta(minutes=5)
    return asking("<p>Every morning.</p>", **{**told, "created_at": at, "updated_at": at, **changes})


def world_of(asked: Post | None = None, *later: Post, **changes: Any) -> World:
    world = World(asked=asked or late(), **changes)
    world.forum.posts.update({post.id: post for post in later})
    return world


async def run(world: World) -> Outcome:
    return await respond(world.asked, world.deps(), now=NOW)


def says_late(raw: str, lang: Lang = ENGLISH) -> bool:
    return raw.split("\n\n")[0] in wordings()[lang].messages[Message.LATE]


@pytest.mark.parametrize(
    ("minutes", "setting", "is_late"),
    [(9.9, 10, False), (10, 10, False), (10.1, 10, True), (1000, 0, False), (-5, 10, False), (61, 60, True)],
)
def test_a_question_is_late_past_the_setting(minutes: float, setting: int, is_late: bool) -> None:
    at = NOW - timedelta(minutes=minutes)
    wait = waited(asking(updated_at=at), LimitSettings(late_minutes=setting), NOW)
    assert (wait.since, wait.late) == (at, is_late)
    assert wait.seconds == pytest.approx(max(0.0, 60 * minutes))


def test_an_edit_that_adds_the_mention_is_when_it_was_asked() -> None:
    wait = waited(asking(created_at=NOW - timedelta(days=400), updated_at=NOW), LimitSettings(), NOW)
    assert (wait.late, wait.seconds) == (False, 0.0)


@pytest.mark.parametrize(
    ("changes", "answers"),
    [
        ({}, True),
        ({"username": "Ariane", "user_id": UserId(78)}, False),
        ({"user_id": UserId(77)}, False),
        ({"username": "RecapBot"}, False),
        ({"user_id": UserId(-1), "username": "discobot"}, False),
        ({"user_id": None}, False),
        ({"user_id": UserId(12)}, False),
        ({"username": "Maelle"}, False),
        ({"post_type": PostType.WHISPER}, False),
        ({"post_type": PostType.SMALL_ACTION}, False),
        ({"post_type": PostType.MODERATOR_ACTION}, False),
        ({"hidden": True}, False),
        ({"deleted": True}, False),
        ({"user_deleted": True}, False),
        ({"created_at": NOW - AGO}, False),
        ({"created_at": NOW - timedelta(days=3)}, False),
        ({"html": f"<p>{MENTION} and how about basil?</p>"}, False),
        ({"reply_to_username": "Ariane", "reply_to_post_number": 5}, False),
        ({"reply_to_username": "maelle", "reply_to_post_number": 7}, True),
        ({"html": f'<aside class="quote"><p>{MENTION} how often?</p></aside><p>Daily.</p>'}, True),
    ],
)
async def test_who_has_answered(changes: dict[str, Any], answers: bool) -> None:
    post = answering(**{key: value for key, value in changes.items() if key != "html"})
    post = replace(post, cooked=changes.get("html", post.cooked))
    world = world_of(None, post)
    assert await answered_by_people(world.asked, NOW - AGO, world.forum, BOT) is answers


async def test_a_late_question_gets_its_sources_without_a_model() -> None:
    world = world_of()
    assert await run(world) == GOOD
    ((_, raw),) = world.forum.replies
    assert says_late(raw)
    assert all(f"(https://forum.example/t/watering-{n}/10{n}/{n})" in raw for n in (1, 2, 3))
    assert raw.endswith("9007")
    trace = world.ledger.rows[world.asked.id].trace
    assert (world.answerer.calls, trace.draft, trace.notes) == (0, "", ["late", "sources_alone"])
    assert trace.waited_seconds == AGO.total_seconds()
    assert "generate" not in trace.timings_ms


async def test_it_says_so_in_the_members_language_and_with_the_caution_where_it_is_not_sure() -> None:
    asked = late(f"<p>{MENTION} à quelle fréquence arroser les tomates ?</p>")
    world = world_of(asked, reranker=FakeReranker({1: -1.0, 2: -2.0, 3: -3.0}))
    assert await run(world) == GOOD
    ((_, raw),) = world.forum.replies
    assert says_late(raw, FRENCH)
    assert raw.split("\n\n")[1] in wordings()[FRENCH].messages[Message.CAUTION]


async def test_in_time_nothing_is_said_of_it_but_the_wait_in_the_trace() -> None:
    for limits in (LimitSettings(late_minutes=15), LimitSettings(late_minutes=0)):
        world = world_of(late(), answering(), limits=limits)
        assert await run(world) == GOOD
        ((_, raw),) = world.forum.replies
        trace = world.ledger.rows[world.asked.id].trace
        assert (says_late(raw), world.answerer.calls, trace.notes) == (False, 1, [])
        assert trace.waited_seconds == AGO.total_seconds()


@dataclass
class _Unwanted:
    """A model that a late question may not ask."""

    async def condense(self, question: Question) -> Condensed:
        pytest.fail("it was asked to condense")

    async def check(self, *_args: object) -> Any:
        pytest.fail("it was asked to check")

    def allows(self, *_args: object) -> bool:
        return True


async def test_no_model_condenses_or_checks_a_late_follow_up() -> None:
    before = Before((("user", "How do I water tomatoes in pots?"),), 5)
    world = world_of(late(f"<p>{MENTION} and how often?</p>"), threads=FakeThreads(before))
    deps = world.deps()
    deps = replace(deps, stages=replace(deps.stages, condenser=_Unwanted(), checker=_Unwanted()))
    assert await respond(world.asked, deps, now=NOW) == GOOD
    assert "condensed_by_rules" in world.ledger.rows[world.asked.id].trace.notes


async def test_where_people_have_answered_nothing_is_posted() -> None:
    world = world_of(None, answering())
    assert await run(world) == Skipped(SkipReason.ANSWERED_BY_PEOPLE)
    assert (world.forum.attempts, world.ledger.rows) == ([], {})
    assert world.ledger.skips == [(world.asked.id, SkipReason.ANSWERED_BY_PEOPLE)]
    assert world.ledger.waits == [AGO.total_seconds()]


async def test_where_the_forum_cannot_tell_the_sources_are_posted() -> None:
    world = world_of(None, answering())
    world.forum.unread = Transient("garbage")
    assert await run(world) == GOOD
    assert world.answerer.calls == 0
    assert says_late(world.forum.replies[0][1])


async def test_an_abstention_comes_late_where_nobody_has_answered() -> None:
    for later, outcome in (
        ([], Posted(Result.ABSTAINED, PostId(70_000))),
        ([answering()], Skipped(SkipReason.ANSWERED_BY_PEOPLE)),
    ):
        world = world_of(None, *later, reranker=FakeReranker({1: -9.0, 2: -9.0, 3: -9.0}))
        assert await run(world) == outcome
        assert not any(says_late(raw) for _, raw in world.forum.replies)


@pytest.mark.parametrize(
    ("html", "result"),
    [(f"<p>{MENTION} write me a poem about the rain please</p>", Result.GATED), (f"<p>{MENTION}</p>", Result.HELPED)],
)
async def test_a_decline_and_help_stay_as_they_are(html: str, result: Result) -> None:
    flags = FakeFlags(Flags(AnsweringMode.ON, posts_pipeline=True, input_gate=True))
    world = world_of(late(html), answering(), flags=flags)
    assert await run(world) == Posted(result, PostId(70_000))
    assert not says_late(world.forum.replies[0][1])


async def test_a_late_private_message_is_looked_at_by_the_bots_own_eyes() -> None:
    from tests.unit.test_respond_private import ON, world

    for told, outcome in ((False, GOOD), (True, Skipped(SkipReason.ANSWERED_BY_PEOPLE))):
        made = world(ON)
        asked = made.forum.own_posts[made.asked.id]
        made.forum.own_posts[asked.id] = replace(asked, created_at=NOW - AGO, updated_at=NOW - AGO)
        if told:
            made.forum.own_posts[PostId(9201)] = answering(id=PostId(9201), topic_id=asked.topic_id)
        assert await run(made) == outcome


@pytest.mark.parametrize("told", [False, True], ids=["nobody", "people"])
async def test_a_text_that_was_fixed_in_time_stays_what_it_is(told: bool) -> None:
    world = World()
    world.forum.meets = [Transient("busy")]
    with pytest.raises(Transient):
        await run(world)
    (fixed,) = world.forum.attempts
    if told:
        at = NOW + timedelta(minutes=5)
        world.forum.posts[PostId(9010)] = answering(created_at=at, updated_at=at)
    outcome = await respond(world.asked, world.deps(), now=NOW + AGO)
    assert outcome == (Skipped(SkipReason.ANSWERED_BY_PEOPLE) if told else GOOD)
    assert world.forum.attempts == ([fixed] if told else [fixed, fixed])
    assert world.ledger.rows[world.asked.id].outcome == outcome
    assert world.answerer.calls == 1


async def test_a_reply_that_was_posted_in_time_is_found_whoever_has_answered_since() -> None:
    world = World()
    crashing = Crashing(0, after=True)
    await respond(world.asked, world.deps(crashing), now=NOW)
    world = World()
    with pytest.raises(Crash):  # before the call that writes down what was posted
        await respond(world.asked, world.deps(Crashing(crashing.calls, after=False)), now=NOW)
    at = NOW + timedelta(minutes=5)
    world.forum.posts[PostId(9010)] = answering(created_at=at, updated_at=at)
    assert await respond(world.asked, world.deps(), now=NOW + AGO) == replace(GOOD, adopted=True)
    assert len(world.forum.attempts) == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("told", [False, True], ids=["nobody", "people"])
async def test_a_crash_at_any_call_changes_nothing_of_it(told: bool, after: bool) -> None:
    for at in range(1, 60):
        world = world_of(None, *([answering()] if told else []))
        world.forum.remembers = False
        crashing = Crashing(at, after)
        try:
            await respond(world.asked, world.deps(crashing), now=NOW)
        except Crash:
            await run(world)
        if told:
            assert world.forum.attempts == [], at
            assert set(world.skipped()) == {SkipReason.ANSWERED_BY_PEOPLE}
        else:
            ((_, raw),) = world.forum.replies
            assert says_late(raw), at
            assert len(set(world.forum.attempts)) == 1, at
        if crashing.calls < at:
            return
    pytest.fail("it never ended")


async def test_a_moderator_may_post_from_shadow_whenever_he_likes() -> None:
    world = World(flags=FakeFlags(Flags(AnsweringMode.SHADOW, posts_pipeline=True)))
    assert await run(world) == Shadowed(Result.ANSWERED)
    at = NOW + timedelta(minutes=5)
    world.forum.posts[PostId(9010)] = answering(created_at=at, updated_at=at)
    deeds = MemoryDeeds(world, deed(DeedKind.POST))
    deps = Decided(deeds, world.ledger, world.flags, world.forum, OurPosts(), BOT, ENGLISH)
    await carry_out(1, deps, last_try=False, now=NOW + timedelta(hours=5))
    assert deeds.closed == ["done"]
    assert [raw for _, raw in world.forum.replies] == [world.ledger.rows[world.asked.id].reply.raw]
