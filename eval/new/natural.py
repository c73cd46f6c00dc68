"""Natural labels: what members did shows which post answers. They linked an older topic, or accepted a reply."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from eval.datasets.archive import ReadTopic
from eval.datasets.labels import Found, Pointed
from service.discourse.cooked import plain_text
from service.discourse.depth import is_too_deep
from service.domain import Post, TopicId

TEXT_CHARS = 1_200
"""What is kept of a first post: more than is ever asked."""

IsPublic = Callable[[TopicId, int], bool]
"""Whether the index may show this post of this topic."""

LanguageOf = Callable[[str], str]

_AFTER_ADDRESS = ".,;:!?)]}'\u00bb"
_ADDRESS = re.compile(r"https?://[^\s<>\"']{1,1000}")


@dataclass(frozen=True, slots=True)
class Site:
    """Where the forum is, so that its own links are known: host and path without a slash at its end."""

    host: str
    path: str = ""


def site_of(base_url: str) -> Site:
    """The place that this address names."""
    parts = urlsplit(base_url)
    return Site(parts.netloc.casefold(), parts.path.rstrip("/"))


def accepted_labels(topics: Iterable[ReadTopic], is_public: IsPublic, language_of: LanguageOf) -> Iterator[Found]:
    """A topic's first post, and the replies that were accepted as its answer."""
    for read in topics:
        answers = [
            Pointed(topic_id=read.topic.id, post_number=number)
            for number in read.accepted
            if number > 1 and is_public(read.topic.id, number)
        ]
        if answers and (first := _first(read, is_public)):
            yield _found(read, first, answers, language_of)


def link_labels(
    topics: Iterable[ReadTopic], is_public: IsPublic, language_of: LanguageOf, site: Site
) -> Iterator[Found]:
    """A topic's first post, and the older topics that others than its author pointed at in their replies."""
    begun: dict[TopicId, datetime] = {}
    asked: list[tuple[Found, datetime, list[tuple[TopicId, int | None]]]] = []
    for read in topics:
        first = _first(read, is_public)
        if first is None:
            continue
        begun[read.topic.id] = first.created_at
        replies = [
            post
            for post in read.posts
            if post.user_id != first.user_id and post.post_number > 1 and is_public(read.topic.id, post.post_number)
        ]
        pointed = dict.fromkeys(target for post in replies for target in linked_posts(post.cooked, site))
        if pointed:
            asked.append((_found(read, first, [], language_of), first.created_at, list(pointed)))
    for found, at, targets in asked:
        older = [
            Pointed(topic_id=topic_id, post_number=number)
            for topic_id, number in targets
            if topic_id in begun and begun[topic_id] < at and (number is None or is_public(topic_id, number))
        ]
        if older:
            yield found.model_copy(update={"golden": older})


def linked_posts(cooked: str, site: Site) -> list[tuple[TopicId, int | None]]:
    """The topics of this forum that a post links to or quotes from, in its order, with the post number where given.

    What stands inside a quote is somebody else's; that a quote is of another topic is not.
    """
    if not ("/t/" in cooked or "data-topic" in cooked) or is_too_deep(cooked):
        return []
    body = LexborHTMLParser(cooked).body
    found: dict[tuple[TopicId, int | None], None] = {}
    waiting = [body] if body else []
    while waiting:
        node = waiting.pop()
        if node.is_text_node:
            found.update(dict.fromkeys(_written(node.text_content or "", site)))
            continue
        quoted = node.tag == "aside" and "quote" in (node.attributes.get("class") or "").split()
        target = _quoted(node, site) if quoted else _linked(node, site)
        if target:
            found[target] = None
        if not quoted:
            waiting.extend(reversed(list(node.iter(include_text=True))))
    return list(found)


def _quoted(node: LexborNode, site: Site) -> tuple[TopicId, int | None] | None:
    topic, number = (node.attributes.get(name) or "" for name in ("data-topic", "data-post"))
    if not _is_id(topic):
        return None
    titles = (_linked(link, site) for link in node.css(".title a"))
    # The preview of a linked topic is a quote of its post 1, whose title links to the topic as a whole.
    whole = number == "1" and (TopicId(int(topic)), None) in titles
    return _target(topic, "" if whole else number)


def _linked(node: LexborNode, site: Site) -> tuple[TopicId, int | None] | None:
    href = node.attributes.get("href") if node.tag == "a" else None
    return _place(href, site) if href else None


def _place(address: str, site: Site) -> tuple[TopicId, int | None] | None:
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    if parts.netloc.casefold() not in ("", site.host) or not parts.path.startswith(f"{site.path}/t/"):
        return None
    named = parts.path.removeprefix(f"{site.path}/t/").split("/", 3)
    if not _is_id(named[0]):
        del named[0]  # the slug
    return _target(named[0], named[1] if len(named) > 1 else "") if named and _is_id(named[0]) else None


def _written(text: str, site: Site) -> Iterator[tuple[TopicId, int | None]]:
    """What was written as an address: all that is left of a link where only clean text was kept."""
    for address in _ADDRESS.findall(text):
        target = _place(address.rstrip(_AFTER_ADDRESS), site)
        if target:
            yield target


def _target(topic: str, number: str) -> tuple[TopicId, int | None] | None:
    named = int(number) if _is_id(number) else 0
    return (TopicId(int(topic)), named or None) if int(topic) else None


def _is_id(text: str) -> bool:
    return len(text) < 10 and text.isascii() and text.isdecimal()


def _first(read: ReadTopic, is_public: IsPublic) -> Post | None:
    first = read.posts[0] if read.posts else None
    return first if first and first.post_number == 1 and is_public(read.topic.id, 1) else None


def _found(read: ReadTopic, first: Post, golden: Sequence[Pointed], language_of: LanguageOf) -> Found:
    title, text = read.topic.title, " ".join(plain_text(first.cooked).split())[:TEXT_CHARS]
    return Found.model_construct(
        topic_id=read.topic.id, title=title, text=text, lang=language_of(f"{title}\n{text}"), golden=list(golden)
    )
