"""What a delivery is good for, decided without I/O: which jobs it makes, and whether its text may be kept."""

from collections.abc import Mapping
from enum import StrEnum
from typing import assert_never

from service.discourse.cooked import Mentioned, find_mentions
from service.discourse.events import CategoryEvent, MemberGone, PostEvent, PostEventName, Stored, TopicEvent
from service.discourse.names import folded_name
from service.domain import Category, CategoryId, Post, PostType, TopicId
from service.jobs import CATEGORIES, NewJob, TaskName


class Place(StrEnum):
    """Who reads the place a post was written in, as far as we know when its delivery arrives."""

    PUBLIC = "public"
    UNKNOWN = "unknown"
    PRIVATE = "private"


def place_of(post: Post, categories: Mapping[CategoryId, Category]) -> Place:
    """Where the post stands; UNKNOWN makes the same jobs as PUBLIC, but they read the post again.

    Hooks are not filtered by permission: messages, whispers and private categories all arrive (docs/discourse, 4).
    """
    if post.archetype == "private_message" or post.category_id is None or post.post_type == PostType.WHISPER:
        return Place.PRIVATE
    category = categories.get(post.category_id)
    if category is None or post.archetype is None:
        return Place.UNKNOWN
    return Place.PRIVATE if category.read_restricted else Place.PUBLIC


def place_of_topic(category_id: CategoryId | None, categories: Mapping[CategoryId, Category]) -> Place:
    """Where a topic stands, by its category alone; PUBLIC where its event names none."""
    if category_id is None:
        return Place.PUBLIC
    category = categories.get(category_id)
    if category is None:
        return Place.UNKNOWN
    return Place.PRIVATE if category.read_restricted else Place.PUBLIC


def addresses_bot(post: Post, bot_username: str) -> bool:
    """Whether a post may be meant for the bot: a mention in its own words, a reply to it or to one who isn't named."""
    answered = post.reply_to_username or (bot_username if post.reply_to_post_number else "")
    replied = folded_name(answered) == folded_name(bot_username)
    return replied or find_mentions(post.cooked, bot_username) is Mentioned.PLAIN


def jobs_for(event: Stored, *, place: Place, addressed: bool) -> tuple[NewJob, ...]:
    """The jobs an event makes; `place` counts for posts and topics, `addressed` for posts whose text isn't kept."""
    match event:
        case PostEvent():
            return _jobs_for_post(event, place, addressed=addressed)
        # What the signed body itself says to be private, or in a category that isn't known, is hidden at once: without
        # a lock, that another job may hold while it waits for its retry, and without the forum. Then it is read again.
        case TopicEvent(topic_id=topic_id):
            args = {"topic_id": topic_id}
            refresh = NewJob(TaskName.REFRESH_TOPIC, _index_lock(topic_id), args)
            closed = event.private or place is not Place.PUBLIC
            return (NewJob(TaskName.HIDE_TOPIC, None, args), refresh) if closed else (refresh,)
        case CategoryEvent(category_id=category_id, private=private):
            refresh = NewJob(TaskName.REFRESH_CATEGORIES, CATEGORIES)
            close = NewJob(TaskName.CLOSE_CATEGORY, None, {"category_id": category_id})
            return (close, refresh) if private else (refresh,)
        case MemberGone(user_id=user_id):
            return (NewJob(TaskName.ERASE_MEMBER, None, {"user_id": user_id}),)
        case _:
            assert_never(event)


def _jobs_for_post(event: PostEvent, place: Place, *, addressed: bool) -> tuple[NewJob, ...]:
    post = event.post
    wanted = addressed or (place is Place.PUBLIC and not post.hidden)  # a kept text is judged by the worker
    answer = (NewJob(TaskName.ANSWER_POST, f"answer:{post.id}"),) if wanted else ()
    if post.deleted or post.user_deleted:
        return (NewJob(TaskName.REMOVE_POST),)
    if post.hidden or place is Place.PRIVATE:
        # What was hidden or moved to a private place leaves the index; a question there is skipped with that reason.
        return (NewJob(TaskName.REMOVE_POST), *answer)
    if event.name is PostEventName.RECOVERED and post.post_number == 1:  # its topic comes back with it
        return (NewJob(TaskName.REFRESH_TOPIC, _index_lock(post.topic_id), {"topic_id": post.topic_id}),)
    if event.name is PostEventName.RECOVERED:
        return (NewJob(TaskName.REFRESH_POST, _index_lock(post.topic_id), {"post_id": post.id}),)
    return (*answer, NewJob(TaskName.INDEX_POST, _index_lock(post.topic_id)))


def _index_lock(topic_id: TopicId) -> str:
    return f"index:{topic_id}"
