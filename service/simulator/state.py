"""Where a forum comes from and where it is kept: the demo's YAML the first time, then one JSON file."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from service.simulator.forum import Forum
from service.simulator.model import (
    REGULAR,
    Category,
    Change,
    Member,
    Notification,
    NotificationType,
    Post,
    Topic,
    moment,
    slugify,
)
from service.simulator.shapes import stamp

DEMO = Path(__file__).parent / "demo" / "forum.yml"
VERSION = 1
BOT_ID = 1000
RELATIVE_LINK = re.compile(r"(?<![^\s(])/t/(?=[a-z0-9-]+/\d)")
"""A topic's path in the demo's text, which stands for the address of wherever the forum runs."""


def load_yaml(path: Path, *, base_url: str, bot: Member) -> Forum:
    """Read a forum from YAML (`title`, `members`, `categories`, `topics` with their posts) and add the bot's account.

    Post ids follow the posts' times over the whole forum. Raises ValueError or KeyError that names the fault.
    """
    source = yaml.safe_load(path.read_text(encoding="utf-8"))
    forum = Forum(title=source["title"], base_url=base_url)
    forum.add(*(Member(**m) for m in source["members"]), bot)
    forum.add(*(Category(**c) for c in source["categories"]))
    categories = {c.slug: c.id for c in forum.categories.values()}
    posts = []
    for given in source["topics"]:
        topic = _topic(given, categories, forum)
        forum.add(topic)
        posts += [_post(p, n, topic, forum) for n, p in enumerate(given["posts"], 1)]
    posts.sort(key=lambda p: (p.created_at, p.topic_id, p.number))
    forum.add(*(replace(p, id=forum.new_id("post")) for p in posts))
    forum.recook()
    return forum


def _author(forum: Forum, username: str) -> int:
    member = forum.member(username)
    if member is None:
        raise ValueError(f"no member {username}")
    return member.id


def _topic(given: Mapping[str, Any], categories: Mapping[str, int], forum: Forum) -> Topic:
    first, last = given["posts"][0], given["posts"][-1]
    return Topic(
        id=given["id"],
        title=given["title"],
        slug=slugify(given["title"]),
        category_id=categories[given["category"]],
        user_id=_author(forum, first["by"]),
        created_at=moment(first["at"]),
        updated_at=moment(last["at"]),
        tags=tuple(given.get("tags", ())),
        lang=given.get("lang", "en"),
        visible=given.get("visible", True),
        closed=given.get("closed", False),
        archived=given.get("archived", False),
        pinned=given.get("pinned", False),
        next_number=len(given["posts"]) + 1,
    )


def _post(given: Mapping[str, Any], number: int, topic: Topic, forum: Forum) -> Post:
    at = moment(given["at"])
    return Post(
        id=0,
        topic_id=topic.id,
        number=number,
        user_id=_author(forum, given["by"]),
        raw=RELATIVE_LINK.sub(f"{forum.base_url}/t/", given["raw"].rstrip()),
        cooked="",
        created_at=at,
        updated_at=at,
        reply_to=given.get("reply_to"),
        post_type=given.get("post_type", REGULAR),
        action_code=given.get("action"),
        accepted=given.get("accepted", False),
        hidden=given.get("hidden", False),
        deleted_at=at if given.get("deleted") else None,
    )


def dump(forum: Forum) -> str:
    """The whole state as JSON."""

    def plain(value: object) -> str:
        if isinstance(value, datetime):
            return stamp(value) or ""
        raise TypeError(type(value).__name__)

    tables = {
        name: [asdict(row) for row in table.values()]
        for name, table in (
            ("members", forum.members),
            ("categories", forum.categories),
            ("topics", forum.topics),
            ("posts", forum.posts),
            ("notifications", forum.notifications),
        )
    }
    head = {"version": VERSION, "title": forum.title, "base_url": forum.base_url, "last_ids": forum.last_ids}
    return json.dumps(head | tables, ensure_ascii=False, default=plain)


def restore(text: str, *, base_url: str) -> Forum:
    """The forum that `dump` wrote; where it now has another address, its own links follow."""
    state = json.loads(text)
    version = state.get("version") if isinstance(state, dict) else None
    if version != VERSION:
        raise ValueError(f"a state of version {version}, expected {VERSION}")
    forum = Forum(title=state["title"], base_url=base_url)
    moved = state["base_url"] != forum.base_url

    def times(row: dict[str, Any]) -> dict[str, Any]:
        return {k: moment(v) if k.endswith("_at") and v else v for k, v in row.items()}

    forum.add(*(Member(**row) for row in state["members"]), *(Category(**row) for row in state["categories"]))
    forum.add(*(Topic(**times(row) | {"tags": tuple(row["tags"])}) for row in state["topics"]))
    for row in state["posts"]:
        if moved:
            row["raw"] = row["raw"].replace(state["base_url"] + "/", forum.base_url + "/")
        forum.add(Post(**times(row)))
    forum.add(*(Notification(**times(r) | {"kind": NotificationType(r["kind"])}) for r in state["notifications"]))
    forum.last_ids |= state["last_ids"]
    if moved:
        forum.recook()
    return forum


def open_forum(path: Path | None, *, base_url: str, bot: Member, demo: Path = DEMO) -> Forum:
    """The forum of this state file, or the demo's where there is none yet; every change is written back.

    Raises ValueError for a file that isn't such a state.
    """
    if path is not None and path.exists():
        forum = restore(path.read_text(encoding="utf-8"), base_url=base_url)
    else:
        forum = load_yaml(demo, base_url=base_url, bot=bot)
    if path is not None:
        target = path

        def keep(_: Sequence[Change]) -> None:
            save(forum, target)

        keep(())
        forum.listeners.append(keep)
    return forum


def save(forum: Forum, path: Path) -> None:
    """Write the state so that a crash leaves either the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    with new.open("w", encoding="utf-8") as file:
        file.write(dump(forum))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
