"""What the simulated forum holds: members, categories, topics, posts, notifications, and what changed."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum, StrEnum

REGULAR = 1
MODERATOR_ACTION = 2
SMALL_ACTION = 3
WHISPER = 4


@dataclass(frozen=True, slots=True)
class Member:
    id: int
    username: str
    name: str | None
    trust_level: int = 1
    moderator: bool = False
    admin: bool = False
    bot: bool = False
    staged: bool = False

    @property
    def staff(self) -> bool:
        return self.moderator or self.admin


SYSTEM = Member(-1, "system", "system", moderator=True, admin=True)
"""Discourse's own account, which no list of members shows."""


@dataclass(frozen=True, slots=True)
class Category:
    id: int
    name: str
    slug: str
    read_restricted: bool = False
    parent_id: int | None = None


@dataclass(frozen=True, slots=True)
class Topic:
    id: int
    title: str
    slug: str
    category_id: int | None
    user_id: int
    created_at: datetime
    updated_at: datetime
    tags: tuple[str, ...] = ()
    lang: str = "en"
    archetype: str = "regular"
    visible: bool = True
    closed: bool = False
    archived: bool = False
    pinned: bool = False
    deleted_at: datetime | None = None
    next_number: int = 1


@dataclass(frozen=True, slots=True)
class Post:
    id: int
    topic_id: int
    number: int
    user_id: int
    raw: str
    cooked: str
    created_at: datetime
    updated_at: datetime
    reply_to: int | None = None
    post_type: int = REGULAR
    action_code: str | None = None
    version: int = 1
    accepted: bool = False
    hidden: bool = False
    user_deleted: bool = False
    deleted_at: datetime | None = None


class NotificationType(IntEnum):
    """Discourse's notification types that concern a bot (Notification.types)."""

    MENTIONED = 1
    REPLIED = 2
    QUOTED = 3


@dataclass(frozen=True, slots=True)
class Notification:
    id: int
    user_id: int
    kind: NotificationType
    post_id: int
    created_at: datetime
    read: bool = False


class Event(StrEnum):
    """What a webhook announces, in Discourse's words."""

    POST_CREATED = "post_created"
    POST_EDITED = "post_edited"
    POST_DESTROYED = "post_destroyed"
    POST_RECOVERED = "post_recovered"
    TOPIC_CREATED = "topic_created"
    TOPIC_EDITED = "topic_edited"
    TOPIC_DESTROYED = "topic_destroyed"
    TOPIC_RECOVERED = "topic_recovered"
    TOPIC_CLOSED = "topic_closed_status_updated"
    TOPIC_VISIBLE = "topic_visible_status_updated"
    TOPIC_ARCHIVED = "topic_archived_status_updated"
    CATEGORY_CREATED = "category_created"
    CATEGORY_UPDATED = "category_updated"
    NOTIFICATION_CREATED = "notification_created"
    POST_LIKED = "post_liked"
    REVIEWABLE_CREATED = "reviewable_created"
    REVIEWABLE_UPDATED = "reviewable_updated"
    ACCEPTED_SOLUTION = "accepted_solution"
    UNACCEPTED_SOLUTION = "unaccepted_solution"
    PING = "ping"

    @property
    def kind(self) -> str:
        """The payload's root key, which is also the X-Discourse-Event-Type."""
        return _KINDS.get(self.value, self.value.partition("_")[0])


_KINDS = {"post_liked": "like", "accepted_solution": "solved", "unaccepted_solution": "solved"}


@dataclass(frozen=True, slots=True)
class Change:
    """One event about the post, topic, category or notification of this id; `by` is who likes or flags it."""

    event: Event
    id: int
    by: int = 0


def moment(text: str | datetime) -> datetime:
    """A time with its zone, from ISO text (Z allowed) or from a YAML timestamp; raises ValueError without a zone."""
    at = text if isinstance(text, datetime) else datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"a time without its zone: {text}")
    return at.astimezone(UTC)


def slugify(title: str) -> str:
    """The slug Discourse gives a title with its default "ascii" method: accents dropped, the rest hyphens."""
    plain = unicodedata.normalize("NFKD", title.replace("'", "").replace("œ", "oe").replace("Œ", "oe"))
    plain = "".join(c for c in plain if not unicodedata.combining(c)).lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "topic"


def fold(username: str) -> str:
    """A username as names are compared: NFC and case-folded."""
    return unicodedata.normalize("NFC", username).casefold()
