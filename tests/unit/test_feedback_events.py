"""Likes, solutions and flags as the forum's hooks tell them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.discourse.feedback import FEEDBACK_KINDS, FeedbackEvent, FeedbackName, Flag, Like, Solution, feedback_of
from service.domain import PostId, TopicId, UserId

POST = {"id": 12, "topic_id": 3, "username": "ariane"}
FLAG = {"id": 1, "type": "ReviewableFlaggedPost", "status": 0, "target_url": "https://forum.example/t/a-title/3/9"}


@pytest.mark.parametrize(
    ("kind", "header", "value", "event"),
    [
        (
            "like",
            "post_liked",
            {"post": POST, "user": {"id": 5}},
            Like(PostId(12), UserId(5)),
        ),
        ("like", "post_liked", {"post": POST}, Like(PostId(12), None)),
        ("like", "post_liked", {"user": {"id": 5}}, None),
        (
            "solved",
            "accepted_solution",
            POST,
            Solution(FeedbackName.ACCEPTED, PostId(12), TopicId(3)),
        ),
        (
            "solved",
            "unaccepted_solution",
            POST,
            Solution(FeedbackName.UNACCEPTED, PostId(12), TopicId(3)),
        ),
        ("solved", None, POST, Solution(FeedbackName.ACCEPTED, PostId(12), TopicId(3))),
        ("solved", None, {"id": "x"}, None),
        ("reviewable", None, FLAG, Flag(FeedbackName.FLAGGED, TopicId(3), 9)),
        ("reviewable", None, FLAG | {"status": 3}, Flag(FeedbackName.UNFLAGGED, TopicId(3), 9)),
        (
            "reviewable",
            None,
            FLAG | {"target_url": "/t/3/9?u=a"},
            Flag(FeedbackName.FLAGGED, TopicId(3), 9),
        ),
        ("reviewable", None, FLAG | {"type": "ReviewableUser"}, None),
        ("reviewable", None, FLAG | {"target_url": "/u/ines"}, None),
        ("reviewable", None, FLAG | {"target_url": None}, None),
    ],
)
def test_what_it_says(kind: str, header: str | None, value: Any, event: FeedbackEvent | None) -> None:
    assert feedback_of(kind, header, value) == event


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "post", "user", "topic_id", "type", "status", "target_url"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@given(st.sampled_from(sorted(FEEDBACK_KINDS)), st.none() | st.text(max_size=30), ANYTHING)
def test_any_body_is_an_event_or_none(kind: str, header: str | None, value: object) -> None:
    event = feedback_of(kind, header, value)
    assert event is None or event.name in FeedbackName
