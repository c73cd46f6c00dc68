"""Topics, categories and lists in Discourse's JSON: what `/t/ID.json`, `/latest.json`, `/site.json` and others give."""

from collections.abc import Sequence

from service.simulator.forum import Forum
from service.simulator.model import Post, Topic
from service.simulator.rights import Reader, is_listed, is_ordinary, is_staff, may_reply, readable_posts
from service.simulator.shapes import Json, basic_user, stamp, stream_post

CHUNK = 20
"""Posts in one answer of a topic."""
PER_PAGE = 30
"""Topics on one page of a list."""


def tag_objects(forum: Forum, topic: Topic) -> list[Json]:
    """Tags as newer versions give them; a tag's id is its place among all tags of the forum."""
    known = sorted({tag for t in forum.topics.values() for tag in t.tags})
    return [{"id": known.index(tag) + 1, "name": tag, "slug": tag} for tag in topic.tags]


def _facts(forum: Forum, topic: Topic, posts: Sequence[Post]) -> Json:
    ordinary = [p for p in posts if is_ordinary(p)]
    return {
        "id": topic.id,
        "title": topic.title,
        "fancy_title": topic.title,
        "slug": topic.slug,
        "posts_count": len(ordinary),
        "reply_count": max(0, len(ordinary) - 1),
        "highest_post_number": max((p.number for p in posts), default=0),
        "created_at": stamp(topic.created_at),
        "last_posted_at": stamp(max((p.created_at for p in ordinary), default=topic.created_at)),
        "archetype": topic.archetype,
        "visible": topic.visible,
        "closed": topic.closed,
        "archived": topic.archived,
        "pinned": topic.pinned,
        "unpinned": None,
        "pinned_globally": False,
        "image_url": None,
        "category_id": topic.category_id,
        "tags": tag_objects(forum, topic),
        "tags_descriptions": {},
        "views": 1,
        "like_count": 0,
        "featured_link": None,
    }


def topic_view(forum: Forum, topic: Topic, reader: Reader, *, near: int = 1, whole: bool = False) -> Json:
    """`/t/ID.json`: the chunk of posts around post number `near` (all with `whole`) and every id in the stream."""
    posts = readable_posts(forum, reader, topic)
    first = next((i for i, p in enumerate(posts) if p.number >= near), 0) // CHUNK * CHUNK
    shown = posts if whole else posts[first : first + CHUNK]
    author = forum.members[topic.user_id]
    last = forum.members[posts[-1].user_id] if posts else author
    staff = is_staff(reader)
    facts = _facts(forum, topic, posts)
    return facts | {
        "post_stream": {"posts": [stream_post(forum, p, reader) for p in shown], "stream": [p.id for p in posts]},
        "timeline_lookup": [],
        "suggested_topics": [],
        "has_summary": False,
        "word_count": sum(len(p.raw.split()) for p in posts),
        "deleted_at": stamp(topic.deleted_at),
        "user_id": topic.user_id,
        "pinned_at": stamp(topic.created_at) if topic.pinned else None,
        "pinned_until": None,
        "slow_mode_seconds": 0,
        "draft": None,
        "draft_key": f"topic_{topic.id}",
        "draft_sequence": 0,
        "current_post_number": near,
        "deleted_by": None,
        "has_deleted": False,
        "actions_summary": [],
        "chunk_size": CHUNK,
        "bookmarked": False,
        "bookmarks": [],
        "topic_timer": None,
        "message_bus_last_id": 0,
        "participant_count": len({p.user_id for p in posts}),
        "show_read_indicator": False,
        "thumbnails": None,
        "slow_mode_enabled_until": None,
        "details": {
            "can_edit": staff,
            "notification_level": 1,
            "can_move_posts": staff,
            "can_delete": staff,
            "can_remove_allowed_users": staff,
            "can_create_post": reader is not None and may_reply(forum, reader, topic),
            "can_reply_as_new_topic": reader is not None,
            "can_convert_topic": staff,
            "can_review_topic": staff,
            "can_close_topic": staff,
            "can_archive_topic": staff,
            "can_split_merge_topic": staff,
            "can_edit_staff_notes": staff,
            "can_toggle_topic_visibility": staff,
            "can_pin_unpin_topic": staff,
            "can_moderate_category": staff,
            "can_remove_self_id": reader.id if reader else 0,
            "created_by": basic_user(forum, author),
            "last_poster": basic_user(forum, last),
        },
    }


def listed_topics(forum: Forum, reader: Reader, *, order: str, category_id: int | None = None) -> list[Topic]:
    """Listed topics, newest first: by creation, or pinned ones first and then by activity."""
    topics = [
        t
        for t in forum.topics.values()
        if is_listed(forum, reader, t) and (category_id is None or t.category_id == category_id)
    ]
    if order == "created":
        return sorted(topics, key=lambda t: (t.created_at, t.id), reverse=True)
    bumped = {t.id: readable_posts(forum, reader, t)[-1:] for t in topics}
    return sorted(
        topics,
        key=lambda t: (t.pinned, bumped[t.id][0].created_at if bumped[t.id] else t.created_at, t.id),
        reverse=True,
    )


def topic_list(forum: Forum, reader: Reader, *, page: int, order: str) -> Json:
    """`/latest.json`."""
    topics = listed_topics(forum, reader, order=order)
    shown = topics[page * PER_PAGE : (page + 1) * PER_PAGE]
    rows, users = [], {}
    for topic in shown:
        posts = readable_posts(forum, reader, topic)
        people = list(dict.fromkeys([topic.user_id, *(p.user_id for p in posts)]))[:5]
        users.update({i: forum.members[i] for i in people})
        last = forum.members[posts[-1].user_id] if posts else forum.members[topic.user_id]
        facts = _facts(forum, topic, posts)
        rows.append(
            facts
            | {
                "bumped": True,
                "bumped_at": facts["last_posted_at"],
                "unseen": False,
                "bookmarked": False,
                "liked": False,
                "has_summary": False,
                "last_poster_username": last.username,
                "op_like_count": 0,
                "posters": [{"extras": "", "description": "", "user_id": i, "primary_group_id": None} for i in people],
            }
        )
    more = (page + 1) * PER_PAGE < len(topics)
    return {
        "users": [basic_user(forum, m) for m in users.values()],
        "primary_groups": [],
        "topic_list": {
            "can_create_topic": reader is not None,
            "draft": None,
            "draft_key": "new_topic",
            "draft_sequence": 0,
            "per_page": PER_PAGE,
            "topics": rows,
        }
        | ({"more_topics_url": f"/latest?no_definitions=true&page={page + 1}"} if more else {}),
    }


def topic_payload(forum: Forum, topic: Topic) -> Json:
    """A webhook's `topic`: what staff see, without posts."""
    posts = [p for p in forum.stream(topic.id) if not p.deleted_at]
    author = forum.members[topic.user_id]
    last = forum.members[posts[-1].user_id] if posts else author
    shape = _facts(forum, topic, posts) | {
        "word_count": sum(len(p.raw.split()) for p in posts),
        "deleted_at": stamp(topic.deleted_at),
        "user_id": topic.user_id,
        "pinned_at": None,
        "pinned_until": None,
        "deleted_by": None,
        "has_deleted": any(p.deleted_at for p in forum.stream(topic.id)),
        "bookmarked": False,
        "participant_count": len({p.user_id for p in posts}),
        "queued_posts_count": 0,
        "thumbnails": None,
        "created_by": basic_user(forum, author),
        "last_poster": basic_user(forum, last),
        "pending_posts": [],
    }
    shape.pop("image_url")
    return shape
