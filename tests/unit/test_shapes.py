"""JSON of Discourse becomes the domain, or a refusal that names the field."""

import gzip
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.discourse.shapes import (
    MAX_COOKED_BYTES,
    categories_from_json,
    post_from_json,
    posts_of_topic_json,
    readable_posts_of,
    stream_of,
    topic_from_json,
)
from service.domain import Category, CategoryId, Post, PostId, Topic, TopicId, UserId
from service.errors import Rejected
from tests.shared import SHARED, needs_shared

POST: dict[str, Any] = {
    "id": 12,
    "topic_id": 10,
    "post_number": 3,
    "post_type": 1,
    "user_id": 5,
    "username": "Zoé",
    "cooked": "<p>How?</p>",
    "created_at": "2026-01-02T13:58:49.606Z",
    "updated_at": "2026-01-02T15:58:56.058+02:00",
}
TOPIC: dict[str, Any] = {
    "id": 10,
    "title": "Bleeding a radiator",
    "slug": "bleeding-a-radiator",
    "category_id": 4,
    "archetype": "regular",
    "visible": True,
    "closed": False,
    "archived": False,
    "deleted_at": None,
    "tags": ["heating"],
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
post_values = st.fixed_dictionaries(
    {}, optional={key: st.just(value) | json_values for key, value in (POST | {"reply_to_user": None}).items()}
)


def test_a_bare_post_is_private_and_dated_in_utc() -> None:
    assert post_from_json(POST) == Post(
        id=PostId(12),
        topic_id=TopicId(10),
        post_number=3,
        post_type=1,
        user_id=UserId(5),
        username="Zoé",
        cooked="<p>How?</p>",
        created_at=datetime(2026, 1, 2, 13, 58, 49, 606000, UTC),
        updated_at=datetime(2026, 1, 2, 13, 58, 56, 58000, UTC),
    )


def test_a_webhook_post_carries_its_place() -> None:
    extra = {
        "topic_archetype": "regular",
        "category_id": 4,
        "topic_title": "T",
        "topic_slug": "t",
        "reply_to_post_number": 2,
        "reply_to_user": {"username": "ariane"},
        "some_plugin": {"x": [1]},
    }
    post = post_from_json(POST | extra)
    assert (post.archetype, post.category_id, post.topic_title, post.topic_slug) == ("regular", 4, "T", "t")
    assert (post.reply_to_post_number, post.reply_to_username) == (2, "ariane")


def test_the_topic_says_where_its_posts_are() -> None:
    topic = topic_from_json(TOPIC)
    post = post_from_json(POST | {"category_id": 99, "topic_archetype": "private_message"}, topic=topic)
    assert (post.archetype, post.category_id, post.topic_title) == ("regular", 4, "Bleeding a radiator")
    with pytest.raises(Rejected, match="topic_id"):
        post_from_json(POST | {"topic_id": 11}, topic=topic)


@pytest.mark.parametrize("key", ["id", "topic_id", "post_number", "post_type", "cooked", "created_at", "updated_at"])
@pytest.mark.parametrize("bad", [None, True, -1, 0, 2**63, 1.5, [], {}, "\N{DIGIT ONE}x"])
def test_a_malformed_required_field_is_named(key: str, bad: object) -> None:
    if key == "cooked" and isinstance(bad, str):
        return
    with pytest.raises(Rejected, match=f"post.{key}") as caught:
        post_from_json(POST | {key: bad})
    assert caught.value.status == 400
    without = {name: value for name, value in POST.items() if name != key}
    with pytest.raises(Rejected, match=f"post.{key}"):
        post_from_json(without)


@pytest.mark.parametrize(
    "date", ["2026-01-02", "2026-01-02T10:00:00", "0001-01-01T00:00:00+14:00", "soon", "", "9" * 999]
)
def test_dates_need_a_zone_and_sense(date: str) -> None:
    with pytest.raises(Rejected, match="updated_at"):
        post_from_json(POST | {"updated_at": date})


@pytest.mark.parametrize(
    ("given_number", "read"), [(None, None), (0, None), (7, 7), ("7", 7), ("", None)], ids=lambda value: repr(value)
)
def test_reply_number_as_number_or_text(given_number: object, read: int | None) -> None:
    assert post_from_json(POST | {"reply_to_post_number": given_number}).reply_to_post_number == read


@pytest.mark.parametrize("bad", ["seven", "-1", "٣", -1, 2**31, [1], True, "9" * 5000])
def test_reply_number_that_is_none(bad: object) -> None:
    with pytest.raises(Rejected, match="reply_to_post_number"):
        post_from_json(POST | {"reply_to_post_number": bad})


@pytest.mark.parametrize("key", ["hidden", "user_deleted", "deleted_at", "via_email"])
def test_a_doubtful_state_takes_the_post_away(key: str) -> None:
    field = {"deleted_at": "deleted"}.get(key, key)
    assert getattr(post_from_json(POST | {key: None}), field) is False
    assert getattr(post_from_json(POST | {key: False}), field) is False
    for value in (True, "2026-01-05T13:19:34.880Z", 0, ""):
        assert getattr(post_from_json(POST | {key: value}), field) is True


def test_system_and_forgotten_authors() -> None:
    assert post_from_json(POST | {"user_id": -1}).user_id == -1
    gone = post_from_json(POST | {"user_id": None, "username": None})
    assert (gone.user_id, gone.username) == (None, "")


def test_texts_fit_the_database() -> None:
    post = post_from_json(POST | {"cooked": "<p>a\0b\ud800c</p>", "username": "n\0\udfff", "topic_title": "x" * 5000})
    assert (post.cooked, post.username, len(post.topic_title)) == ("<p>ab\ufffdc</p>", "n\ufffd", 1000)


@pytest.mark.parametrize("letter", ["a", "é", "€", "😀"])
def test_long_html_is_cut_between_characters(letter: str) -> None:
    cooked = post_from_json(POST | {"cooked": letter * MAX_COOKED_BYTES}).cooked
    assert MAX_COOKED_BYTES - 4 < len(cooked.encode()) <= MAX_COOKED_BYTES
    assert set(cooked) == {letter}


def test_topic_tags_of_older_and_newer_versions() -> None:
    tags = ["heating", {"id": 3, "name": "énergie", "slug": "energie"}, {"id": 4}, 5, None, ""]
    assert topic_from_json(TOPIC | {"tags": tags}).tags == ("heating", "énergie")
    assert topic_from_json(TOPIC | {"tags": None}).tags == ()


def test_a_topic_in_doubt_is_not_public() -> None:
    topic = topic_from_json({"id": 10, "title": "T"})
    assert topic == Topic(TopicId(10), "T", "", None, "", visible=False)
    assert topic_from_json(TOPIC | {"deleted_at": "2026-01-05T13:19:34.880Z"}).deleted
    assert topic_from_json(TOPIC | {"visible": "yes"}).visible is False


@pytest.mark.parametrize(
    ("key", "bad"), [("id", "10"), ("title", None), ("category_id", "4"), ("archetype", 1), ("slug", [])]
)
def test_a_malformed_topic_is_named(key: str, bad: object) -> None:
    with pytest.raises(Rejected, match=f"topic.{key}"):
        topic_from_json(TOPIC | {key: bad})


def test_posts_of_a_topic_and_one_bad_apple() -> None:
    good, bad = POST, POST | {"id": "x"}
    value = TOPIC | {"post_stream": {"posts": [good, bad], "stream": [12, 13]}}
    posts, faults = readable_posts_of(value, topic_from_json(value))
    assert [post.id for post in posts] == [12]
    assert [str(fault).split(":")[0] for fault in faults] == ["post.id"]
    with pytest.raises(Rejected, match=r"post\.id"):
        posts_of_topic_json(value)
    assert stream_of(value) == [12, 13]


@pytest.mark.parametrize("stream", [None, [], {"posts": {}}, {"posts": 1}])
def test_a_topic_without_a_stream_of_posts(stream: object) -> None:
    with pytest.raises(Rejected, match="post_stream"):
        posts_of_topic_json(TOPIC | {"post_stream": stream})


def category(number: int, **fields: object) -> dict[str, object]:
    return {"id": number, "name": f"C{number}", "slug": f"c{number}", "read_restricted": False} | fields


def test_categories_of_both_shapes() -> None:
    flat = {"categories": [category(1), category(2, parent_category_id=1), category(3, read_restricted=True)]}
    nested = {
        "category_list": {
            "categories": [
                category(1, subcategory_list=[category(2, subcategory_list=None)], subcategory_ids=[2]),
                category(3, read_restricted=True),
            ]
        }
    }
    wanted = [
        Category(CategoryId(1), "C1", "c1", None, read_restricted=False),
        Category(CategoryId(2), "C2", "c2", CategoryId(1), read_restricted=False),
        Category(CategoryId(3), "C3", "c3", None, read_restricted=True),
    ]
    assert categories_from_json(flat) == wanted
    assert categories_from_json(nested) == wanted


@pytest.mark.parametrize("doubt", [None, 0, "false", []])
def test_a_category_in_doubt_is_private(doubt: object) -> None:
    assert categories_from_json({"categories": [category(1, read_restricted=doubt)]})[0].read_restricted


@pytest.mark.parametrize("bad", [None, 7, {}, {"id": -1}, {"id": 2, "name": 5}, {"id": 2, "subcategory_list": {}}])
def test_a_category_that_can_not_be_read_hides_no_other(bad: object) -> None:
    """One that was closed meanwhile would else stay open until the bad one is mended."""
    read = categories_from_json({"categories": [category(1), bad, category(3, read_restricted=True)]})
    assert [(one.id, one.read_restricted) for one in read] == [(1, False), (3, True)]
    nested = categories_from_json({"categories": [category(1, subcategory_list=[bad, category(4)])]})
    assert [one.id for one in nested] == [1, 4]
    with pytest.raises(Rejected):
        categories_from_json({"categories": [bad]})


def test_no_categories_at_all() -> None:
    assert categories_from_json({}) == []
    with pytest.raises(Rejected, match="categories"):
        categories_from_json({"categories": {}})


@given(json_values | post_values)
def test_any_json_is_read_or_refused(value: object) -> None:
    for read in (post_from_json, topic_from_json, posts_of_topic_json, stream_of, categories_from_json):
        try:
            read(value)
        except Rejected as fault:
            assert fault.status == 400
            assert str(fault)


@given(post_values)
def test_a_post_that_is_read_fits_the_database(value: dict[str, object]) -> None:
    try:
        post = post_from_json(POST | value)
    except Rejected:
        return
    assert 1 <= post.id < 2**63
    assert 1 <= post.post_number < 2**31
    assert "\0" not in post.cooked + post.username
    assert (post.cooked + post.username + post.topic_title).encode()
    assert post.updated_at.tzinfo is UTC


@needs_shared
@pytest.mark.parametrize("forum", ["urho3d", "cnil"])
def test_a_real_forum_is_read(forum: str) -> None:
    with gzip.open(SHARED / "data" / forum / "topics.jsonl.gz") as file:
        for line, _ in zip(file, range(300), strict=False):
            value = json.loads(line)
            posts = posts_of_topic_json(value)
            assert len(posts) == len(value["post_stream"]["posts"])
            assert {post.archetype for post in posts} <= {value["archetype"]}
