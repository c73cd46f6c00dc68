"""Whether a post links only to what the answerer was shown: read as a forum reads it, and apart from what wrote it."""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from eval.domain import CitedSource
from eval.forum_markdown import post_of, reader, walk

_TAG = re.compile(r"<\s*(?:a|img|iframe|video|audio|source|link|form)\b", re.IGNORECASE)

_reader = cache(reader)


def only_shown(markdown: str, sources: Sequence[CitedSource], base_url: str) -> bool:
    """Whether there is a link, and each goes to a post among `sources` at `<base_url>/t/<slug>/<topic>/<post>`.

    Bare addresses, images and HTML that loads or links something are links to elsewhere.
    """
    shown = {(source.topic_id, source.post_number) for source in sources}
    found = [post_of(url, base_url) for url in _links(markdown)]
    return bool(found) and all(post in shown for post in found)


def _links(markdown: str) -> Iterator[str]:
    for token in walk(_reader().parse(markdown)):
        match token.type:
            case "link_open":
                yield str(token.attrs.get("href", ""))
            case "image":
                yield ""
            case "html_block" | "html_inline" if _TAG.search(token.content):
                yield ""
