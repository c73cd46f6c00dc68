"""Markdown as a forum reads it, for judging what was posted: apart from what the service cleans and writes with."""

import re
from collections.abc import Iterable, Iterator

from linkify_it import LinkifyIt  # type: ignore[import-untyped]  # it ships no types
from markdown_it import MarkdownIt
from markdown_it.token import Token

_POST = re.compile(r"/t/[^/?#\s]+/(\d{1,18})/(\d{1,9})")


def reader(endings: Iterable[str] = ()) -> MarkdownIt:
    """A reader of posts; `endings` are the domain endings that are linked without a scheme, instead of its own."""
    md = MarkdownIt("commonmark", {"html": True, "linkify": True}).enable(["table", "strikethrough", "linkify"])
    if known := list(endings):
        md.linkify = LinkifyIt().tlds(known, True)
    # A dangerous scheme is a link too, and the forum's own addresses are compared as they were written.
    md.validateLink = lambda url: True  # type: ignore[method-assign]  # markdown-it-py documents it as replaceable
    md.normalizeLink = lambda url: url  # type: ignore[method-assign]  # markdown-it-py documents it as replaceable
    return md


def walk(tokens: Iterable[Token]) -> Iterator[Token]:
    """Every token, its children after it."""
    for token in tokens:
        yield token
        yield from walk(token.children or ())


def post_of(url: str, base_url: str) -> tuple[int, int] | None:
    """Topic and post number of `<base_url>/t/<slug>/<topic>/<post>`; None for any other address."""
    base = base_url.rstrip("/")
    match = _POST.fullmatch(url[len(base) :]) if url.startswith(base) else None
    return (int(match[1]), int(match[2])) if match else None
