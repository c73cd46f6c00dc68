"""What must get no answer: one post for each reason, and the same word for it in the trace and in the metrics."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from service.domain import SkipReason
from service.simulator.forum import Author
from service.simulator.model import Member, Post, Topic
from tests.e2e.loop import QUESTION, Loop, acting_as, whole_loop

STAFF_TOPIC, CLOSED_TOPIC = 11, 12
CODE_BLOCK = "```\n@ariane how do I bleed a radiator?\n```\nThat is how you ask the bot."
QUOTE = '[quote="alice, post:1, topic:10"]\n@ariane how do I bleed it?\n[/quote]\nI wonder too.'
ELIDED = (
    "I agree with that.\n\n<details class='elided'><summary>···</summary>\n\n@ariane how do I bleed it?\n\n</details>"
)


class Scene:
    """Puts posts on the forum that its REST calls would refuse: whispers, messages, system posts, old ones."""

    def __init__(self, loop: Loop) -> None:
        self.forum = loop.room.forum
        self.now = datetime.now(UTC)
        for member in (Member(6, "mailer", None, staged=True), Member(-3, "robot", "Robot")):
            self.forum.add(member)

    def post(self, raw: str = QUESTION, *, by: str = "alice", topic: int = 10, **changes: Any) -> int:
        member = self.forum.member(by)
        assert member is not None
        at = changes.pop("at", self.now)
        return self.forum.create_post(Author(member, at), topic_id=topic, raw=raw, **changes).id

    def topic(self, title: str = "A topic of a test that stands alone", **changes: Any) -> int:
        topic = Topic(self.forum.new_id("topic"), title, "a-topic", 1, 1, self.now, self.now, next_number=1)
        self.forum.add(replace(topic, **changes))
        self.post("The first post of this topic.", by="boss", topic=topic.id)
        return topic.id

    def first_post(self, topic: int) -> Post:
        return self.forum.stream(topic)[0]


def skips() -> dict[str, float]:
    """The metric, by reason."""
    found = {}
    for reason in SkipReason:
        labels = {"outcome": "skipped", "reason": reason.value}
        found[reason.value] = REGISTRY.get_sample_value("ariane_outcomes_total", labels) or 0.0
    return found


def counted_since(before: dict[str, float]) -> dict[str, int]:
    new = {reason: int(count - before[reason]) for reason, count in skips().items()}
    new.pop(SkipReason.NOT_ADDRESSED)
    return {reason: count for reason, count in new.items() if count}


async def reasons(loop: Loop, posts: dict[str, int]) -> dict[str, str | None]:
    """The recorded reason of each post, None where nothing was recorded."""
    found = {}
    for name, post_id in posts.items():
        trace = await loop.trace(post_id)
        found[name] = None if trace is None else trace.reason if trace.outcome == "skipped" else trace.outcome
    return found


async def test_what_a_post_is_and_where_its_mention_stands(loop: Loop) -> None:
    scene, before = Scene(loop), skips()
    bots = scene.post(by="OtherBot")
    quoted = loop.room.forum.posts[bots]
    link = f"{loop.settings.forum.base_url}/t/how-to-bleed-a-radiator/10/{quoted.number}"
    posts = {
        "known_bot": bots,
        "mention_in_quote": scene.post(QUOTE),
        "mention_in_code": scene.post("Write `@ariane how do I bleed it?` to ask the bot."),
        "mention_in_code (block)": scene.post(CODE_BLOCK),
        "mention_in_onebox": scene.post(f"Somebody asked this before:\n\n{link}\n\nDid it help?"),
        "mention_in_elided": scene.post(ELIDED),
        "own_post": scene.post("As @ariane said: how do I bleed a radiator?", by="ariane"),
        "system_user": scene.post(by="robot"),
        "small_action": scene.post(by="boss", post_type=3),
        "moderator_action": scene.post(by="boss", post_type=2),
        "staged_user": scene.post(by="mailer"),
        "too_old": scene.post(at=scene.now - timedelta(days=2)),
        "thanks": scene.post("@ariane thanks a lot for your help!"),
    }
    await loop.drain()
    expected = {name: name.partition(" ")[0] for name in posts}
    assert await reasons(loop, posts) == expected
    assert loop.replies() == ["As @ariane said: how do I bleed a radiator?"]
    assert counted_since(before) == dict.fromkeys(expected.values(), 1) | {"mention_in_code": 2}


async def test_places_that_the_public_does_not_see_or_write_in(loop: Loop) -> None:
    scene, before, forum = Scene(loop), skips(), loop.room.forum
    message = scene.topic(category_id=None, archetype="private_message")
    archived, gone = scene.topic(archived=True), scene.topic()
    posts = {
        "whisper": scene.post(by="boss", post_type=4),
        "private (message)": scene.post(topic=message),
        "private (category)": scene.post(by="boss", topic=STAFF_TOPIC),
        "topic_closed": scene.post(by="boss", topic=CLOSED_TOPIC),
        "topic_closed (archived)": scene.post(by="boss", topic=archived),
        "topic_gone": scene.post(topic=gone),
        "post_hidden": scene.post(f"{QUESTION} You hidden fools."),
        "post_gone": scene.post(f"{QUESTION} Wrong place."),
    }
    boss = Author(forum.members[1], scene.now)
    forum.delete_post(boss, scene.first_post(gone).id)
    forum.delete_post(boss, posts["post_gone"])
    forum.hide_post(posts["post_hidden"], hidden=True, now=scene.now)
    before_drain = len(forum.posts)
    await loop.drain()
    expected = {name: name.partition(" ")[0] for name in posts}
    assert await reasons(loop, posts) == expected
    assert len(forum.posts) == before_drain
    assert counted_since(before) == dict.fromkeys(expected.values(), 1) | {"private": 2, "topic_closed": 2}


async def test_a_hidden_post_that_is_edited_says_why(loop: Loop) -> None:
    scene, before = Scene(loop), skips()
    post = scene.post("How do I bleed a radiator, you fools?")
    await loop.drain()
    loop.room.forum.hide_post(post, hidden=True, now=scene.now)
    loop.room.forum.edit_post(post, raw=QUESTION, now=scene.now + timedelta(seconds=1))
    await loop.drain()
    assert await reasons(loop, {"it": post}) == {"it": "post_hidden"}
    assert (loop.replies(), counted_since(before)) == ([], {"post_hidden": 1})


async def test_what_does_not_address_the_bot_leaves_no_trace_even_in_private(loop: Loop) -> None:
    scene, before = Scene(loop), skips()
    message = scene.topic(category_id=None, archetype="private_message")
    posts = {
        "public": scene.post("Has anybody a spare radiator key?"),
        "reply": scene.post("I have one, in fact two.", by="Zoé", reply_to=1),
        "message": scene.post("Shall we meet at my place?", topic=message),
        "staff": scene.post("The budget is decided.", by="boss", topic=STAFF_TOPIC),
        "staff reply": scene.post("I agree with the budget.", by="boss", topic=STAFF_TOPIC, reply_to=1),
        "whisper": scene.post("Shall we close this?", by="boss", post_type=4),
        "group": scene.post("Can @ariadne or @arianes help me? Not ariane."),
    }
    await loop.drain()
    assert await reasons(loop, posts) == dict.fromkeys(posts)
    assert (loop.replies(), counted_since(before)) == ([], {})


async def test_a_bare_mention_gets_one_help_a_topic(loop: Loop) -> None:
    scene, before = Scene(loop), skips()
    posts = {"first": scene.post("@ariane"), "elsewhere": scene.post("@ariane hello", topic=scene.topic())}
    await loop.drain()
    posts |= {"second": scene.post("@ariane ?", by="Zoé"), "hello": scene.post("hi @ariane!", by="newbie")}
    await loop.drain()
    said = {"first": "posted", "elsewhere": "posted", "second": "help_given", "hello": "help_given"}
    assert await reasons(loop, posts) == said
    assert counted_since(before) == {"help_given": 2}


@pytest.mark.parametrize("limit", ["per_member_per_hour", "per_topic_per_hour", "per_hour"])
async def test_what_is_beyond_a_limit_says_which(database_url: str, tmp_path: Path, limit: str) -> None:
    word = {"per_member_per_hour": "member_limit", "per_topic_per_hour": "topic_limit", "per_hour": "hourly_limit"}
    before = skips()
    async with whole_loop(database_url, tmp_path, limits={limit: 2}) as loop:
        scene = Scene(loop)
        other = 10 if limit == "per_topic_per_hour" else scene.topic()
        who = ("alice",) * 4 if limit == "per_member_per_hour" else ("alice", "Zoé", "newbie", "boss")
        posts = {}
        for i, by in enumerate(who):
            posts[str(i)] = scene.post(f"{QUESTION} Number {i}.", by=by, topic=(10, other)[i % 2])
            await loop.drain()
        assert await reasons(loop, posts) == {"0": "posted", "1": "posted", "2": word[limit], "3": word[limit]}
    assert counted_since(before) == {word[limit]: 2}


async def test_every_event_of_one_post_together_gets_one_reply(loop: Loop) -> None:
    post = await loop.say(QUESTION, reply_to=1)
    for raw in (f"{QUESTION} Please!", f"{QUESTION} Pretty please!"):
        answer = await loop.client.put(
            f"/posts/{post['id']}.json", json={"post": {"raw": raw}}, headers=acting_as("alice")
        )
        assert answer.status_code == 200
    await loop.drain()
    assert loop.room.webhooks is not None
    events = [delivery.event.value for delivery in loop.room.webhooks.kept.values() if delivery.status == 200]
    assert events.count("post_edited") == 2
    assert {"post_created", "notification_created"} <= set(events)
    assert len(loop.replies(post["post_number"])) == 1
    before = skips()
    await loop.client.put(
        f"/posts/{post['id']}.json", json={"post": {"raw": f"{QUESTION} Again?"}}, headers=acting_as("alice")
    )
    await loop.drain()
    assert len(loop.replies(post["post_number"])) == 1
    assert counted_since(before) == {}


async def test_two_bots_do_not_talk_to_each_other(loop: Loop) -> None:
    """A bot that answers every reply it gets, with a mention: a listed one is never answered."""
    scene = Scene(loop)
    asked = scene.post(by="OtherBot")
    await loop.drain()
    assert loop.replies() == []
    scene.post(reply_to=loop.room.forum.posts[asked].number)
    await loop.drain()
    (ours,) = (p for p in loop.room.forum.posts.values() if p.user_id == 1000)
    scene.post(f"@ariane I am a bot too. {QUESTION}", by="OtherBot", reply_to=ours.number)
    scene.post("I am a bot too, I reply to everything.", by="OtherBot", reply_to=ours.number)
    await loop.drain()
    assert len(loop.replies()) == 1


async def test_a_bot_that_nobody_listed_is_stopped_by_the_limit(database_url: str, tmp_path: Path) -> None:
    async with whole_loop(database_url, tmp_path, limits={"per_member_per_hour": 2}) as loop:
        scene = Scene(loop)
        loop.room.forum.add(Member(8, "unlisted", "Unlisted"))
        scene.post(by="unlisted")
        for _ in range(4):
            await loop.drain()
            last = max(loop.room.forum.posts.values(), key=lambda p: p.id)
            if last.user_id != 1000:
                break
            scene.post(f"@ariane thank you, and {QUESTION[8:]}", by="unlisted", reply_to=last.number)
        assert len(loop.replies()) == 2
