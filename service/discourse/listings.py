"""Pages of a forum's lists, `/latest.json` and `/posts.json`, as the domain: one bad entry never sinks its page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from service.discourse.shapes import Fields, fields_of, id_of, post_from_json, topic_from_json
from service.domain import Post, PostId, Topic, TopicId
from service.errors import Rejected

MAX_NUMBER = 2**31 - 1
"""Largest number of a post in its topic that Discourse can store."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ListedTopic:
    """A topic as a list gives it, and the number of its last post."""

    topic: Topic
    last_number: int


@dataclass(frozen=True, slots=True)
class TopicPage:
    """One page of `/latest.json`; `more` tells whether others follow."""

    topics: list[ListedTopic]
    faults: list[Rejected]
    more: bool


@dataclass(frozen=True, slots=True)
class PostPage:
    """One page of `/posts.json`, perhaps empty; `lowest` and `highest` are ids on it, whether readable or not."""

    posts: list[Post]
    faults: list[Rejected]
    lowest: PostId | None
    highest: PostId | None


@dataclass(frozen=True, slots=True)
class WholeTopic:
    """`/t/ID.json`: the topic, the first of its posts, and the ids of all of them in its order."""

    topic: Topic
    posts: list[Post]
    faults: list[Rejected]
    stream: list[PostId]


def topic_page_from_json(value: object) -> TopicPage:
    """Raises Rejected(400) for what is no list of topics at all."""
    listed = fields_of(fields_of(value, "latest").get("topic_list"), "latest.topic_list")
    topics, faults = _readable(_entries(listed, "topics", "latest.topic_list"), _listed)
    return TopicPage(topics, faults, more=bool(listed.get("more_topics_url")))


def post_page_from_json(value: object) -> PostPage:
    """Raises Rejected(400) for what is no list of posts at all."""
    entries = _entries(fields_of(value, "posts"), "latest_posts", "posts")
    posts, faults = _readable(entries, post_from_json)
    ids, _ = _readable(entries, lambda entry: PostId(id_of(fields_of(entry, "post"), "id", "post")))
    return PostPage(posts, faults, min(ids, default=None), max(ids, default=None))


def latest_active(value: object) -> TopicId | None:
    """Of a page of `/latest.json`, the topic with the latest activity, pinned or not; None for an empty page."""
    listed = fields_of(fields_of(value, "latest").get("topic_list"), "latest.topic_list")
    rows = [fields_of(entry, "topic") for entry in _entries(listed, "topics", "latest.topic_list")]
    if not rows:
        return None
    return TopicId(id_of(max(rows, key=lambda row: str(row.get("bumped_at"))), "id", "topic"))


def _listed(entry: object) -> ListedTopic:
    topic = topic_from_json(entry)
    last = fields_of(entry, "topic").get("highest_post_number")
    return ListedTopic(topic, last if type(last) is int and 0 < last <= MAX_NUMBER else 1)


def _entries(fields: Fields, key: str, what: str) -> list[object]:
    value = fields.get(key)
    if not isinstance(value, list):
        raise Rejected(f"{what}.{key}: expected a list")
    return value


def _readable(entries: list[object], read: Callable[[object], T]) -> tuple[list[T], list[Rejected]]:
    found: list[T] = []
    faults: list[Rejected] = []
    for entry in entries:
        try:
            found.append(read(entry))
        except Rejected as fault:
            faults.append(fault)
    return found, faults
