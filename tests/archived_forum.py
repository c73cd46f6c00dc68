"""The simulator's forum made from an archive of topics: the same posts, ids, dates and HTML."""

import json
from collections.abc import Iterable
from typing import Any

from service.simulator.forum import Forum
from service.simulator.model import Category, Member, Post, Topic, moment


def archived_forum(lines: Iterable[bytes], *, base_url: str) -> Forum:
    """A forum of these topic JSON lines, whose categories are named as `ariane backfill --archive --public` does."""
    forum = Forum(title="Archived", base_url=base_url)
    for line in lines:
        given = json.loads(line)
        posts = given["post_stream"]["posts"]
        category_id = given["category_id"]
        for post in posts:
            if post["user_id"] not in forum.members:
                forum.add(Member(post["user_id"], post["username"], post["name"]))
        forum.add(Category(category_id, f"category {category_id}", str(category_id)), _topic(given), *map(_post, posts))
    return forum


def _topic(given: dict[str, Any]) -> Topic:
    created = moment(given["created_at"])
    return Topic(
        id=given["id"],
        title=given["title"],
        slug=given["slug"],
        category_id=given["category_id"],
        user_id=given["post_stream"]["posts"][0]["user_id"],
        created_at=created,
        updated_at=created,
        archetype=given["archetype"],
        visible=given["visible"],
        closed=given["closed"],
        archived=given["archived"],
    )


def _post(given: dict[str, Any]) -> Post:
    return Post(
        id=given["id"],
        topic_id=given["topic_id"],
        number=given["post_number"],
        user_id=given["user_id"],
        raw="",
        cooked=given["cooked"],
        created_at=moment(given["created_at"]),
        updated_at=moment(given["updated_at"]),
        reply_to=given["reply_to_post_number"],
        post_type=given["post_type"],
        hidden=given["hidden"],
        user_deleted=given["user_deleted"],
    )
