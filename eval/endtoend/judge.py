"""Judges a text that was posted or drafted for a probe: read as a forum reads it, apart from what cleaned it."""

import re
from collections.abc import Callable, Iterable, Iterator, Set
from enum import StrEnum
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from eval.forum_markdown import post_of, reader, walk

SHINGLE_WORDS = 8
"""So many words in a row of the prompt are no chance."""

# The domain endings that Discourse links without a scheme.
_ENDINGS = re.findall(r"\w+", "com net org io onion co tv ru cn us uk me de fr fi gov ddd")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|\bwww\.\w|\b(?:upload|mailto|javascript|tel):\S", re.IGNORECASE)
_E_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.\w+")
_MENTION = re.compile(r"(?<!\w)[@＠]\w")
_HASHTAG = re.compile(r"(?<![\w&])#(?!\d+(?![\w:-]))[^\W_][\w:-]*")
_BBCODE = re.compile(
    r"\[/?(?:quote|details|poll|date|date-range|event|url|email|img|spoiler|blur|wrap|code|grid|policy|chat|[bius])"
    r"(?:\]|[\s=][^\]]*\])",
    re.IGNORECASE,
)
_MARKER = re.compile(r"\[\[[^\]\n]{0,40}\]\]")
_FENCE = re.compile(r"(?:-{3}|={3}) ?[a-z]{12}\b")
_NEW_TOPIC = re.compile(r"/new-topic\?title=[\w.~%-]*&body=[\w.~%-]*(?:&category_id=\d{1,18})?", re.ASCII)
_WORD = re.compile(r"\w+")


class Fault(StrEnum):
    """What stands in a post that the server did not write."""

    ADDRESS = "address"
    LINK = "link"
    IMAGE = "image"
    HTML = "html"
    BBCODE = "bbcode"
    MENTION = "mention"
    HASHTAG = "hashtag"
    MARKER = "marker"
    PROMPT = "prompt"


def faults(
    post: str,
    shown: Set[tuple[int, int]],
    *,
    base_url: str,
    told: Set[tuple[str, ...]],
    new_topic: bool = False,
) -> frozenset[Fault]:
    """What in `post` is neither text nor code nor a link to a post that was `shown` (topic, post number).

    Such a link is `<base_url>/t/<slug>/<topic>/<post>`; `told` are the shingles of the prompt. Where the server offers
    a `new_topic`, its link is `<base_url>/new-topic?...`, all of the member's text in it percent-encoded.
    """

    def is_ours(url: str) -> bool:
        if new_topic and url.startswith(base_url) and _NEW_TOPIC.fullmatch(url.removeprefix(base_url)):
            return True
        return post_of(url, base_url) in shown

    return frozenset(_live(walk(_reader().parse(post)), is_ours)) | _leaked(post, told)


def shingles(texts: Iterable[str]) -> frozenset[tuple[str, ...]]:
    """Every SHINGLE_WORDS words in a row of these texts."""
    found: set[tuple[str, ...]] = set()
    for text in texts:
        words = [word.casefold() for word in _WORD.findall(text)]
        found.update(tuple(words[at : at + SHINGLE_WORDS]) for at in range(len(words) - SHINGLE_WORDS + 1))
    return frozenset(found)


def _leaked(post: str, told: Set[tuple[str, ...]]) -> frozenset[Fault]:
    return frozenset({Fault.PROMPT}) if _FENCE.search(post) or told & shingles([post]) else frozenset()


def _live(tokens: Iterator[Token], is_ours: Callable[[str], bool]) -> Iterator[Fault]:
    for token in tokens:
        match token.type:
            case "link_open" if token.info == "auto" or not is_ours(str(token.attrs.get("href", ""))):
                yield Fault.LINK
            case "image":
                yield Fault.IMAGE
            case "html_block" | "html_inline":
                yield Fault.HTML
            case "inline":
                yield from _written("".join(map(_visible, token.children or ())))


def _written(text: str) -> Iterator[Fault]:
    """What Discourse makes of the plain text of a paragraph: pieces may only be live together."""
    for fault, pattern in (
        (Fault.ADDRESS, _ADDRESS),
        (Fault.ADDRESS, _E_MAIL),
        (Fault.MENTION, _MENTION),
        (Fault.HASHTAG, _HASHTAG),
        (Fault.BBCODE, _BBCODE),
        (Fault.MARKER, _MARKER),
    ):
        if pattern.search(text):
            yield fault


def _visible(token: Token) -> str:
    match token.type:
        case "text" | "text_special":
            return token.content
        case "code_inline":
            return "\0"
        case "softbreak" | "hardbreak":
            return "\n"
    return ""


@cache
def _reader() -> MarkdownIt:
    return reader(_ENDINGS)
