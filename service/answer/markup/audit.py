"""Reads a finished post back as a forum would, and says what in it the server did not write."""

import re
from collections.abc import Iterator, Set
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

_MENTION = re.compile(r"(?<!\w)@\w")
_HASHTAG = re.compile(r"(?<!\w)#(?!\d+(?![\w:-]))[\w:-]")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_BBCODE = re.compile(r"(?<!\\)\[/?(?:quote|details|poll|date|event|url|email|img|spoiler|wrap|code)\b", re.IGNORECASE)


def faults(post: str, allowed_urls: Set[str]) -> list[str]:
    """What stands in `post` besides text, code and links to `allowed_urls`; nothing, when it may go out."""
    found: list[str] = []
    for token in _tokens(_reader().parse(post)):
        match token.type:
            case "inline" if _BBCODE.search(_CODE.sub("", token.content)):
                found.append("bbcode")
            case "html_block" | "html_inline":
                found.append("html")
            case "image":
                found.append("image")
            case "link_open" if str(token.attrs.get("href", "")) not in allowed_urls:
                found.append("link")
            case "text" if _MENTION.search(token.content):
                found.append("mention")
            case "text" if _HASHTAG.search(token.content):
                found.append("hashtag")
    return found


@cache
def _reader() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": True, "linkify": True}).enable(["table", "strikethrough", "linkify"])
    # A forum's own addresses are compared as they were written.
    md.normalizeLink = lambda url: url  # type: ignore[method-assign]  # markdown-it-py documents it as replaceable
    md.validateLink = lambda url: True  # type: ignore[method-assign]  # so that a dangerous scheme counts as a link
    return md


def _tokens(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()
