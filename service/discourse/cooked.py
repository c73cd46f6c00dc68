"""A post's cooked HTML: who is mentioned in it and what it says as plain text (docs/discourse, section 6)."""

import html
import re
from enum import StrEnum
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser, LexborNode

from service.discourse.depth import is_too_deep
from service.discourse.names import folded_name
from service.discourse.page import Gap, Page

MAX_COOKED_CHARS = 300_000
"""What is read of a post; the rest is not looked at."""


class Mentioned(StrEnum):
    """Where a post names the bot; only PLAIN is a mention for Discourse itself."""

    NONE = "none"
    PLAIN = "plain"
    IN_QUOTE = "in_quote"
    IN_CODE = "in_code"
    IN_ONEBOX = "in_onebox"
    IN_ELIDED = "in_elided"


_TAG = re.compile("<[^<>]*>?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PROFILE = re.compile(r"/u(?:sers)?/([^/?#]+)/?(?:[?#].*)?\Z", re.DOTALL)

_DROPPED = frozenset(
    {"head", "iframe", "noscript", "object", "script", "style", "svg", "template", "textarea", "title"}
)
_LINES = frozenset({"br", "dd", "dt", "figcaption", "li", "summary", "tr"})
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "center", "details", "div", "dl", "fieldset", "figure", "footer"}
    | {"form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "nav", "ol", "p", "pre", "section"}
    | {"table", "ul"}
)
_CELLS = frozenset({"td", "th"})

# Stands for a mention that was taken out, until the words around it are closed up; Page lets no NUL of a post in.
_GONE = "\0"
_OPENS_LINE = re.compile(rf"^(?:{_GONE} ?[,:;]? ?)+", re.MULTILINE)
_BEFORE_STOP = re.compile(rf" ?{_GONE}(?= ?[,.;:!?…)]|$)", re.MULTILINE)


def find_mentions(cooked: str, username: str) -> Mentioned:
    """Where `cooked` mentions `username`: PLAIN if it does so anywhere in the member's own words.

    Resolved mentions count (`a.mention` whose text or link names the account), and so does `@name` written in code,
    where Discourse makes no link. Names are compared NFC-normalised and case-folded.
    """
    name = folded_name(username)
    if not _may_name(cooked, name):
        return Mentioned.NONE
    root = _parsed(cooked)
    written = re.compile(rf"(?<![\w@/.-])@{re.escape(name)}(?!\w|[.-]\w)")
    places: set[Mentioned] = set()
    waiting = [(root, Mentioned.PLAIN)] if root else []
    while waiting:
        node, place = waiting.pop()
        if node.is_text_node:
            if place is Mentioned.IN_CODE and written.search(folded_name(node.text_content or "")):
                places.add(place)
            continue
        if place is Mentioned.PLAIN:
            place = _place(node)
        if _is_mention_of(node, name):
            places.add(place)
        waiting.extend((child, place) for child in _children(node))
    return next((place for place in Mentioned if place in places), Mentioned.NONE)


def plain_text(cooked: str) -> str:
    """What the author wrote, cleaned: no quotes, oneboxes, elided parts, images or invisible characters.

    Blocks are divided by a blank line, list items and table rows by a line, cells by " | "; code keeps its layout and
    an emoji is its title.
    """
    return _text(cooked, mention=None)


def question_text(cooked: str, username: str) -> str:
    """The plain text of a post without its mentions of `username`."""
    text = _text(cooked, mention=folded_name(username))
    text = _BEFORE_STOP.sub("", _OPENS_LINE.sub("", text))
    return re.sub(r"\n{3,}", "\n\n", text.replace(_GONE + " ", "").replace(_GONE, "")).strip()


def _text(cooked: str, *, mention: str | None) -> str:
    page = Page()
    root = _parsed(cooked)
    if root is None:
        page.write(html.unescape(_TAG.sub(" ", cooked[:MAX_COOKED_CHARS])))
        return page.text()
    items = cells = 0
    waiting: list[LexborNode | str] = [root]  # a string: the end of an element of that name
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            items -= node == "li"
            cells -= node in _CELLS
            page.part(_gap_of(node, items, cells))
        elif node.is_text_node:
            page.write(node.text_content or "")
        elif mention is not None and _is_mention_of(node, mention):
            page.mark(_GONE)
        elif not _is_dropped(node):
            tag = node.tag or ""
            page.part(Gap.CELL if tag in _CELLS else _gap_of(tag, items, cells))
            if tag == "pre":
                page.write_code(node.text())
                page.part(_gap_of(tag, items, cells))
            elif tag == "img":
                page.write(_emoji(node))
            else:
                items += tag == "li"
                cells += tag in _CELLS
                waiting.append(tag)
                waiting.extend(reversed(_children(node)))
    return page.text()


def _gap_of(tag: str, items: int, cells: int) -> Gap:
    """What parts an element from its neighbours, inside so many list items and table cells."""
    if tag in _BLOCKS:
        gap = Gap.LINE if items else Gap.BLANK
    elif tag in _LINES:
        gap = Gap.LINE
    else:
        return Gap.NONE
    return Gap.SPACE if cells else gap


def _parsed(cooked: str) -> LexborNode | None:
    """The body of the HTML, or None where it is too deep to be parsed."""
    read = _SURROGATE.sub("\ufffd", cooked[:MAX_COOKED_CHARS])
    return None if is_too_deep(read) else LexborHTMLParser(read).body


def _children(node: LexborNode) -> list[LexborNode]:
    return [child for child in node.iter(include_text=True) if child.is_element_node or child.is_text_node]


def _classes(node: LexborNode) -> list[str]:
    return (node.attributes.get("class") or "").split()


def _place(node: LexborNode) -> Mentioned:
    """Why Discourse finds no mention inside this element (PLAIN: it does)."""
    classes = _classes(node)
    if "elided" in classes:
        return Mentioned.IN_ELIDED
    if "onebox" in classes:
        return Mentioned.IN_ONEBOX
    if node.tag == "aside" and "quote" in classes:
        return Mentioned.IN_QUOTE
    return Mentioned.IN_CODE if node.tag in ("pre", "code") else Mentioned.PLAIN


def _is_dropped(node: LexborNode) -> bool:
    if node.tag in _DROPPED:
        return True
    classes = _classes(node)
    if node.tag == "aside":
        return "quote" in classes or "onebox" in classes
    return (
        "elided" in classes or (node.tag == "div" and "meta" in classes) or (node.tag == "a" and "lightbox" in classes)
    )


def _emoji(node: LexborNode) -> str:
    return (node.attributes.get("title") or "") if "emoji" in _classes(node) else ""


def _may_name(cooked: str, name: str) -> bool:
    """A cheap look that spares most posts the parser: the name as it is, or percent-encoded in a link."""
    return name in folded_name(cooked) or (not name.isascii() and "%" in cooked)


def _is_mention_of(node: LexborNode, name: str) -> bool:
    if node.tag != "a" or "mention" not in _classes(node):
        return False
    link = _PROFILE.search(node.attributes.get("href") or "")
    shown = folded_name(node.text().strip())
    return shown == f"@{name}" or (link is not None and folded_name(unquote(link[1])) == name)
