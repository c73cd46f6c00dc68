"""What the pages show, ready for the templates: no template decides what a reader may see."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from service.simulator.forum import Forum
from service.simulator.model import Category, Member, Post, Topic
from service.simulator.rights import Reader, is_staff, readable_posts, sees_text
from service.simulator.shapes import HIDDEN_NOTICE, avatar, stamp
from service.simulator.sites import category_colour


@dataclass(frozen=True, slots=True)
class When:
    iso: str
    full: str
    short: str


@dataclass(frozen=True, slots=True)
class Face:
    """A member as a coloured letter."""

    username: str
    name: str
    url: str
    image: str
    bot: bool


@dataclass(frozen=True, slots=True)
class Badge:
    """A category's name with its colour's number."""

    name: str
    url: str
    image: str
    restricted: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A topic in a list."""

    title: str
    url: str
    lang: str
    badge: Badge | None
    tags: tuple[str, ...]
    faces: tuple[Face, ...]
    replies: int
    active: When
    pinned: bool
    closed: bool
    solved: bool


@dataclass(frozen=True, slots=True)
class PostView:
    id: int
    number: int
    face: Face
    role: str
    at: When
    edited: bool
    html: Markup
    url: str
    version: str
    reply_to: str
    reply_url: str
    accepted: bool
    small: str
    notes: tuple[str, ...]
    mine: bool
    wanted: bool
    hidden: bool
    staff: bool


def when(at: datetime, now: datetime) -> When:
    minutes = int((now - at).total_seconds() // 60)
    if minutes < 1:
        short = "just now"
    elif minutes < 60:
        short = f"{minutes} min ago"
    elif minutes < 1440:
        short = f"{minutes // 60} h ago"
    else:
        short = f"{at.day} {at:%b %Y}"
    return When(stamp(at) or "", f"{at.day} {at:%B %Y, %H:%M} UTC", short)


def face(forum: Forum, member: Member, bot_username: str) -> Face:
    image = avatar(forum, member).replace("{size}", "48")
    url = f"{forum.base_path}/u/{member.username}"
    return Face(member.username, member.name or "", url, image, member.bot or member.username == bot_username)


def badge(forum: Forum, category: Category) -> Badge:
    url = f"{forum.base_path}/c/{category.slug}/{category.id}"
    image = f"{forum.base_path}/simulator-colour/{category_colour(category)}.svg"
    return Badge(category.name, url, image, category.read_restricted)


def row(forum: Forum, topic: Topic, reader: Reader, now: datetime, bot_username: str) -> Row:
    posts = readable_posts(forum, reader, topic)
    people = list(dict.fromkeys([topic.user_id, *(p.user_id for p in reversed(posts))]))[:4]
    category = forum.categories.get(topic.category_id or 0)
    return Row(
        title=topic.title,
        url=forum.topic_url(topic),
        lang=topic.lang,
        badge=badge(forum, category) if category else None,
        tags=topic.tags,
        faces=tuple(face(forum, forum.members[i], bot_username) for i in people),
        replies=max(0, len(posts) - 1),
        active=when(posts[-1].created_at if posts else topic.created_at, now),
        pinned=topic.pinned,
        closed=topic.closed,
        solved=any(p.accepted for p in posts),
    )


def _role(member: Member, bot: bool) -> str:
    if bot:
        return "bot"
    return "admin" if member.admin else "moderator" if member.moderator else ""


def _notes(post: Post) -> Iterable[str]:
    if post.hidden:
        yield "hidden by flags"
    if post.deleted_at:
        yield "deleted"
    if post.post_type == 4:
        yield "whisper: staff only"
    if post.post_type == 2:
        yield "moderator action"


def post_view(
    forum: Forum, post: Post, reader: Reader, now: datetime, bot_username: str, *, wanted: int | None
) -> PostView:
    author, topic = forum.members[post.user_id], forum.topics[post.topic_id]
    who = face(forum, author, bot_username)
    answered = forum.at(post.topic_id, post.reply_to) if post.reply_to else None
    return PostView(
        id=post.id,
        number=post.number,
        face=who,
        role=_role(author, who.bot),
        at=when(post.created_at, now),
        edited=post.version > 1,
        # cooked HTML is our own, already on the allow-list (service.simulator.allow)
        html=Markup(post.cooked if sees_text(reader, post) else HIDDEN_NOTICE),  # noqa: S704
        url=forum.topic_url(topic, post.number),
        version=f"{post.version}-{stamp(post.updated_at)}",
        reply_to=forum.members[answered.user_id].username if answered else "",
        reply_url=forum.topic_url(topic, answered.number) if answered else "",
        accepted=post.accepted,
        small=(post.action_code or "").replace(".", " ").replace("_", " ") if post.post_type == 3 else "",
        notes=tuple(_notes(post)),
        mine=reader is not None and (reader.id == post.user_id or is_staff(reader)),
        wanted=post.number == wanted,
        hidden=post.hidden,
        staff=is_staff(reader),
    )
