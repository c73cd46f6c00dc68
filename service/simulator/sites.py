"""Categories, the site, notifications and search in Discourse's JSON."""

import re

from service.simulator.forum import Forum
from service.simulator.listings import tag_objects
from service.simulator.model import REGULAR, Category, Notification, Post
from service.simulator.rights import Reader, is_listed, sees_category, sees_post, sees_text
from service.simulator.shapes import Json, avatar, stamp

PALETTE = ("0088CC", "25AAE2", "808281", "E45735", "9EB83B", "B3B5B4", "3AB54A", "F1592A", "652D90", "BF1E2E")
SEARCH_LIMIT = 50


def category_colour(category: Category) -> str:
    return PALETTE[category.id % len(PALETTE)]


def category_payload(forum: Forum, category: Category) -> Json:
    """A category of `/site.json`, and a webhook's `category`."""
    topics = [t for t in forum.topics.values() if t.category_id == category.id and t.visible and not t.deleted_at]
    ids = {t.id for t in topics}
    return {
        "id": category.id,
        "name": category.name,
        "color": category_colour(category),
        "text_color": "FFFFFF",
        "style_type": "square",
        "emoji": None,
        "icon": None,
        "slug": category.slug,
        "topic_count": len(topics),
        "post_count": len([p for p in forum.posts.values() if p.topic_id in ids and not p.deleted_at]),
        "position": category.id,
        "description": None,
        "description_text": None,
        "description_excerpt": None,
        "topic_url": f"{forum.base_path}/t/about-{category.slug}/0",
        "read_restricted": category.read_restricted,
        "permission": 1,
        "notification_level": 1,
        "topic_template": None,
        "topic_title_placeholder": None,
        "has_children": any(c.parent_id == category.id for c in forum.categories.values()),
        "subcategory_count": None,
        "sort_order": None,
        "sort_ascending": None,
        "show_subcategory_list": False,
        "num_featured_topics": 3,
        "default_view": None,
        "subcategory_list_style": "rows_with_featured_topics",
        "default_top_period": "all",
        "default_list_filter": "all",
        "minimum_required_tags": 0,
        "navigate_to_first_post_after_read": False,
        "uploaded_logo": None,
        "uploaded_logo_dark": None,
        "uploaded_background": None,
        "uploaded_background_dark": None,
        "can_edit": False,
    } | ({"parent_category_id": category.parent_id} if category.parent_id else {})


def seen_categories(forum: Forum, reader: Reader) -> list[Category]:
    return [c for c in forum.categories.values() if sees_category(reader, c)]


def site(forum: Forum, reader: Reader) -> Json:
    """`/site.json`: every category the reader sees, sub-categories too, and what a client needs of the rest."""
    extra = {"allow_global_tags": True, "required_tag_groups": [], "read_only_banner": None, "custom_fields": None}
    return {
        "default_archetype": "regular",
        "notification_types": {"mentioned": 1, "replied": 2, "quoted": 3},
        "post_types": {"regular": 1, "moderator_action": 2, "small_action": 3, "whisper": 4},
        "trust_levels": {"newuser": 0, "basic": 1, "member": 2, "regular": 3, "leader": 4},
        "groups": [],
        "filters": ["latest", "top", "categories"],
        "periods": ["all", "yearly", "quarterly", "monthly", "weekly", "daily"],
        "top_menu_items": ["latest", "top", "categories"],
        "anonymous_top_menu_items": ["latest", "top", "categories"],
        "uncategorized_category_id": 0,
        "can_create_tag": False,
        "can_tag_topics": False,
        "can_tag_pms": False,
        "top_tags": [],
        "categories": [category_payload(forum, c) | extra for c in seen_categories(forum, reader)],
        "archetypes": [
            {"id": "regular", "name": "Regular Topic", "options": []},
            {"id": "banner", "name": "Banner Topic", "options": []},
        ],
        "user_fields": [],
        "auth_providers": [],
    }


def category_list(forum: Forum, reader: Reader) -> Json:
    """`/categories.json`: top-level categories, sub-categories by id only."""
    counts = {"topics_day": 0, "topics_week": 0, "topics_month": 0, "topics_year": 0}
    rows = []
    for category in seen_categories(forum, reader):
        if category.parent_id is None:
            shape = category_payload(forum, category)
            children = [c.id for c in forum.categories.values() if c.parent_id == category.id]
            rows.append(shape | counts | {"topics_all_time": shape["topic_count"], "subcategory_ids": children})
    return {"category_list": {"can_create_category": False, "can_create_topic": reader is not None, "categories": rows}}


def notification(forum: Forum, note: Notification) -> Json:
    """One row of `/notifications.json`, and a webhook's `notification`."""
    post = forum.posts[note.post_id]
    topic = forum.topics[post.topic_id]
    author = forum.members[post.user_id]
    return {
        "fancy_title": topic.title,
        "id": note.id,
        "user_id": note.user_id,
        "notification_type": int(note.kind),
        "read": note.read,
        "high_priority": False,
        "created_at": stamp(note.created_at),
        "post_number": post.number,
        "topic_id": topic.id,
        "slug": topic.slug,
        "data": {
            "topic_title": topic.title,
            "original_post_id": post.id,
            "original_post_type": post.post_type,
            "original_username": author.username,
            "revision_number": None,
            "display_username": author.username,
        },
    }


def found_posts(forum: Forum, reader: Reader, query: str) -> list[Post]:
    """Posts whose title or text has every word of the query, newest first."""
    words = re.findall(r"\w+", query.casefold())
    if not words:
        return []
    found = []
    for post in sorted(forum.posts.values(), key=lambda p: p.id, reverse=True):
        topic = forum.topics[post.topic_id]
        text = f"{topic.title} {post.raw}".casefold()
        ordinary = post.post_type == REGULAR and not post.deleted_at and sees_text(reader, post)
        listed = ordinary and is_listed(forum, reader, topic) and sees_post(forum, reader, post)
        if listed and all(w in text for w in words):
            found.append(post)
    return found[:SEARCH_LIMIT]


def search(forum: Forum, reader: Reader, query: str) -> Json:
    """`/search.json`."""
    posts = found_posts(forum, reader, query)
    topics = {p.topic_id: forum.topics[p.topic_id] for p in posts}
    rows = [
        {
            "id": p.id,
            "name": forum.members[p.user_id].name,
            "username": forum.members[p.user_id].username,
            "avatar_template": avatar(forum, forum.members[p.user_id]),
            "created_at": stamp(p.created_at),
            "like_count": 0,
            "blurb": p.raw[:200],
            "post_number": p.number,
            "topic_id": p.topic_id,
        }
        for p in posts
    ]
    return {
        "posts": rows,
        "topics": [
            {
                "id": t.id,
                "title": t.title,
                "slug": t.slug,
                "category_id": t.category_id,
                "closed": t.closed,
                "archived": t.archived,
                "tags": tag_objects(forum, t),
            }
            for t in topics.values()
        ],
        "users": [],
        "categories": [],
        "tags": [],
        "groups": [],
        "grouped_search_result": {
            "more_posts": None,
            "more_users": None,
            "more_categories": None,
            "term": query,
            "search_log_id": 0,
            "more_full_page_results": None,
            "can_create_topic": reader is not None,
            "error": None,
            "post_ids": [p.id for p in posts],
            "user_ids": [],
            "category_ids": [],
            "tag_ids": [],
            "group_ids": [],
        },
    }
