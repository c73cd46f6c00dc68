"""Webhook deliveries read without I/O: what happened, told by the signed body, and which deliveries are the same."""

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from service.discourse.feedback import FEEDBACK_KINDS, FeedbackEvent, feedback_of
from service.discourse.shapes import Fields, fields_of, id_of, post_from_json
from service.domain import CategoryId, Post, TopicId, UserId
from service.errors import Rejected


class PostEventName(StrEnum):
    CREATED = "post_created"
    EDITED = "post_edited"
    DESTROYED = "post_destroyed"
    RECOVERED = "post_recovered"


class TopicEventName(StrEnum):
    CREATED = "topic_created"
    REVISED = "topic_revised"
    EDITED = "topic_edited"
    DESTROYED = "topic_destroyed"
    RECOVERED = "topic_recovered"
    STATUS_UPDATED = "topic_status_updated"


class CategoryEventName(StrEnum):
    CREATED = "category_created"
    UPDATED = "category_updated"
    DESTROYED = "category_destroyed"


class MemberEventName(StrEnum):
    DESTROYED = "user_destroyed"


@dataclass(frozen=True, slots=True)
class Ping:
    """The forum tries the hook out."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """A delivery that we have no use for; `kind` is one of a fixed list, fit for a metric's label."""

    kind: str


@dataclass(frozen=True, slots=True)
class PostEvent:
    """A post's snapshot. DESTROYED is said only of a body that says so itself; RECOVERED must be read again."""

    name: PostEventName
    post: Post


@dataclass(frozen=True, slots=True)
class TopicEvent:
    """Something happened to a topic: the name is for people, the topic must be read again.

    `private` when the body itself says that the public doesn't find it: deleted, unlisted, a message, in no category.
    """

    name: TopicEventName
    topic_id: TopicId
    private: bool = False
    category_id: CategoryId | None = None


@dataclass(frozen=True, slots=True)
class CategoryEvent:
    """Something happened to a category: the name is for people, the categories must be read again.

    `private` when the body itself says that not everybody reads it.
    """

    name: CategoryEventName
    category_id: CategoryId
    private: bool = False


@dataclass(frozen=True, slots=True)
class MemberGone:
    """An account is gone, as an unsigned header says: the forum must be asked before anything of it is erased."""

    user_id: UserId
    username: str
    name: MemberEventName = MemberEventName.DESTROYED


Stored = PostEvent | TopicEvent | CategoryEvent | MemberGone
Event = Ping | Ignored | Stored | FeedbackEvent

IGNORED_KINDS = frozenset(
    {"badge", "calendar_event", "chat_message", "group", "group_user", "like", "notification", "reviewable"}
    | {"solved", "tag", "topic_voting", "user", "user_badge", "user_promoted"}
)
"""Event types of Discourse that we have no use for; any other is counted as "other"."""


def parse_event(event_type: str | None, event: str | None, body: bytes) -> Event:
    """What a delivery says; raises Rejected(400) on a malformed body.

    `event_type` and `event` are the headers X-Discourse-Event-Type and X-Discourse-Event. Nothing signs them, so they
    only choose among readings that the signed body allows (docs/discourse, section 1).
    """
    payload = _object(body)
    if not payload:
        raise Rejected("body: an object without a key")
    root = event_type if event_type in payload else next(iter(payload))
    match root:
        case "ping":
            return Ping()
        case "post":
            post = post_from_json(payload[root])
            return PostEvent(_post_event_name(event, post), post)
        case "topic":
            topic = fields_of(payload[root], "topic")
            return _topic_event(_topic_event_name(event, topic), topic)
        case "category":
            category = fields_of(payload[root], "category")
            category_id = CategoryId(id_of(category, "id", "category"))
            return CategoryEvent(_category_event_name(event), category_id, category.get("read_restricted") is True)
        case "user" if event == MemberEventName.DESTROYED:
            return _member_gone(payload[root])
        case _:
            feedback = feedback_of(root, event, payload[root]) if root in FEEDBACK_KINDS else None
            return feedback or Ignored(root if root in IGNORED_KINDS else "other")


def _member_gone(value: object) -> MemberGone | Ignored:
    user = fields_of(value, "user")
    user_id, username = id_of(user, "id", "user"), user.get("username")
    # Without a name the forum can't be asked.
    return MemberGone(UserId(user_id), username) if isinstance(username, str) and username else Ignored("user")


def content_key(*, instance: str, event: Stored | FeedbackEvent, event_id: str, body: bytes) -> bytes:
    """SHA-256 that two deliveries share exactly when the second must be dropped as a repeat.

    A post's body carries `updated_at` (or `deleted_at`), so the same body is the same event whatever its Event-Id:
    automatic retries have new ones. Where two true events can have the same body (a topic closed, opened and closed
    again, a post recovered twice), the Event-Id tells them apart: those events only make us read again, so a replay
    under a made-up id does no harm.
    """
    parts = [instance, event.name.value]
    if not isinstance(event, PostEvent) or event.name is PostEventName.RECOVERED:
        parts.append(event_id)
    digest = hashlib.sha256()
    for part in (*(text.encode("utf-8", "replace") for text in parts), body):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def _object(body: bytes) -> Fields:
    try:
        return fields_of(json.loads(body.decode("utf-8"), parse_constant=_no_constant), "body")
    except (ValueError, RecursionError) as exc:
        raise Rejected("body: not JSON") from exc


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _post_event_name(header: str | None, post: Post) -> PostEventName:
    if post.deleted:
        return PostEventName.DESTROYED
    if header == PostEventName.DESTROYED and not post.user_deleted:
        return PostEventName.EDITED
    return next((name for name in PostEventName if name == header), PostEventName.EDITED)


def _topic_event(name: TopicEventName, topic: Fields) -> TopicEvent:
    category = topic.get("category_id")
    private = (
        topic.get("deleted_at") is not None
        or topic.get("visible") is False
        or topic.get("archetype") == "private_message"
        or ("category_id" in topic and category is None)
    )
    known = id_of(topic, "category_id", "topic") if category is not None else None
    return TopicEvent(name, TopicId(id_of(topic, "id", "topic")), private, None if known is None else CategoryId(known))


def _topic_event_name(header: str | None, topic: Fields) -> TopicEventName:
    if topic.get("deleted_at") is not None:
        return TopicEventName.DESTROYED
    if header is not None and header.endswith("_status_updated"):  # topic_closed_status_updated and its like
        return TopicEventName.STATUS_UPDATED
    if header == TopicEventName.DESTROYED:
        return TopicEventName.EDITED
    return next((name for name in TopicEventName if name == header), TopicEventName.EDITED)


def _category_event_name(header: str | None) -> CategoryEventName:
    return next((name for name in CategoryEventName if name == header), CategoryEventName.UPDATED)
