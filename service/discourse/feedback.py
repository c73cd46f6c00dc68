"""Deliveries that tell what members make of a post: likes, flags, solutions; read without I/O."""

import re
from dataclasses import dataclass
from enum import StrEnum

from service.discourse.shapes import Fields, fields_of, id_of
from service.domain import PostId, TopicId, UserId
from service.errors import Rejected

FEEDBACK_KINDS = frozenset({"like", "solved", "reviewable"})
"""Event types, which are their bodies' root keys."""

_FLAGGED_POST = "ReviewableFlaggedPost"
_DISMISSED = (2, 3)
"""Discourse's Reviewable.statuses: rejected and ignored."""
_POST_PATH = re.compile(r"/t/(?:[^/?#]{1,600}/)?([0-9]{1,18})/([0-9]{1,9})(?:[?#]|$)")


class FeedbackName(StrEnum):
    LIKED = "post_liked"
    ACCEPTED = "accepted_solution"
    UNACCEPTED = "unaccepted_solution"
    FLAGGED = "post_flagged"
    UNFLAGGED = "flag_dismissed"


@dataclass(frozen=True, slots=True)
class Like:
    """A member, where it is told which, likes a post."""

    post_id: PostId
    by: UserId | None
    name: FeedbackName = FeedbackName.LIKED


@dataclass(frozen=True, slots=True)
class Solution:
    """A post was accepted as the solution of its topic, or is it no more."""

    name: FeedbackName
    post_id: PostId
    topic_id: TopicId


@dataclass(frozen=True, slots=True)
class Flag:
    """A post, named by its topic and its number there, was flagged, or the flag was dismissed."""

    name: FeedbackName
    topic_id: TopicId
    post_number: int


FeedbackEvent = Like | Solution | Flag


def feedback_of(kind: str, header: str | None, value: object) -> FeedbackEvent | None:
    """What a body of one of FEEDBACK_KINDS says; None where it is of no use, or of a shape we don't know.

    These shapes are the forum's plugins' and change with them, and nothing depends on what they say. The header is not
    signed: it only tells a solution from one that was taken back.
    """
    try:
        said = fields_of(value, kind)
        if kind == "like":
            return _like(said)
        return _solution(header, said) if kind == "solved" else _flag(said)
    except Rejected:
        return None


def _like(said: Fields) -> Like:
    user = said.get("user")
    by = None if user is None else UserId(id_of(fields_of(user, "like.user"), "id", "like.user"))
    post = fields_of(said.get("post"), "like.post")
    return Like(PostId(id_of(post, "id", "like.post")), by)


def _solution(header: str | None, said: Fields) -> Solution:
    taken_back = (header or "").endswith(FeedbackName.UNACCEPTED)
    name = FeedbackName.UNACCEPTED if taken_back else FeedbackName.ACCEPTED
    return Solution(name, PostId(id_of(said, "id", "solved")), TopicId(id_of(said, "topic_id", "solved")))


def _flag(said: Fields) -> Flag | None:
    place = _POST_PATH.search(str(said.get("target_url") or "")[:2_000])
    if said.get("type") != _FLAGGED_POST or place is None:
        return None
    name = FeedbackName.UNFLAGGED if said.get("status") in _DISMISSED else FeedbackName.FLAGGED
    return Flag(name, TopicId(int(place[1])), int(place[2]))
