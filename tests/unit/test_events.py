"""Deliveries are told by their signed body; the unsigned headers decide nothing that destroys."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.discourse.events import (
    IGNORED_KINDS,
    CategoryEvent,
    Event,
    Ignored,
    MemberGone,
    Ping,
    PostEvent,
    PostEventName,
    Stored,
    TopicEvent,
    TopicEventName,
    content_key,
    parse_event,
)
from service.discourse.feedback import Like
from service.domain import UserId
from service.errors import Rejected
from tests.shared import SHARED, needs_shared
from tests.unit.test_shapes import POST, TOPIC, json_values

DELETED = {"deleted_at": "2026-01-05T13:19:34.880Z"}
CATEGORY = {"id": 4, "name": "Heating", "slug": "heating", "read_restricted": False}


def body_of(root: str, value: object) -> bytes:
    return json.dumps({root: value}).encode()


def parsed(event: str | None, root: str, value: object) -> Event:
    return parse_event(root, event, body_of(root, value))


@pytest.mark.parametrize(
    ("root", "event", "value", "name"),
    [
        ("post", "post_created", POST, "post_created"),
        ("post", "post_edited", POST, "post_edited"),
        ("post", "post_destroyed", POST | DELETED, "post_destroyed"),
        ("post", "post_edited", POST | {"user_deleted": True}, "post_edited"),
        ("post", "post_destroyed", POST | {"user_deleted": True}, "post_destroyed"),
        ("post", "post_recovered", POST, "post_recovered"),
        ("topic", "topic_created", TOPIC, "topic_created"),
        ("topic", "topic_revised", TOPIC, "topic_revised"),
        ("topic", "topic_edited", TOPIC, "topic_edited"),
        ("topic", "topic_destroyed", TOPIC | DELETED, "topic_destroyed"),
        ("topic", "topic_recovered", TOPIC, "topic_recovered"),
        *(
            ("topic", f"topic_{status}_status_updated", TOPIC, "topic_status_updated")
            for status in ("closed", "visible", "archived", "pinned")
        ),
        ("category", "category_created", CATEGORY, "category_created"),
        ("category", "category_updated", CATEGORY | {"read_restricted": True}, "category_updated"),
        ("category", "category_destroyed", CATEGORY, "category_destroyed"),
    ],
)
def test_every_event_that_we_use(root: str, event: str, value: dict[str, Any], name: str) -> None:
    read = parsed(event, root, value)
    assert isinstance(read, PostEvent | TopicEvent | CategoryEvent)
    assert read.name == name
    if isinstance(read, TopicEvent):
        assert read.topic_id == 10
    if isinstance(read, CategoryEvent):
        assert read.category_id == 4


@pytest.mark.parametrize(
    ("root", "event", "kind"),
    [
        ("notification", "notification_created", "notification"),
        ("solved", "accepted_solution", "solved"),
        ("user", "user_destroyed", "user"),
        ("user", "user_created", "user"),
        ("group", "group_created", "group"),
        ("tag", "tag_created", "tag"),
        ("reviewable", "reviewable_created", "reviewable"),
        ("user_badge", "user_badge_granted", "user_badge"),
        ("chat_message", "chat_message_created", "chat_message"),
        ("brand_new", "brand_new_created", "other"),
    ],
)
def test_what_we_have_no_use_for(root: str, event: str, kind: str) -> None:
    assert parsed(event, root, {"id": 1, "post": POST}) == Ignored(kind)


def test_a_destroyed_account_is_named() -> None:
    gone = {"id": 7, "username": "ines"}
    assert parsed("user_destroyed", "user", gone) == MemberGone(UserId(7), "ines")
    assert parsed("user_destroyed", "user", gone | {"username": None}) == Ignored("user")
    for header in ("user_updated", "post_destroyed", None):
        assert parsed(header, "user", gone) == Ignored("user")


def test_ping() -> None:
    assert parsed("ping", "ping", "OK") == Ping()


@pytest.mark.parametrize("header", ["post_destroyed", "topic_destroyed", "post_moved", "", None, "POST_DESTROYED"])
def test_a_header_alone_removes_nothing(header: str | None) -> None:
    post, topic = parsed(header, "post", POST), parsed(header, "topic", TOPIC)
    assert isinstance(post, PostEvent) and isinstance(topic, TopicEvent)
    assert post.name is PostEventName.EDITED
    assert topic.name is TopicEventName.EDITED


@pytest.mark.parametrize("header", ["post_created", "post_edited", "post_recovered", "topic_recovered", None])
def test_a_header_alone_brings_nothing_back(header: str | None) -> None:
    post, topic = parsed(header, "post", POST | DELETED), parsed(header, "topic", TOPIC | DELETED)
    assert isinstance(post, PostEvent) and isinstance(topic, TopicEvent)
    assert post.name is PostEventName.DESTROYED
    assert topic.name is TopicEventName.DESTROYED


@pytest.mark.parametrize("event_type", ["topic", "ping", "like", "", None, "é"])
def test_the_root_key_counts_whatever_the_type_header_says(event_type: str | None) -> None:
    assert isinstance(parse_event(event_type, "post_created", body_of("post", POST)), PostEvent)


def test_extra_root_keys_are_survived() -> None:
    body = json.dumps({"meta": 1, "post": POST}).encode()
    assert isinstance(parse_event("post", "post_created", body), PostEvent)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b'"post"',
        b"post=%7B%7D",
        b'{"post": null}',
        b'{"post": []}',
        b'{"topic": {}}',
        b'{"topic": {"id": "9"}}',
        b'{"category": {"id": true}}',
        b'{"ping": NaN}',
        b'{"ping": "\xff"}',
        b'\xef\xbb\xbf{"ping": "OK"}',
        '{"ping": "OK"}'.encode("utf-16"),
        b'{"ping": ' + b"9" * 10_000 + b"}",
        b"[" * 200_000,
        b'{"ping":' * 100_000,
        body_of("post", {key: value for key, value in POST.items() if key != "updated_at"}),
    ],
)
def test_malformed_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(Rejected) as caught:
        parse_event("post", "post_created", body)
    assert caught.value.status == 400


headers = (
    st.none() | st.text() | st.sampled_from(["post", "topic", "category", "ping", *PostEventName, *TopicEventName])
)


@given(headers, headers, st.binary())
def test_any_bytes_are_read_or_refused(event_type: str | None, event: str | None, body: bytes) -> None:
    try:
        parse_event(event_type, event, body)
    except Rejected as fault:
        assert fault.status == 400


@given(headers, headers, st.sampled_from(["post", "topic", "category", "user", "ping", "x"]), json_values)
def test_any_json_is_read_or_refused(event_type: str | None, event: str | None, root: str, value: object) -> None:
    try:
        read = parse_event(event_type, event, json.dumps({root: value}).encode())
    except Rejected as fault:
        assert fault.status == 400
        return
    assert not isinstance(read, Ignored) or read.kind in IGNORED_KINDS | {"other"}


def key_of(
    event: str, root: str, value: object, *, event_id: str = "1", instance: str = "https://forum.example"
) -> bytes:
    body = body_of(root, value)
    read = parse_event(root, event, body)
    assert isinstance(read, Stored)
    return content_key(instance=instance, event=read, event_id=event_id, body=body)


def test_the_same_post_under_a_new_event_id_is_a_repeat() -> None:
    for event, value in (("post_created", POST), ("post_edited", POST), ("post_destroyed", POST | DELETED)):
        assert key_of(event, "post", value) == key_of(event, "post", value, event_id="2")


def test_made_up_event_names_make_no_new_deliveries() -> None:
    names = ["post_edited", "post_destroyed", "post_x1", "post_x2", ""]
    assert len({key_of(name, "post", POST) for name in names}) == 1


def test_what_differs_is_not_a_repeat() -> None:
    keys = [
        key_of("post_created", "post", POST),
        key_of("post_edited", "post", POST),
        key_of("post_edited", "post", POST | {"updated_at": "2026-01-03T00:00:00Z"}),
        key_of("post_created", "post", POST, instance="https://other.example"),
        key_of("post_recovered", "post", POST),
        key_of("post_recovered", "post", POST, event_id="2"),
        key_of("topic_closed_status_updated", "topic", TOPIC),
        key_of("topic_closed_status_updated", "topic", TOPIC, event_id="2"),
        key_of("category_updated", "category", CATEGORY),
        key_of("category_updated", "category", CATEGORY, event_id="2"),
    ]
    assert all(one != other for one, other in itertools.combinations(keys, 2))
    assert {len(key) for key in keys} == {32}


def test_parts_of_a_key_do_not_run_together() -> None:
    assert key_of("topic_edited", "topic", TOPIC, instance="a", event_id="1") != key_of(
        "topic_edited", "topic", TOPIC, instance="a1", event_id=""
    )
    assert key_of("topic_edited", "topic", TOPIC, instance="\ud800")


@needs_shared
@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("notification_created_mentioned", Ignored),
        ("ping", Ping),
        ("post_created", PostEvent),
        ("post_edited", PostEvent),
        ("post_liked", Like),
        ("topic_destroyed", TopicEvent),
        ("topic_edited", TopicEvent),
    ],
)
def test_captured_deliveries(file: str, kind: type[Event]) -> None:
    captured = json.loads((SHARED / "data/webhooks" / f"{file}.json").read_text(encoding="utf-8"))
    head, body = captured["headers"], json.dumps(captured["body"]).encode()
    read = parse_event(head["X-Discourse-Event-Type"], head["X-Discourse-Event"], body)
    assert isinstance(read, kind)
    if isinstance(read, PostEvent | TopicEvent):
        assert read.name == head["X-Discourse-Event"]
    if isinstance(read, PostEvent):
        assert (read.post.archetype, read.post.category_id) == ("regular", 4)


@needs_shared
def test_all_captured_deliveries_are_tested() -> None:
    assert len(list((SHARED / "data/webhooks").glob("*.json"))) == 7
