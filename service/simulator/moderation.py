"""What moderators do to posts, topics and categories, each with the webhooks it has on Discourse, or none."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never

from service.simulator.forum import Author, Forum
from service.simulator.model import Change, Event, Member, Post, Topic

_STATUS_EVENTS = {
    "closed": Event.TOPIC_CLOSED,
    "visible": Event.TOPIC_VISIBLE,
    "archived": Event.TOPIC_ARCHIVED,
}


class Deed(StrEnum):
    """What can be asked for by name: on a post, a topic or a category."""

    HIDE = "hide"
    UNHIDE = "unhide"
    DELETE = "delete"
    RECOVER = "recover"
    MOVE = "move"
    MERGE = "merge"
    RETITLE = "retitle"
    TAG = "tag"
    RECATEGORISE = "recategorise"
    UNLIST = "unlist"
    LIST = "list"
    CLOSE = "close"
    OPEN = "open"
    ARCHIVE = "archive"
    UNARCHIVE = "unarchive"
    PRIVATISE = "privatise"
    PUBLISH = "publish"


def move_posts(forum: Forum, post_ids: Iterable[int], topic_id: int, *, now: datetime) -> list[Post]:
    """Append posts to another topic without a word to anybody (docs/discourse, section 3).

    A reply keeps its id and gets a new number; a first post stays, and is copied under a new id. Raises KeyError.
    """
    moved = []
    for post in sorted((forum.posts[post_id] for post_id in post_ids), key=lambda post: post.number):
        topic = forum.topics[topic_id]
        there = replace(post, topic_id=topic_id, number=topic.next_number, reply_to=None)
        if post.number == 1:
            there = replace(there, id=forum.new_id("post"), updated_at=now)
            forum.add(there)
        else:
            forum.place(there)
        forum.add(replace(topic, next_number=topic.next_number + 1))
        moved.append(there)
    forum.announce()
    return moved


def merge_topics(forum: Forum, topic_id: int, into: int, *, now: datetime) -> None:
    """Move all posts of a topic to another one; what remains of it is closed."""
    move_posts(forum, [post.id for post in forum.stream(topic_id) if not post.deleted_at], into, now=now)
    set_status(forum, topic_id, "closed", value=True, now=now)


def set_status(forum: Forum, topic_id: int, status: str, *, value: bool, now: datetime) -> Topic:
    """Close, unlist or archive a topic, or undo it: `status` is closed, visible or archived."""
    state: dict[str, Any] = {status: value}
    topic = replace(forum.topics[topic_id], updated_at=now, **state)
    forum.add(topic)
    forum.announce(Change(_STATUS_EVENTS[status], topic_id))
    return topic


def set_restricted(forum: Forum, category_id: int, *, value: bool) -> None:
    """Make a category private, or public."""
    forum.set_category(replace(forum.categories[category_id], read_restricted=value))


def carry_out(forum: Forum, deed: Deed, target: int, value: str, *, by: Member, now: datetime) -> None:
    """Do what a form or a script asks for; raises ValueError or KeyError where it can't be done."""
    match deed:
        case Deed.HIDE | Deed.UNHIDE:
            forum.hide_post(target, hidden=deed is Deed.HIDE, now=now)
        case Deed.DELETE:
            forum.delete_post(Author(by, now), target)
        case Deed.RECOVER:
            forum.recover_post(target, now=now)
        case Deed.MOVE:
            move_posts(forum, [target], int(value), now=now)
        case Deed.MERGE:
            merge_topics(forum, target, int(value), now=now)
        case Deed.PRIVATISE | Deed.PUBLISH:
            set_restricted(forum, target, value=deed is Deed.PRIVATISE)
        case Deed.RETITLE | Deed.TAG | Deed.RECATEGORISE:
            forum.update_topic(_changed(forum, forum.topics[target], deed, value), now=now)
        case Deed.UNLIST | Deed.LIST:
            set_status(forum, target, "visible", value=deed is Deed.LIST, now=now)
        case Deed.CLOSE | Deed.OPEN:
            set_status(forum, target, "closed", value=deed is Deed.CLOSE, now=now)
        case Deed.ARCHIVE | Deed.UNARCHIVE:
            set_status(forum, target, "archived", value=deed is Deed.ARCHIVE, now=now)
        case _:
            assert_never(deed)


def _changed(forum: Forum, topic: Topic, deed: Deed, value: str) -> Topic:
    if deed is Deed.TAG:
        return replace(topic, tags=tuple(value.replace(",", " ").split()))
    if deed is Deed.RETITLE:
        if not value.strip():
            raise ValueError("a title can't be empty")
        return replace(topic, title=" ".join(value.split()))
    return replace(topic, category_id=forum.categories[int(value)].id)


def asked_for(values: Mapping[str, Any]) -> tuple[Deed, int, str]:
    """The deed, its target's id and its value, of JSON or of a form; raises ValueError that says what is wrong."""
    try:
        return Deed(str(values.get("deed", ""))), int(str(values.get("target", ""))), str(values.get("value", ""))
    except ValueError as exc:
        raise ValueError(f"expected deed (one of {', '.join(Deed)}), target (an id) and perhaps a value") from exc
