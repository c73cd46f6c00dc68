"""JSON of Discourse turned into the domain: unknown keys ignored, absent ones survived, doubt read as private."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from service.domain import Category, CategoryId, Post, PostId, Topic, TopicId, UserId
from service.errors import Rejected

MAX_COOKED_BYTES = 300_000
"""What is kept of a post's HTML (UTF-8 bytes): past it, parsing costs more than the text is worth."""

_MAX_LINE_CHARS = 1_000
_MAX_TAGS = 100
_BIGINT = 2**63 - 1
_INTEGER = 2**31 - 1
_SMALLINT = 2**15 - 1
_SURROGATE = re.compile("[\ud800-\udfff]")

Fields = Mapping[str, Any]


def fields_of(value: object, what: str) -> Fields:
    """The JSON object `value`; raises Rejected(400) when it is anything else."""
    if not isinstance(value, dict):
        raise Rejected(f"{what}: expected an object")
    return value


def id_of(fields: Fields, key: str, what: str, *, most: int = _BIGINT) -> int:
    """A required whole number from 1 to `most`; raises Rejected(400)."""
    value = _whole(fields, key, what, least=1, most=most)
    if value is None:
        raise Rejected(f"{what}.{key}: missing")
    return value


def post_from_json(value: object, *, topic: Topic | None = None) -> Post:
    """A post of a webhook, a REST answer or an archive; raises Rejected(400) naming the field that is malformed.

    Category, archetype and title come from `topic` when it is given (`/t/ID.json` posts have none), else from the
    post itself (webhooks); `/posts/ID.json` says neither, so such a post stays private until joined with its topic.
    """
    fields = fields_of(value, "post")
    topic_id = TopicId(id_of(fields, "topic_id", "post"))
    if topic is not None and topic.id != topic_id:
        raise Rejected(f"post.topic_id: not {topic.id}, the topic it came with")
    user_id = _whole(fields, "user_id", "post", least=-_BIGINT, most=_BIGINT)
    answered = fields_of(fields.get("reply_to_user") or {}, "post.reply_to_user")
    return Post(
        id=PostId(id_of(fields, "id", "post")),
        topic_id=topic_id,
        post_number=id_of(fields, "post_number", "post", most=_INTEGER),
        post_type=id_of(fields, "post_type", "post", most=_SMALLINT),
        user_id=None if user_id is None else UserId(user_id),
        username=_line(fields, "username", "post"),
        cooked=_cut(_required_text(fields, "cooked", "post")),
        created_at=_date(fields, "created_at", "post"),
        updated_at=_date(fields, "updated_at", "post"),
        reply_to_post_number=_reply_number(fields),
        reply_to_username=_line(answered, "username", "post.reply_to_user") or None,
        hidden=_unless_denied(fields, "hidden"),
        deleted=_unless_denied(fields, "deleted_at"),
        user_deleted=_unless_denied(fields, "user_deleted"),
        via_email=_unless_denied(fields, "via_email"),
        archetype=topic.archetype if topic else _line(fields, "topic_archetype", "post") or None,
        category_id=topic.category_id if topic else _category_id(fields, "category_id", "post"),
        topic_title=topic.title if topic else _line(fields, "topic_title", "post"),
        topic_slug=topic.slug if topic else _line(fields, "topic_slug", "post"),
    )


def topic_from_json(value: object) -> Topic:
    """A topic of `/t/ID.json`, of a webhook or of an archive; raises Rejected(400) naming the malformed field.

    A topic that doesn't say that it is visible is taken for unlisted, one without an archetype is never indexed.
    """
    fields = fields_of(value, "topic")
    return Topic(
        id=TopicId(id_of(fields, "id", "topic")),
        title=_cleaned(_required_text(fields, "title", "topic")[:_MAX_LINE_CHARS]),
        slug=_line(fields, "slug", "topic"),
        category_id=_category_id(fields, "category_id", "topic"),
        archetype=_line(fields, "archetype", "topic"),
        visible=fields.get("visible") is True,
        closed=_unless_denied(fields, "closed"),
        archived=_unless_denied(fields, "archived"),
        deleted=_unless_denied(fields, "deleted_at"),
        tags=_tags(fields.get("tags")),
    )


def posts_of_topic_json(value: object) -> list[Post]:
    """Every post of `post_stream.posts` with its topic's category and archetype; Rejected(400) at the first bad one."""
    posts, faults = readable_posts_of(value, topic_from_json(value))
    if faults:
        raise faults[0]
    return posts


def readable_posts_of(value: object, topic: Topic) -> tuple[list[Post], list[Rejected]]:
    """The posts of `post_stream.posts` that can be read, and the fault of each that can't: one bad post sinks none."""
    posts: list[Post] = []
    faults: list[Rejected] = []
    stream = fields_of(fields_of(value, "topic").get("post_stream"), "topic.post_stream")
    for entry in _list(stream, "posts", "topic.post_stream"):
        try:
            posts.append(post_from_json(entry, topic=topic))
        except Rejected as fault:
            faults.append(fault)
    return posts, faults


