"""Responding: exactly one reply whatever crashes, and a decided outcome for whatever the forum says."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY

from service.answer.ports import AnsweringMode, Flags
from service.answer.respond import give_up, respond
from service.domain import (
    Duplicate,
    Outcome,
    Post,
    Posted,
    PostId,
    Result,
    Shadowed,
    Skipped,
    SkipReason,
    TopicId,
    UserId,
)
from service.errors import ArianeError, Rejected, Transient, Unsure
from service.settings import LimitSettings
from tests.fakes.answering import (
    ASKING_TOPIC,
    MENTION,
    NOW,
    Crash,
    Crashing,
    FakeAnswerer,
    FakeFlags,
    FakeReranker,
    World,
    asking,
    candidate,
)

ON = Flags(AnsweringMode.ON, posts_pipeline=True)
SHADOW = Flags(AnsweringMode.SHADOW, posts_pipeline=True)
OFF = Flags(AnsweringMode.OFF, posts_pipeline=True)
NO_PIPELINE = Flags(AnsweringMode.ON, posts_pipeline=False)
GOOD = Posted(Result.ANSWERED, PostId(70_000))


async def run(world: World, post: Post | None = None) -> Outcome:
    return await respond(post or world.asked, world.deps(), now=NOW)


async def test_a_question_gets_one_signed_reply() -> None:
    world = World()
    assert await run(world) == GOOD
    ((asked, raw),) = world.forum.replies
    assert asked == world.asked.id
    assert "(https://forum.example/t/watering-1/101/1)" in raw
    assert re.search(r"\bbot\b.*\b[Ff]lag\b.*9007$", raw.splitlines()[-1])
    row = world.ledger.rows[world.asked.id]
    assert (row.outcome, row.reply_number, row.reply.cited) == (GOOD, 70, (1,))
    assert row.trace.timings_ms
    assert await run(world) == Duplicate()
    assert await run(world, replace(world.asked, cooked=world.asked.cooked + "<p>edited</p>")) == Duplicate()
    assert len(world.forum.attempts) == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("case", ["answer", "abstain", "help", "fallback", "lost", "source_gone"])
async def test_a_crash_at_any_call_leaves_exactly_one_reply(case: str, after: bool) -> None:
    crashed = 0
    for at in range(1, 60):
        world = World(asked=asking(f"<p>{MENTION}</p>") if case == "help" else asking())
        world.forum.remembers = False
        match case:
            case "abstain":
                world.reranker = FakeReranker({1: -9.0, 2: -9.0, 3: -9.0})
            case "fallback":
                world.answerer = FakeAnswerer(down=Transient("busy"))
            case "lost":
                world.forum.meets = [Unsure("no answer")]
            case "source_gone":
                del world.forum.posts[PostId(1)]
        crashing = Crashing(at, after)
        try:
            await respond(world.asked, world.deps(crashing), now=NOW)
        except Crash:
            crashed += 1
            assert isinstance(await run(world), Posted if not _finished(world, crashing) else Posted | Duplicate)
        assert len(world.forum.replies) == 1, at
        assert len(set(world.forum.attempts)) == 1, at
        assert isinstance(world.ledger.rows[world.asked.id].outcome, Posted), at
        assert await run(world) == Duplicate()
        if crashing.calls < at:
            break
    else:
        pytest.fail("it never ended")
    assert crashed >= 9


def _finished(world: World, crashing: Crashing) -> bool:
    """Whether the crash came after the last call, the one that closes the claim."""
    return crashing.after and world.ledger.rows[world.asked.id].outcome is not None


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_skip_survives_a_crash_at_any_call(after: bool) -> None:
    for at in range(1, 20):
        world = World(asked=asking(f"<p>merci {MENTION} !</p>"))
        crashing = Crashing(at, after)
        try:
            await respond(world.asked, world.deps(crashing), now=NOW)
        except Crash:
            assert await run(world) == Skipped(SkipReason.THANKS)
        assert set(world.skipped()) == {SkipReason.THANKS}
        assert world.ledger.rows == {}
        assert world.forum.attempts == []
        if crashing.calls < at:
            return
    pytest.fail("it never ended")


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (Rejected("[errors]", status=422), Skipped(SkipReason.FORUM_REFUSED)),
        (Rejected("too large", status=413), Skipped(SkipReason.FORUM_REFUSED)),
        (Rejected("not allowed", status=403), Skipped(SkipReason.FORUM_FORBIDS)),
        (Rejected("no such topic", status=404), Skipped(SkipReason.TOPIC_GONE)),
        (Unsure("cut off"), replace(GOOD, adopted=True)),
    ],
)
async def test_what_the_forum_says_is_final(said: ArianeError, outcome: Outcome) -> None:
    world = World()
    world.forum.meets = [said]
    assert await run(world) == outcome
    assert world.ledger.rows[world.asked.id].outcome == outcome
    assert world.ledger.rows[world.asked.id].trace.sources
    assert await run(world) == Duplicate()
    assert len(world.forum.attempts) == 1


@pytest.mark.parametrize(
    "said",
    [
        Rejected("edit conflict", status=409),
        Transient("429", retry_after_seconds=30.0),
        Transient("503, read only"),
    ],
)
async def test_a_busy_forum_is_tried_again_with_the_same_bytes(said: ArianeError) -> None:
    world = World()
    world.forum.meets = [said, said]
    for _ in range(2):
        with pytest.raises(Transient):
            await run(world)
        world.answerer.text = "Something else [[2]]."
    assert await run(world) == GOOD
    assert world.answerer.calls == 1
    assert len(world.forum.attempts) == 3
    assert len(set(world.forum.attempts)) == 1
    assert world.ledger.rows[world.asked.id].trace.sources


async def test_a_reply_that_was_lost_and_not_stored_is_posted_again() -> None:
    world = World()
    deaf = replace(world.deps(), forum=_Losing(world.forum))
    with pytest.raises(Unsure):
        await respond(world.asked, deaf, now=NOW)
    assert world.forum.replies == []
    assert await run(world) == GOOD


class _Losing:
    """A forum whose reply call is lost on the way there."""

    def __init__(self, forum: Any) -> None:
        self._forum = forum

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forum, name)

    async def reply(self, *, topic_id: TopicId, post_number: int, raw: str) -> Any:
        raise Unsure("no answer")


async def test_a_refusal_of_what_was_said_before_adopts_it() -> None:
    world = World()
    world.forum.meets = [Rejected("edit conflict", status=409)]
    with pytest.raises(Transient):
        await run(world)
    late = world.forum.attempts[0]  # the first attempt arrives after we have looked for it

    class Late(_Losing):
        async def reply(self, *, topic_id: TopicId, post_number: int, raw: str) -> Any:
            world.forum.replies.append((world.asked.id, late))
            raise Rejected("you said that a moment ago", status=422)

    deps = replace(world.deps(), forum=Late(world.forum))
    assert await respond(world.asked, deps, now=NOW) == replace(GOOD, adopted=True)
    assert len(world.forum.replies) == 1


async def test_a_reply_that_waits_for_approval_is_done() -> None:
    world = World()
    world.forum.enqueues = True
    assert await run(world) == Posted(Result.ANSWERED, None, enqueued=True)
    assert await run(world) == Duplicate()
    assert len(world.forum.queued) == 1


async def test_a_cited_post_that_went_is_left_out() -> None:
    world = World()
    del world.forum.posts[PostId(1)]
    assert await run(world) == GOOD
    row = world.ledger.rows[world.asked.id]
    assert row.reply.cited == (2,)
    assert "source_gone" in row.trace.notes


@pytest.mark.parametrize(
    "change",
    [
        {"hidden": True},
        {"deleted": True},
        {"user_deleted": True},
        {"post_type": 4},
        {"post_number": 44},
        {"topic_id": TopicId(102)},
    ],
)
async def test_a_cited_post_that_changed_is_left_out(change: dict[str, Any]) -> None:
    world = World()
    world.forum.posts[PostId(1)] = replace(world.forum.posts[PostId(1)], **change)
    await run(world)
    assert world.ledger.rows[world.asked.id].reply.cited == (2,)


@pytest.mark.parametrize(
    ("change", "cited"),
    [
        ({"visible": False}, 2),
        ({"deleted": True}, 2),
        ({"archetype": "private_message"}, 2),
        ({"category_id": None}, 2),
        ({"closed": True}, 1),
        ({"archived": True}, 1),
    ],
)
async def test_only_posts_of_listed_public_topics_are_cited(change: dict[str, Any], cited: int) -> None:
    world = World()
    world.forum.topics[TopicId(101)] = replace(world.forum.topics[TopicId(101)], **change)
    await run(world)
    assert world.ledger.rows[world.asked.id].reply.cited == (cited,)


async def test_sources_that_keep_going_end_in_an_abstention() -> None:
    world = World()
    del world.forum.posts[PostId(1)], world.forum.posts[PostId(2)]
    assert await run(world) == Posted(Result.ABSTAINED, PostId(70_000))
    assert world.ledger.rows[world.asked.id].reply.cited == ()


async def test_a_fixed_text_whose_source_went_is_not_posted() -> None:
    world = World()
    world.forum.meets = [Transient("busy")]
    with pytest.raises(Transient):
        await run(world)
    del world.forum.posts[PostId(1)]
    assert await run(world) == Skipped(SkipReason.SOURCE_GONE)
    assert world.forum.replies == []


def _forget(world: World) -> None:
    del world.forum.posts[world.asked.id]


def _hide(world: World) -> None:
    world.forum.posts[world.asked.id] = replace(world.asked, hidden=True)


def _close(world: World) -> None:
    world.forum.topics[ASKING_TOPIC.id] = replace(ASKING_TOPIC, closed=True)


def _lock_up(world: World) -> None:
    del world.forum.topics[ASKING_TOPIC.id]


def _unmention(world: World) -> None:
    world.forum.posts[world.asked.id] = replace(world.asked, cooked="<p>never mind</p>")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_forget, SkipReason.POST_GONE),
        (_hide, SkipReason.POST_HIDDEN),
        (_close, SkipReason.TOPIC_CLOSED),
        (_lock_up, SkipReason.TOPIC_GONE),
        (_unmention, SkipReason.NOT_ADDRESSED),
    ],
)
async def test_the_question_is_looked_at_again_before_posting(change: Any, reason: SkipReason) -> None:
    world = World()
    answerer = world.answerer

    class Meanwhile(FakeAnswerer):
        async def draft(self, *args: Any) -> Any:
            change(world)
            return await answerer.draft(*args)

    world.answerer = Meanwhile()
    assert await run(world) == Skipped(reason)
    assert world.skipped() == [reason]
    assert world.forum.attempts == []
    # Nothing was fixed: when it changes back, a later event is answered.
    world.answerer = answerer
    world.forum.posts[world.asked.id] = world.asked
    world.forum.topics[ASKING_TOPIC.id] = ASKING_TOPIC
    assert await run(world) == GOOD


async def test_a_moved_question_is_answered_where_it_is_now() -> None:
    world = World()
    world.forum.posts[world.asked.id] = replace(world.asked, topic_id=TopicId(103), post_number=40)
    assert await run(world) == GOOD
    assert world.forum.replies[0][0] == world.asked.id


@pytest.mark.parametrize(
    ("flags", "outcome"),
    [
        (Flags(), Skipped(SkipReason.ANSWERING_OFF)),
        (OFF, Skipped(SkipReason.ANSWERING_OFF)),
        (NO_PIPELINE, GOOD),
        (SHADOW, Shadowed(Result.ANSWERED)),
        (ON, GOOD),
    ],
)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_switches_are_read_at_the_moment_of_use(when: str, flags: Flags, outcome: Outcome) -> None:
    world = World(flags=FakeFlags(flags) if when == "before" else FakeFlags(ON, later=flags))
    assert await run(world) == outcome
    assert len(world.forum.attempts) == (outcome == GOOD)
    if isinstance(outcome, Skipped):
        assert world.skipped() == [outcome.reason]
    assert world.answerer.calls == (0 if when == "before" and isinstance(outcome, Skipped) else 1)


async def test_an_earlier_reply_is_found_even_when_answering_is_off_by_then() -> None:
    world = World()
    with pytest.raises(Crash):
        await respond(world.asked, world.deps(Crashing(_calls_until_posted(await _calls()), after=True)), now=NOW)
    assert len(world.forum.replies) == 1
    world.flags = FakeFlags(OFF)
    assert await run(world) == replace(GOOD, adopted=True)


async def _calls() -> int:
    counting = Crashing(at=0, after=False)
    await respond(asking(), World().deps(counting), now=NOW)
    return counting.calls


def _calls_until_posted(calls: int) -> int:
    return calls - 1  # only `finish` comes after


async def test_what_is_not_for_us_leaves_no_trace() -> None:
    world = World(asked=asking("<p>how often should I water tomatoes?</p>"))
    assert await run(world) == Skipped(SkipReason.NOT_ADDRESSED)
    assert (world.ledger.rows, world.ledger.skips) == ({}, [])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"user_id": UserId(77)}, SkipReason.OWN_POST),
        ({"username": "RecapBot"}, SkipReason.KNOWN_BOT),
        ({"post_type": 4}, SkipReason.WHISPER),
        ({"html": f'<aside class="quote"><p>{MENTION}</p></aside>'}, SkipReason.MENTION_IN_QUOTE),
        ({"html": "<pre>@ariane</pre>"}, SkipReason.MENTION_IN_CODE),
        ({"html": f'<aside class="onebox"><p>{MENTION}</p></aside>'}, SkipReason.MENTION_IN_ONEBOX),
        ({"username": "by_mail"}, SkipReason.STAGED_USER),
        ({"topic_id": TopicId(999)}, SkipReason.TOPIC_GONE),
        ({"updated_at": NOW - timedelta(days=2)}, SkipReason.TOO_OLD),
    ],
)
async def test_every_other_skip_says_why(changes: dict[str, Any], reason: SkipReason) -> None:
    world = World(asked=asking(**changes))
    world.forum.staged = frozenset({"by_mail"})
    before = _count("skipped", reason)
    assert await run(world) == Skipped(reason)
    assert world.ledger.skips == [(world.asked.id, reason)]
    assert world.ledger.rows == {}
    assert _count("skipped", reason) == before + 1


def _count(outcome: str, reason: str) -> float:
    labels = {"outcome": outcome, "reason": reason}
    return REGISTRY.get_sample_value("ariane_outcomes_total", labels) or 0.0


async def test_an_edit_of_an_old_post_that_adds_a_mention_is_answered() -> None:
    world = World(asked=asking(created_at=NOW - timedelta(days=400)))
    assert await run(world) == GOOD


async def test_a_reply_to_our_reply_is_answered_by_name_or_by_the_ledger() -> None:
    for by_name in ("ariane", None):
        world = World()
        await run(world)
        follow = asking(
            "<p>and how in winter?</p>",
            id=PostId(9100),
            post_number=72,
            reply_to_post_number=70,
            reply_to_username=by_name,
        )
        world.forum.posts[follow.id] = follow
        assert await run(world, follow) == Posted(Result.ANSWERED, PostId(70_001))
        elsewhere = replace(
            follow, id=PostId(9101), reply_to_post_number=3, reply_to_username="bob" if by_name else None
        )
        assert await run(world, elsewhere) == Skipped(SkipReason.NOT_ADDRESSED)


async def test_a_bare_mention_gets_help_once_a_topic() -> None:
    world = World(asked=asking(f"<p>{MENTION}</p>"))
    assert await run(world) == Posted(Result.HELPED, PostId(70_000))
    assert world.answerer.calls == 0
    again = asking(f"<p>Bonjour {MENTION} !</p>", id=PostId(9008), post_number=8)
    world.forum.posts[again.id] = again
    assert await run(world, again) == Skipped(SkipReason.HELP_GIVEN)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (LimitSettings(per_member_per_hour=2), SkipReason.MEMBER_LIMIT),
        (LimitSettings(per_topic_per_hour=2), SkipReason.TOPIC_LIMIT),
        (LimitSettings(per_hour=2), SkipReason.HOURLY_LIMIT),
    ],
)
async def test_limits_let_through_what_they_say(limits: LimitSettings, reason: SkipReason) -> None:
    world = World(limits=limits)
    outcomes = []
    for n in range(4):
        post = asking(id=PostId(9100 + n), post_number=10 + n)
        world.forum.posts[post.id] = post
        outcomes.append(await respond(post, world.deps(), now=NOW + timedelta(minutes=30 * (n == 3) * 3)))
    assert [type(outcome) for outcome in outcomes] == [Posted, Posted, Skipped, Posted]
    assert outcomes[2] == Skipped(reason)


@pytest.mark.parametrize(
    "html", [f"<p>{MENTION} où trouver un bon sécateur ?</p>", f"<p>{MENTION} how is the moon?</p>"]
)
async def test_twenty_abstentions_on_one_question_all_differ(html: str) -> None:
    world = World(candidates=[candidate(1)], reranker=FakeReranker({1: -9.0}))
    for n in range(20):
        post = asking(html, id=PostId(9100 + 7 * n), post_number=10 + n, user_id=UserId(100 + n), username=f"member{n}")
        world.forum.posts[post.id] = post
        world.limits = LimitSettings(per_topic_per_hour=30)
        assert isinstance(await run(world, post), Posted)  # the forum refuses what was said before
    raws = [raw for _, raw in world.forum.replies]
    assert len(set(raws)) == 20
    # Discourse compares without spaces; and the wording changes too, not only the reference.
    assert len({re.sub(r"\s|\d{4,}", "", raw) for raw in raws}) > 3


async def test_a_long_question_is_cut_visibly() -> None:
    world = World(asked=asking(f"<p>{MENTION} how {'tomatoes ' * 400}</p>"))
    await run(world)
    row = world.ledger.rows[world.asked.id]
    assert "question_cut" in row.trace.notes
    assert "1500" in row.reply.raw
    assert len(row.trace.queries[0]) <= 1500


async def test_the_title_is_part_of_a_first_post() -> None:
    world = World(asked=asking(f"<p>{MENTION} mine dry out</p>", post_number=1))
    await run(world)
    assert world.ledger.rows[world.asked.id].trace.queries == [f"{ASKING_TOPIC.title}\nmine dry out"]


async def test_giving_up_is_recorded_once() -> None:
    world = World()
    world.forum.meets = [Transient("busy")]
    with pytest.raises(Transient):
        await run(world)
    assert await give_up(world.asked, world.deps(), now=NOW) == Skipped(SkipReason.GIVEN_UP)
    assert world.skipped() == [SkipReason.GIVEN_UP]
    assert await give_up(world.asked, world.deps(), now=NOW) == Duplicate()
    assert await run(world) == Duplicate()


async def test_giving_up_before_a_text_was_fixed_leaves_the_way_open() -> None:
    world = World()
    assert await give_up(world.asked, world.deps(), now=NOW) == Skipped(SkipReason.GIVEN_UP)
    assert world.skipped() == [SkipReason.GIVEN_UP]
    assert await run(world) == GOOD


async def test_giving_up_on_what_could_never_be_read_says_why() -> None:
    world = World(asked=asking(""))
    assert await give_up(world.asked, world.deps(), now=NOW) == Skipped(SkipReason.PRIVATE)
    assert world.skipped() == [SkipReason.PRIVATE]
    assert world.ledger.rows == {}


async def test_giving_up_on_what_is_not_for_us_says_nothing() -> None:
    world = World(asked=asking("<p>hello all</p>"))
    assert await give_up(world.asked, world.deps(), now=NOW) == Skipped(SkipReason.NOT_ADDRESSED)
    assert (world.ledger.rows, world.ledger.skips) == ({}, [])
