"""From a signed webhook to one posted reply, and from everything that must not be answered to its reason."""

import asyncio
from pathlib import Path

import pytest

from service.domain import Result, Zone
from service.simulator.switches import Fault
from tests.e2e.loop import QUESTION, Loop, acting_as, whole_loop


async def test_a_mention_is_answered_once_with_its_sources(loop: Loop) -> None:
    post = await loop.say(QUESTION)
    await loop.drain()
    (reply,) = loop.replies(post["post_number"])
    trace = await loop.trace(post["id"])
    assert trace is not None
    assert (trace.outcome, trace.reason) == ("posted", Result.ANSWERED)
    assert trace.trace.zone in (Zone.NORMAL, Zone.WEAK)
    assert f"{loop.settings.forum.base_url}/t/how-to-bleed-a-radiator/10/" in reply
    assert set(trace.trace.timings_ms) >= {"retrieve", "rerank", "evidence", "generate", "sanitize"}


async def test_a_new_post_can_be_found_by_the_next_question(loop: Loop) -> None:
    await loop.say("If the valve is stuck, warm it with a hair dryer and try the brass key again.", by="Zoé")
    await loop.drain()
    post = await loop.say(
        "@ariane my radiator valve is stuck, what can I do about a stuck valve?", by="newbie", topic=10
    )
    await loop.drain()
    trace = await loop.trace(post["id"])
    assert trace is not None
    assert any("hair dryer" in source.excerpt for source in trace.trace.sources)


async def test_an_edit_that_adds_the_mention_is_answered_once(loop: Loop) -> None:
    post = await loop.say("How do I bleed a radiator that gurgles all night?")
    await loop.drain()
    assert loop.replies(post["post_number"]) == []
    for raw in (f"{QUESTION} All night!", f"{QUESTION} All night long!"):
        answer = await loop.client.put(
            f"/posts/{post['id']}.json",
            json={"post": {"raw": raw}},
            headers=acting_as("alice"),
        )
        assert answer.status_code == 200, answer.text
        await loop.drain()
    assert len(loop.replies(post["post_number"])) == 1


async def test_a_reply_to_the_bot_needs_no_mention_and_thanks_get_none(loop: Loop) -> None:
    post = await loop.say(QUESTION)
    await loop.drain()
    answer = max(p.number for p in loop.room.forum.posts.values() if p.topic_id == 10 and p.user_id == 1000)
    thanks = await loop.say("Thanks a lot, that is perfect!", reply_to=answer)
    more = await loop.say("And which key do I need to open the valve?", reply_to=answer)
    await loop.drain()
    assert loop.replies(thanks["post_number"]) == []
    assert len(loop.replies(more["post_number"])) == 1
    assert len(loop.replies(post["post_number"])) == 1


@pytest.mark.parametrize(
    ("raw", "by", "reason"),
    [
        (
            '[quote="alice, post:1, topic:10"]\n@ariane how do I bleed it?\n[/quote]\nI wonder too.',
            "Zoé",
            "mention_in_quote",
        ),
        ("Write `@ariane how do I bleed it?` to ask the bot.", "Zoé", "mention_in_code"),
        (QUESTION, "OtherBot", "known_bot"),
    ],
)
async def test_what_is_not_answered_says_why(loop: Loop, raw: str, by: str, reason: str) -> None:
    post = await loop.say(raw, by=by)
    await loop.drain()
    assert loop.replies() == []
    trace = await loop.trace(post["id"])
    assert trace is not None
    assert (trace.outcome, trace.reason) == ("skipped", reason)


async def test_the_bot_never_answers_itself(loop: Loop) -> None:
    post = await loop.say("As @ariane said: how do I bleed a radiator?", by="ariane")
    await loop.drain()
    assert loop.replies(post["post_number"]) == []
    trace = await loop.trace(post["id"])
    assert trace is not None
    assert trace.reason == "own_post"


async def test_with_answering_off_nothing_is_posted(database_url: str, tmp_path: Path) -> None:
    async with whole_loop(database_url, tmp_path, answering="off") as loop:
        post = await loop.say(QUESTION)
        await loop.drain()
        trace = await loop.trace(post["id"])
        assert trace is not None
        assert (loop.replies(), trace.reason) == ([], "answering_off")


async def test_in_shadow_the_answer_is_kept_and_not_posted(database_url: str, tmp_path: Path) -> None:
    async with whole_loop(database_url, tmp_path, answering="shadow") as loop:
        post = await loop.say(QUESTION)
        await loop.drain()
        trace = await loop.trace(post["id"])
        assert trace is not None
        assert (loop.replies(), trace.outcome) == ([], "shadowed")
        assert trace.trace.sources


async def test_a_response_lost_after_the_post_was_stored_is_adopted(loop: Loop) -> None:
    loop.room.switches.turn_on(Fault.LOST, method="POST", path="/posts", times=1)
    # The member's own post is the first to match: its answer is lost, and it is stored all the same.
    with pytest.raises(Exception, match="disconnected"):
        await loop.say(QUESTION)
    loop.room.switches.turn_on(Fault.LOST, method="POST", path="/posts", times=1)
    await loop.drain()
    question = max((p for p in loop.room.forum.posts.values() if p.user_id == 2), key=lambda p: p.id)
    assert len(loop.replies(question.number)) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_busy_forum_is_tried_again(loop: Loop, status: int) -> None:
    post = await loop.say(QUESTION)
    loop.room.switches.turn_on(
        Fault.STATUS, method="POST", path="/posts", times=2, status=status, body="html", retry_after_seconds=1
    )
    await loop.drain()
    assert len(loop.replies(post["post_number"])) == 1


async def test_the_same_delivery_fifty_times_gives_one_reply(loop: Loop) -> None:
    post = await loop.say(QUESTION)
    await loop.delivered()
    webhooks = loop.room.webhooks
    assert webhooks is not None
    created = next(d for d in webhooks.kept.values() if d.event == "post_created" and d.object_id == post["id"])
    for _ in range(50):
        webhooks.redeliver(created.id)
    await loop.drain()
    assert len(loop.replies(post["post_number"])) == 1


async def test_two_workers_at_once_give_one_reply(loop: Loop) -> None:
    posts = [await loop.say(f"{QUESTION} Attempt {n} of three.") for n in range(3)]
    await asyncio.gather(loop.drain(), loop.drain())
    for post in posts:
        assert len(loop.replies(post["post_number"])) == 1
