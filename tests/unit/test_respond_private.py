"""Private messages: unanswered unless allowed, read by the bot's own account, answered from public posts only."""

from dataclasses import replace

import pytest

from service.answer.ports import AnsweringMode, FixedReply, Flags
from service.answer.respond import give_up, respond
from service.domain import Outcome, Post, Posted, PostId, Result, Shadowed, Skipped, SkipReason, Topic, TopicId, Trace
from service.errors import Transient
from tests.fakes.answering import NOW, FakeFlags, World, asking

MESSAGE = Topic(TopicId(900), "Between us", "between-us", None, "private_message")
OFF = Flags(AnsweringMode.ON, posts_pipeline=True)
ON = replace(OFF, private_messages=True)


def delivered(**changes: object) -> Post:
    """What is kept of a message's post: not its text."""
    kept = asking(id=PostId(9200), topic_id=MESSAGE.id, post_number=1, archetype="private_message", category_id=None)
    return replace(kept, cooked="", **changes)  # type: ignore[arg-type] # fields of the test's own choice


def world(flags: Flags = ON, later: Flags | None = None) -> World:
    made = World(asked=delivered(), flags=FakeFlags(flags, later=later))
    made.forum.posts.pop(made.asked.id)
    read = replace(asking(), id=made.asked.id, topic_id=MESSAGE.id, post_number=1, archetype=None, category_id=None)
    made.forum.own_posts[read.id] = read
    made.forum.own_topics[MESSAGE.id] = MESSAGE
    return made


async def run(made: World) -> Outcome:
    return await respond(made.asked, made.deps(), now=NOW)


async def test_a_message_is_not_answered_nor_read_unless_allowed() -> None:
    made = world(OFF)
    assert await run(made) == Skipped(SkipReason.PRIVATE)
    assert made.ledger.rows == {}
    assert made.forum.attempts == []


async def test_a_message_is_answered_where_it_stands_from_public_posts() -> None:
    made = world()
    assert await run(made) == Posted(Result.ANSWERED, PostId(70_000))
    ((asked, raw),) = made.forum.replies
    assert asked == made.asked.id
    assert "(https://forum.example/t/watering-1/101/1)" in raw


async def test_a_message_in_shadow_is_not_answered() -> None:
    assert await run(world(replace(ON, answering=AnsweringMode.SHADOW))) == Shadowed(Result.ANSWERED)


async def test_a_message_that_the_bot_takes_no_part_in_is_skipped() -> None:
    made = world()
    made.forum.own_posts.clear()
    assert await run(made) == Skipped(SkipReason.PRIVATE)


async def test_a_message_that_does_not_mention_the_bot_is_left_alone() -> None:
    made = world()
    made.forum.own_posts[made.asked.id] = replace(made.forum.own_posts[made.asked.id], cooked="<p>hello</p>")
    assert await run(made) == Skipped(SkipReason.NOT_ADDRESSED)


async def test_a_private_category_stays_private() -> None:
    made = world()
    made.asked = asking(archetype="regular", category_id=None, cooked="")
    assert await run(made) == Skipped(SkipReason.PRIVATE)
    moved = world()
    moved.forum.own_topics[MESSAGE.id] = replace(MESSAGE, archetype="regular")
    assert await run(moved) == Skipped(SkipReason.PRIVATE)


async def test_what_only_the_bot_sees_is_never_cited() -> None:
    made = world()
    for post_id in (1, 2, 3):  # each candidate went private after it was indexed
        made.forum.own_posts[PostId(post_id)] = made.forum.posts.pop(PostId(post_id))
    assert isinstance(await run(made), Posted)
    assert "/t/watering" not in made.forum.attempts[-1]


async def test_switched_off_while_answering_posts_nothing() -> None:
    assert await run(world(ON, later=OFF)) == Skipped(SkipReason.PRIVATE)
    made = world(ON)
    deps = replace(made.deps(), flags=_OffAtTheEnd())
    assert await respond(made.asked, deps, now=NOW) == Skipped(SkipReason.PRIVATE)
    assert made.forum.attempts == []


class _OffAtTheEnd:
    """Off from the moment of posting on: the read after the one for the gate."""

    def __init__(self) -> None:
        self.reads = 0

    async def read(self) -> Flags:
        self.reads += 1
        return ON if self.reads < 4 else OFF


async def test_a_message_given_up_closes_its_claim() -> None:
    made = world()
    await made.ledger.claim(made.asked, now=NOW)
    await made.ledger.fix_reply(made.asked.id, FixedReply("text", Result.ANSWERED), Trace())
    assert await give_up(made.asked, made.deps(), now=NOW) == Skipped(SkipReason.GIVEN_UP)
    assert made.ledger.rows[made.asked.id].outcome == Skipped(SkipReason.GIVEN_UP)


async def test_a_busy_forum_is_asked_again_later() -> None:
    made = world()

    async def busy(post_id: PostId) -> Post | None:
        raise Transient("429")

    made.forum.own_post = busy  # type: ignore[method-assign] # this call fails in this test
    with pytest.raises(Transient):
        await run(made)
