"""What the simulated moderators do, and of which of it Discourse tells nobody (discourse.md, section 3)."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from service.simulator.forum import Forum
from service.simulator.model import Change
from service.simulator.moderation import Deed, carry_out, merge_topics, move_posts
from service.simulator.rights import is_listed, readable_posts
from service.simulator.state import dump, restore
from tests.simulated import START, Clock, browser, simulator, tiny_forum


@pytest.fixture
def forum(tmp_path: Path) -> Forum:
    return tiny_forum(tmp_path)


def told(forum: Forum, do: Callable[[], object]) -> list[str]:
    """The events that the deed announces."""
    heard: list[Change] = []
    forum.listeners.append(heard.extend)
    do()
    forum.listeners.remove(heard.extend)
    return [change.event.value for change in heard]


def deed(forum: Forum, deed: Deed, target: int, value: str = "") -> Callable[[], None]:
    return lambda: carry_out(forum, deed, target, value, by=forum.members[1], now=START)


def test_a_moved_reply_keeps_its_id_and_nobody_is_told(forum: Forum) -> None:
    post = forum.posts[2]
    assert told(forum, lambda: move_posts(forum, [2], 12, now=START)) == []
    moved = forum.posts[2]
    assert (moved.topic_id, moved.number, moved.updated_at) == (12, 2, post.updated_at)
    assert [p.id for p in forum.stream(12)] == [8, 2]
    assert 2 not in [p.id for p in forum.stream(10)]
    assert [p.id for p in restore(dump(forum), base_url=forum.base_url).stream(12)] == [8, 2]


def test_a_moved_first_post_stays_and_is_copied_under_a_new_id(forum: Forum) -> None:
    [copy] = move_posts(forum, [1], 12, now=START)
    assert (copy.id, copy.topic_id, copy.number, copy.raw) == (10, 12, 2, forum.posts[1].raw)
    assert forum.posts[1].topic_id == 10


def test_what_is_left_of_a_merged_topic_is_closed(forum: Forum) -> None:
    assert told(forum, lambda: merge_topics(forum, 10, 12, now=START)) == ["topic_closed_status_updated"]
    assert forum.topics[10].closed
    assert [p.id for p in readable_posts(forum, None, forum.topics[10])] == [1]
    assert [p.number for p in readable_posts(forum, None, forum.topics[12])] == [1, 2, 3, 5, 6]  # 4 is a whisper


@pytest.mark.parametrize(
    ("name", "target", "value", "events"),
    [
        (Deed.HIDE, 2, "", []),
        (Deed.UNHIDE, 4, "", []),
        (Deed.DELETE, 2, "", ["post_destroyed"]),
        (Deed.DELETE, 1, "", ["post_destroyed", "topic_destroyed"]),
        (Deed.RECOVER, 5, "", ["post_recovered"]),
        (Deed.RETITLE, 10, "How to bleed any radiator", ["topic_edited"]),
        (Deed.TAG, 10, "heating, water", ["topic_edited"]),
        (Deed.RECATEGORISE, 10, "2", ["topic_edited"]),
        (Deed.UNLIST, 10, "", ["topic_visible_status_updated"]),
        (Deed.CLOSE, 10, "", ["topic_closed_status_updated"]),
        (Deed.ARCHIVE, 10, "", ["topic_archived_status_updated"]),
        (Deed.PRIVATISE, 1, "", ["category_updated"]),
    ],
)
def test_each_deed_has_its_webhooks(forum: Forum, name: Deed, target: int, value: str, events: list[str]) -> None:
    assert told(forum, deed(forum, name, target, value)) == events


def test_deeds_and_their_undoing(forum: Forum) -> None:
    before = forum.topics[10]
    for do, undo in ((Deed.UNLIST, Deed.LIST), (Deed.CLOSE, Deed.OPEN), (Deed.ARCHIVE, Deed.UNARCHIVE)):
        deed(forum, do, 10)()
        assert forum.topics[10] != before
        deed(forum, undo, 10)()
        assert replace(forum.topics[10], updated_at=before.updated_at) == before
    deed(forum, Deed.PRIVATISE, 1)()
    assert not is_listed(forum, None, forum.topics[10])
    deed(forum, Deed.PUBLISH, 1)()
    assert is_listed(forum, None, forum.topics[10])


def test_deleting_and_recovering_touch_no_date(forum: Forum) -> None:
    at = forum.posts[2].updated_at
    deed(forum, Deed.DELETE, 2)()
    assert (forum.posts[2].updated_at, forum.posts[2].deleted_at) == (at, START)
    deed(forum, Deed.RECOVER, 2)()
    assert (forum.posts[2].updated_at, forum.posts[2].deleted_at) == (at, None)


async def test_a_script_on_this_machine_may_do_them(forum: Forum) -> None:
    async with browser(simulator(forum, Clock())) as client:
        asked = {"deed": "move", "target": 2, "value": "12"}
        assert (await client.post("/simulator/moderate", json=asked)).json() == {"success": "OK"}
        assert forum.posts[2].topic_id == 12
        for wrong, status in (({"deed": "burn", "target": 2}, 422), ({"deed": "hide", "target": 999}, 404)):
            assert (await client.post("/simulator/moderate", json=wrong)).status_code == status


async def test_only_moderators_have_the_form(forum: Forum) -> None:
    async with browser(simulator(forum, Clock())) as client:
        page = "/t/how-to-bleed-a-radiator/10"
        same = {"origin": forum.base_url}
        for name, shown in (("alice", False), ("boss", True)):
            await client.post("/who", data={"as": name}, headers=same)
            assert ("Moderate</h2>" in (await client.get(page)).text) is shown
            answer: httpx.Response = await client.post(
                "/t/10/moderate", data={"deed": "hide", "target": "2"}, headers=same
            )
            assert answer.status_code == (303 if shown else 403)
        assert forum.posts[2].hidden
        assert 'value="unhide"' in (await client.get(page)).text
