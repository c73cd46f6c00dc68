"""Whether a post links only to what the answerer was shown: read as a forum reads it, and apart from what wrote it."""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from eval.domain import CitedSource

_POST = re.compile(r"/t/[^/?#\s]+/(\d{1,18})/(\d{1,9})")
_TAG = re.compile(r"<\s*(?:a|img|iframe|video|audio|source|link|form)\b", re.IGNORECASE)


def only_shown(markdown: str, sources: Sequence[CitedSource], base_url: str) -> bool:
    """Whether there is a link, and each goes to a post among `sources` at `<base_url>/t/<slug>/<topic>/<post>`.

    Bare addresses, images and HTML that loads or links something are links to elsewhere.
    """
    shown = {(source.topic_id, source.post_number) for source in sources}
    found = [_post_of(url, base_url) for url in _links(markdown)]
    return bool(found) and all(post in shown for post in found)


def _links(markdown: str) -> Iterator[str]:
    for token in _tokens(_reader().parse(markdown)):
        match token.type:
            case "link_open":
                yield str(token.attrs.get("href", ""))
            case "image":
                yield ""
            case "html_block" | "html_inline" if _TAG.search(token.content):
                yield ""


def _post_of(url: str, base_url: str) -> tuple[int, int] | None:
    base = base_url.rstrip("/")
    match = _POST.fullmatch(url[len(base) :]) if url.startswith(base) else None
    return (int(match[1]), int(match[2])) if match else None


@cache
def _reader() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": True, "linkify": True}).enable(["table", "strikethrough", "linkify"])
    # A dangerous scheme is a link too, and the forum's own addresses are compared as they were written.
    md.validateLink = lambda url: True  # type: ignore[method-assign]  # markdown-it-py documents both as replaceable
    md.normalizeLink = lambda url: url  # type: ignore[method-assign]
    return md


def _tokens(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _tokens(token.children or [])
