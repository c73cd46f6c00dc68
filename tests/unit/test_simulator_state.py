"""What the simulated forum keeps between two runs, and what its demo file may hold."""

import json
from pathlib import Path

import pytest

from service.simulator.forum import Author
from service.simulator.model import Change, Member, moment, slugify
from service.simulator.rights import is_listed, readable_posts
from service.simulator.state import DEMO, dump, load_yaml, open_forum, restore
from tests.simulated import START, tiny_forum

BOT = Member(1000, "ariane", "Ariane")
BASE = "http://127.0.0.1:4200"


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("How do I bleed a radiator?", "how-do-i-bleed-a-radiator"),
        ("Quelle profondeur de terre, légume par légume ?", "quelle-profondeur-de-terre-legume-par-legume"),
        ("L'eau de l'été", "leau-de-lete"),
        ("Cœur de bœuf", "coeur-de-boeuf"),
        ("日本", "topic"),
        ("", "topic"),
    ],
)
def test_slugs(title: str, slug: str) -> None:
    assert slugify(title) == slug


def test_a_time_needs_its_zone() -> None:
    assert moment("2026-01-01T00:00:00Z") == moment("2026-01-01T01:00:00+01:00")
    with pytest.raises(ValueError, match="zone"):
        moment("2026-01-01T00:00:00")


def test_ids_follow_time_and_links_lead_to_where_the_forum_runs(tmp_path: Path) -> None:
    forum = tiny_forum(tmp_path)
    assert [p.created_at for p in forum.posts.values()] == sorted(p.created_at for p in forum.posts.values())
    assert forum.posts[8].raw == f"See {BASE}/t/how-to-bleed-a-radiator/10 for the answer."


def test_what_is_posted_survives_and_ids_are_never_used_again(tmp_path: Path) -> None:
    path = tmp_path / "data" / "state.json"
    tiny_forum(tmp_path)
    demo = tmp_path / "forum.yml"
    first = open_forum(path, base_url=BASE, bot=BOT, demo=demo)
    alice = Author(first.members[2], START)
    post = first.create_post(alice, topic_id=10, raw="Thanks a lot, @ariane!", reply_to=2)
    first.delete_post(Author(first.members[1], START), post.id)
    demo.unlink()
    second = open_forum(path, base_url=BASE, bot=BOT, demo=demo)
    assert second.posts == first.posts
    assert second.topics == first.topics
    assert second.notifications == first.notifications
    assert (second.members, second.categories) == (first.members, first.categories)
    again = second.create_post(alice, topic_id=10, raw="Thanks a lot, everyone!")
    assert (again.id, again.number) == (post.id + 1, post.number + 1)
    assert [p.name for p in path.parent.iterdir()] == ["state.json"]


def test_hiding_is_kept_though_nothing_is_announced(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    tiny_forum(tmp_path)
    forum = open_forum(path, base_url=BASE, bot=BOT, demo=tmp_path / "forum.yml")
    told: list[Change] = []
    forum.listeners.append(told.extend)
    forum.hide_post(1, hidden=True, now=START)
    assert told == []
    assert open_forum(path, base_url=BASE, bot=BOT).posts[1].hidden


def test_a_forum_that_moved_takes_its_links_along(tmp_path: Path) -> None:
    forum = tiny_forum(tmp_path)
    moved = restore(dump(forum), base_url="http://127.0.0.1:4999/sub")
    assert "http://127.0.0.1:4999/sub/t/how-to-bleed-a-radiator/10" in moved.posts[8].raw
    assert "http://127.0.0.1:4999/sub/t/how-to-bleed-a-radiator/10" in moved.posts[8].cooked


@pytest.mark.parametrize("text", ["", "{}", '{"version": 99}', "[]"])
def test_a_file_that_is_no_state_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"Expecting|version"):
        open_forum(path, base_url=BASE, bot=BOT)
    assert path.read_text(encoding="utf-8") == text


def test_the_demo_forum_loads(tmp_path: Path) -> None:
    forum = load_yaml(DEMO, base_url=BASE, bot=BOT)
    json.loads(dump(forum))
    listed = [t for t in forum.topics.values() if is_listed(forum, None, t)]
    assert listed
    for topic in listed:
        for post in readable_posts(forum, None, topic):
            assert post.cooked or post.post_type == 3
            assert "[quote" not in post.cooked
