"""What a forum holds, as its public sees it; and the ids by which we name things."""

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import NewType

PostId = NewType("PostId", int)
TopicId = NewType("TopicId", int)
CategoryId = NewType("CategoryId", int)
UserId = NewType("UserId", int)
ProfileId = NewType("ProfileId", int)
InboxId = NewType("InboxId", int)
Lang = NewType("Lang", str)
"""A language that has a wording file ("en", "fr", ...)."""

ENGLISH = Lang("en")
FRENCH = Lang("fr")


class PostType(IntEnum):
    """Discourse's post types (docs/discourse: posts.post_type)."""

    REGULAR = 1
    MODERATOR_ACTION = 2
    SMALL_ACTION = 3
    WHISPER = 4


@dataclass(frozen=True, slots=True)
class Category:
    id: CategoryId
    name: str
    slug: str
    parent_id: CategoryId | None
    read_restricted: bool


@dataclass(frozen=True, slots=True)
class Topic:
    """A thread's state, as an anonymous reader of the forum sees it."""

    id: TopicId
    title: str
    slug: str
    category_id: CategoryId | None
    archetype: str
    visible: bool = True
    closed: bool = False
    archived: bool = False
    deleted: bool = False
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Post:
    """A post as a webhook, a REST read or an archive gave it: a snapshot, dated by `updated_at`.

    `category_id` and `archetype` are None where the source didn't say; unknown means private.
    """

    id: PostId
    topic_id: TopicId
    post_number: int
    post_type: int
    user_id: UserId | None
    username: str
    cooked: str
    created_at: datetime
    updated_at: datetime
    reply_to_post_number: int | None = None
    reply_to_username: str | None = None
    hidden: bool = False
    deleted: bool = False
    user_deleted: bool = False
    via_email: bool = False
    archetype: str | None = None
    category_id: CategoryId | None = None
    topic_title: str = ""
    topic_slug: str = ""


@dataclass(frozen=True, slots=True)
class Thread:
    """A topic, those of its posts that could be read, and the ids of all that the public sees."""

    topic: Topic
    posts: tuple[Post, ...]
    ids: frozenset[PostId]
