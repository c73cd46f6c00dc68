"""What a webhook says: one root key and a snapshot of the object as staff see it (docs/discourse, section 4)."""

from service.simulator.forum import Forum
from service.simulator.listings import topic_payload
from service.simulator.model import SYSTEM, Change, Event
from service.simulator.shapes import Json, single_post
from service.simulator.sites import category_payload, notification

_NOT_IN_HOOKS = frozenset(
    {"yours", "readers_count", "flair_url", "flair_bg_color", "flair_color", "actions_summary", "mentioned_users"}
)


def post_payload(forum: Forum, post_id: int) -> Json:
    """A webhook's `post`: with what a post alone doesn't say of its topic; no tags, no read_restricted."""
    post = forum.posts[post_id]
    topic = forum.topics[post.topic_id]
    category = forum.categories.get(topic.category_id or 0)
    whole = single_post(forum, post, SYSTEM)
    shape = {k: v for k, v in whole.items() if k not in _NOT_IN_HOOKS and not k.startswith("can_")}
    return shape | {
        "topic_title": topic.title,
        "category_id": topic.category_id,
        "category_slug": category.slug if category else None,
        "topic_posts_count": shape["posts_count"],
        "topic_filtered_posts_count": shape["posts_count"],
        "topic_archetype": topic.archetype,
        "can_accept_answer": False,
        "can_unaccept_answer": False,
        "topic_accepted_answer": any(p.accepted for p in forum.stream(topic.id)) or None,
        "can_vote": False,
    }


def payload(forum: Forum, change: Change) -> Json:
    """The body of one event."""
    match change.event.kind:
        case "post":
            return {"post": post_payload(forum, change.id)}
        case "topic":
            return {"topic": topic_payload(forum, forum.topics[change.id])}
        case "category":
            return {"category": category_payload(forum, forum.categories[change.id])}
        case "like":
            who = forum.members[change.by]
            liked_by = {"id": who.id, "username": who.username, "name": who.name}
            return {"like": {"post": post_payload(forum, change.id), "user": liked_by}}
        case "solved":
            return {"solved": post_payload(forum, change.id)}
        case "reviewable":
            return {"reviewable": _flag(forum, change)}
        case "notification":
            return {"notification": notification(forum, forum.notifications[change.id])}
        case _:
            return {"ping": "OK"}


def _flag(forum: Forum, change: Change) -> Json:
    """The queue's entry of a flagged post: pending, or ignored once it was dismissed."""
    post = forum.posts[change.id]
    topic = forum.topics[post.topic_id]
    return {
        "id": change.id,
        "type": "ReviewableFlaggedPost",
        "status": 3 if change.event is Event.REVIEWABLE_UPDATED else 0,
        "topic_id": topic.id,
        "category_id": topic.category_id,
        "target_url": f"{forum.base_url}/t/{topic.slug}/{topic.id}/{post.number}",
    }
