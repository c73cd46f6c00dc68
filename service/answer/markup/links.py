"""The links that the server makes to its sources: the only ones in a posted answer."""

import re
from collections import Counter
from typing import Protocol
from urllib.parse import quote, unquote

from service.answer.markup.invisible import strip_invisible
from service.answer.markup.scrub import scrub
from service.answer.markup.tree import CodeSpan
from service.answer.markup.write import escaped

_SLUG = re.compile(r"(?:[a-z0-9-]|%[0-9A-Fa-f]{2}){1,600}")
_LONGEST_TITLE = 60


class Linkable(Protocol):
    """What a link to a post of the forum needs; title and slug are members' text."""

    @property
    def topic_id(self) -> int: ...
    @property
    def post_number(self) -> int: ...
    @property
    def slug(self) -> str: ...
    @property
    def title(self) -> str: ...


def post_url(source: Linkable, base_url: str) -> str:
    """`<base>/t/<slug>/<topic>/<post>`, the slug `-` where it isn't made of a-z, 0-9, - and percent-escaped letters."""
    return f"{base_url.rstrip('/')}/t/{_safe_slug(source.slug)}/{source.topic_id}/{source.post_number}"


def links(n: int, source: Linkable, base_url: str) -> tuple[str, str]:
    """The Markdown links that cite source `n`: with its title, cut to 60 characters, and by its number alone."""
    title, url = _label(source.title), post_url(source, base_url)
    return (f"[{n} · {title}]({url})" if title else f"[{n}]({url})"), f"[{n}]({url})"


def _safe_slug(slug: str) -> str:
    if _SLUG.fullmatch(slug):
        letters = unquote(slug, errors="replace")
        return slug if _is_wordy(letters) else "-"
    return quote(slug, safe="") if 0 < len(slug) <= 200 and _is_wordy(slug) else "-"


def _is_wordy(text: str) -> bool:
    return all(char.isalnum() or char in "-_" for char in text) and text == strip_invisible(text)[0]


def _label(title: str) -> str:
    """A title as the text of a link: one line, shortened at a word, nothing in it live."""
    line = " ".join(strip_invisible(title[:1000])[0].split())
    words = " ".join("".join(node.text for node in scrub(line, frozenset(), Counter())).split())
    if len(words) > _LONGEST_TITLE:
        words = words[:_LONGEST_TITLE].rsplit(" ", 1)[0].rstrip(" ,;:-–—") + "…"
    return "".join(
        f"`{node.text}`" if isinstance(node, CodeSpan) else "\\]".join(map(escaped, node.text.split("]")))
        for node in scrub(words, frozenset(), Counter())
    ).strip()