def stream_of(value: object) -> list[PostId]:
    """The ids of all posts of a topic, in its order (`post_stream.stream` of `/t/ID.json`)."""
    stream = fields_of(fields_of(value, "topic").get("post_stream"), "topic.post_stream")
    return [
        PostId(id_of({"id": entry}, "id", "topic.post_stream.stream"))
        for entry in _list(stream, "stream", "topic.post_stream")
    ]


def categories_from_json(value: object) -> list[Category]:
    """The categories of `/site.json` or `/categories.json`, nested lists included; raises Rejected(400).

    A category that doesn't say `read_restricted: false` is taken for private, and one that can't be read is left out,
    which is private too: else it would hide what became of all others. Rejected is raised where none can be read.
    """
    fields = fields_of(value, "site")
    if fields.get("category_list") is not None:
        fields = fields_of(fields["category_list"], "site.category_list")
    found: dict[CategoryId, Category] = {}
    faults: list[Rejected] = []
    waiting: list[tuple[object, CategoryId | None]] = [(entry, None) for entry in _list(fields, "categories", "site")]
    while waiting:
        entry, outer_id = waiting.pop()
        try:
            category, nested = _category(entry, outer_id)
        except Rejected as fault:
            faults.append(fault)
            continue
        found[category.id] = category
        waiting.extend((one, category.id) for one in nested)
    if faults and not found:
        raise faults[0]
    return sorted(found.values(), key=lambda category: category.id)


def _category(value: object, outer_id: CategoryId | None) -> tuple[Category, list[object]]:
    """A category, and those nested in it."""
    fields = fields_of(value, "category")
    parent_id = _category_id(fields, "parent_category_id", "category")
    category = Category(
        id=CategoryId(id_of(fields, "id", "category")),
        name=_line(fields, "name", "category"),
        slug=_line(fields, "slug", "category"),
        parent_id=outer_id if parent_id is None else parent_id,
        read_restricted=fields.get("read_restricted") is not False,
    )
    return category, _list(fields, "subcategory_list", "category")


def _list(fields: Fields, key: str, what: str) -> list[Any]:
    value = fields.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise Rejected(f"{what}.{key}: expected a list")
    return value


def _whole(fields: Fields, key: str, what: str, *, least: int, most: int) -> int | None:
    value = fields.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Rejected(f"{what}.{key}: expected a whole number from {least} to {most}")
    return value


def _category_id(fields: Fields, key: str, what: str) -> CategoryId | None:
    value = _whole(fields, key, what, least=1, most=_BIGINT)
    return None if value is None else CategoryId(value)


def _reply_number(fields: Fields) -> int | None:
    value = fields.get("reply_to_post_number")
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        value = int(value)  # the published contract says string, the code sends a number: take both
    return _whole({"reply_to_post_number": value or None}, "reply_to_post_number", "post", least=1, most=_INTEGER)


def _required_text(fields: Fields, key: str, what: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise Rejected(f"{what}.{key}: expected text")
    return value


def _line(fields: Fields, key: str, what: str) -> str:
    if fields.get(key) is None:
        return ""
    return _cleaned(_required_text(fields, key, what)[:_MAX_LINE_CHARS])


def _cleaned(text: str) -> str:
    # Postgres stores neither NUL nor a lone surrogate in a text column.
    return _SURROGATE.sub("\ufffd", text.replace("\0", ""))


def _cut(cooked: str) -> str:
    text = _cleaned(cooked)
    if len(text) * 4 <= MAX_COOKED_BYTES:
        return text
    return text.encode()[:MAX_COOKED_BYTES].decode(errors="ignore")


def _date(fields: Fields, key: str, what: str) -> datetime:
    text = _required_text(fields, key, what)
    try:
        date = datetime.fromisoformat(text)
        if date.tzinfo is None:
            raise Rejected(f"{what}.{key}: expected a time zone")
        return date.astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        raise Rejected(f"{what}.{key}: expected a date of ISO 8601") from exc


def _unless_denied(fields: Fields, key: str) -> bool:
    """Whether a state that takes a post away is set: anything but absent, null or false sets it."""
    value = fields.get(key)
    return value is not None and value is not False


def _tags(value: object) -> tuple[str, ...]:
    """Names of tags: plain strings in older versions, objects with a name in newer ones."""
    if not isinstance(value, list):
        return ()
    names = [entry.get("name") if isinstance(entry, dict) else entry for entry in value[:_MAX_TAGS]]
    return tuple(_cleaned(name[:_MAX_LINE_CHARS]) for name in names if isinstance(name, str) and name)
