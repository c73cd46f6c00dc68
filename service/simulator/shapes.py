"""Posts and members in Discourse's JSON (docs/discourse, sections 4 and 5): a snapshot for one reader."""

from datetime import UTC, datetime
from typing import Any

from service.simulator.forum import Forum
from service.simulator.model import Member, Post
from service.simulator.rights import Reader, is_staff, readable_posts, sees_text

Json = dict[str, Any]
HIDDEN_NOTICE = "<p>This post was flagged by the community and is temporarily hidden.</p>"
COLOURS = ("8d6fc1", "5daacb", "7ab55c", "c6538c", "b5651d", "3f8f8b", "c9a227", "a0522d", "5b7c99", "9a5b9f")


def stamp(at: datetime | None) -> str | None:
    """A time as Discourse prints it: UTC, milliseconds, Z."""
    return None if at is None else f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def colour(member: Member) -> str:
    return COLOURS[member.id % len(COLOURS)]


def avatar(forum: Forum, member: Member) -> str:
    return f"{forum.base_path}/letter_avatar_proxy/v4/letter/{member.username[0].lower()}/{colour(member)}/{{size}}.png"


def basic_user(forum: Forum, member: Member) -> Json:
    return {
        "id": member.id,
        "username": member.username,
        "name": member.name or "",
        "avatar_template": avatar(forum, member),
    }


def _common(forum: Forum, post: Post, reader: Reader) -> Json:
    author, topic = forum.members[post.user_id], forum.topics[post.topic_id]
    shown = sees_text(reader, post)
    mine = reader is not None and reader.id == post.user_id
    own = mine or is_staff(reader)
    shape: Json = {
        "id": post.id,
        "name": author.name or "",
        "username": author.username,
        "avatar_template": avatar(forum, author),
        "created_at": stamp(post.created_at),
        "cooked": post.cooked if shown else HIDDEN_NOTICE,
        "post_number": post.number,
        "post_type": post.post_type,
        "updated_at": stamp(post.updated_at),
        "reply_count": len([p for p in forum.replies(post) if not p.deleted_at]),
        "reply_to_post_number": post.reply_to,
        "quote_count": post.cooked.count('<aside class="quote'),
        "incoming_link_count": 0,
        "reads": 1,
        "readers_count": 0,
        "score": 0.2,
        "yours": mine,
        "topic_id": post.topic_id,
        "topic_slug": topic.slug,
        "display_username": author.name or "",
        "primary_group_name": None,
        "flair_name": None,
        "flair_url": None,
        "flair_bg_color": None,
        "flair_color": None,
        "flair_group_id": None,
        "version": post.version,
        "can_edit": own,
        "can_delete": own,
        "can_recover": bool(post.deleted_at) and is_staff(reader),
        "can_see_hidden_post": shown,
        "can_wiki": is_staff(reader),
        "user_title": None,
        "bookmarked": False,
        "actions_summary": [],
        "moderator": author.moderator,
        "admin": author.admin,
        "staff": author.staff,
        "user_id": author.id,
        "hidden": post.hidden,
        "trust_level": author.trust_level,
        "deleted_at": stamp(post.deleted_at),
        "user_deleted": post.user_deleted,
        "edit_reason": None,
        "can_view_edit_history": True,
        "wiki": False,
        "accepted_answer": post.accepted,
    }
    answered = forum.at(post.topic_id, post.reply_to) if post.reply_to else None
    if answered:
        shape["reply_to_user"] = basic_user(forum, forum.members[answered.user_id])
    if post.action_code:
        shape["action_code"] = post.action_code
    return shape


def stream_post(forum: Forum, post: Post, reader: Reader) -> Json:
    """A post as `/t/ID.json` gives it: without raw."""
    return _common(forum, post, reader) | {
        "link_counts": [],
        "read": True,
        "reviewable_id": 0,
        "reviewable_score_count": 0,
        "reviewable_score_pending_count": 0,
    }


def single_post(forum: Forum, post: Post, reader: Reader) -> Json:
    """A post as `/posts/ID.json` gives it: with raw, unless the reader may not see the text."""
    topic = forum.topics[post.topic_id]
    shape = _common(forum, post, reader) | {
        "posts_count": len(readable_posts(forum, reader, topic)),
        "reviewable_id": None,
        "reviewable_score_count": 0,
        "reviewable_score_pending_count": 0,
        "post_url": forum.topic_url(topic, post.number),
        "mentioned_users": [],
    }
    if sees_text(reader, post):
        shape["raw"] = post.raw
    return shape


def created_post(forum: Forum, post: Post, author: Member) -> Json:
    """What the author of a new post gets back."""
    return single_post(forum, post, author) | {"draft_sequence": 0}


def latest_post(forum: Forum, post: Post, reader: Reader) -> Json:
    """A post as `/posts.json` lists it."""
    topic = forum.topics[post.topic_id]
    shape = single_post(forum, post, reader) | {
        "topic_title": topic.title,
        "topic_html_title": topic.title,
        "category_id": topic.category_id,
        "badges_granted": [],
        "excerpt": post.raw[:200] if sees_text(reader, post) else "",
        "truncated": len(post.raw) > 200,
    }
    shape.pop("mentioned_users")
    return shape


def full_user(forum: Forum, member: Member) -> Json:
    """`/u/NAME.json` as an anonymous reader gets it: the keys that Discourse always gives."""
    written = [p for p in forum.posts.values() if p.user_id == member.id and not p.deleted_at]
    return {
        "user_badges": [],
        "user": basic_user(forum, member)
        | {
            "last_posted_at": stamp(max((p.created_at for p in written), default=None)),
            "last_seen_at": None,
            "created_at": stamp(min((p.created_at for p in written), default=datetime(2020, 1, 1, tzinfo=UTC))),
            "ignored": False,
            "muted": False,
            "can_ignore_user": False,
            "can_mute_user": False,
            "can_send_private_messages": False,
            "can_send_private_message_to_user": False,
            "trust_level": member.trust_level,
            "moderator": member.moderator,
            "admin": member.admin,
            "title": None,
            "badge_count": 0,
            "custom_fields": {},
            "time_read": 0,
            "recent_time_read": 0,
            "primary_group_id": None,
            "primary_group_name": None,
            "staged": member.staged,
            "can_edit": False,
            "pending_count": 0,
            "profile_view_count": 0,
            "post_count": len(written),
            "topic_count": len([t for t in forum.topics.values() if t.user_id == member.id and not t.deleted_at]),
        },
    }
