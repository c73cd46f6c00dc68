"""Takes out of plain text what a forum would make live: addresses, mentions, hashtags, BBCode and tags."""

import re
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache
from unicodedata import normalize

from linkify_it import LinkifyIt  # type: ignore[import-untyped]  # it ships no types

from service.answer.markup.domains import ENDINGS, HOST, verdict
from service.answer.markup.invisible import strip_invisible
from service.answer.markup.rules import GAP, is_tag
from service.answer.markup.tree import CodeSpan, Text

_LOOKALIKES = {"。": ".", "｡": ".", "․": ".", "⁄": "/", "∕": "/", "∶": ":", "꞉": ":"}

# Text without any of these characters, and without any beyond Latin, has nothing for the patterns below.
_SUSPECT = re.compile(r"[^\w\s,;!?'’\"()«»“”…*+=~_-]|[^\x00-\u024f’“”…]")
_URL = re.compile(
    r"(?:[\w+.-]{0,30}(?::|%3a)(?:/|%2f){2}|(?:hxxps?|https?|ftps?|mailto|javascript|vbscript|upload|view-source|magnet):(?=\S)|"
    r"(?<![^\W_])(?:tel|sms|xmpp|skype|callto|blob):(?=\S)|(?<![^\W_])file:/|(?<![^\W_])data:[a-z]{2,20}/|"
    r"(?<![\w:/])//(?=[\w-]{1,63}\.\w)|(?<![\w.])www\.(?=\w))\S*+",
    re.IGNORECASE,
)
_EMAIL = re.compile(r"(?:mailto:)?[\w.+%'!#$&*/=?^`{|}~-]{1,64}@(?:[\w-]{1,63}\.){1,8}[\w-]{2,63}")
_TRAILING = re.compile(r"[.,;:!?…)\]}»”\"'*_]+$")
_TAGLIKE = re.compile(
    r"<(?P<close>/?)(?P<name>[a-z][\w:-]{0,40}+)(?P<rest>(?:[\s/][^<>]{0,2000}+)?)>|<!--|-->|<[!?][^<>]{0,2000}+>?",
    re.IGNORECASE,
)
_TORN_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[a-z][\w:-]{0,40}+)(?P<rest>(?:[\s/]+[\w:@.-]{1,60}\s?=\s?(?:\"[^\"<>]{0,500}+\"?|'[^'<>]{0,500}+'?|[^\s<>\"']{0,500}+))*)",
    re.IGNORECASE,
)
# BBCode of Discourse and of its bundled and common plugins; any other name counts when it has a value or is closed.
_BBCODES = (
    "quote details spoiler blur poll date date-range event wrap url email img code pre b i u s ul ol li list grid "
    "policy chat hide toc timezone excerpt size color bgcolor font highlight left right center justify indent "
    "video audio youtube media attach attachment table tr td th tabs tab mention user group sup sub mermaid math"
)
_BBCODE = re.compile(
    rf"\[/?(?:{_BBCODES.replace(' ', '|')})(?:\]|(?=[\s=])[^\[\]\n]{{0,400}}+\]?|(?={GAP}|\Z))"
    r"|\[(?P<closed>[a-z][a-z-]{0,30}+)(?:[\s=][^\[\]\n]{0,400}+)?\]|\[/[a-z][a-z-]{0,30}+\]",
    re.IGNORECASE,
)
_FULL_BBCODE = re.compile(r"\[[a-z-]{1,30}+(?:=|\s[a-z_-]{1,30}=)", re.IGNORECASE)
_BRACKETS = re.compile(r"\[\[[^\[\]\n]{0,40}\]\]|\[{2,}|\]{2,}|(?:［[ \t]*){2,}|(?:］[ \t]*){2,}")
_UPLOAD_NAME = re.compile(r"\|(?:attachment|video|audio|thumbnail|\d{1,5}x\d{1,5})\b[^\s|]{0,40}")
_MASS = re.compile(r"[@＠﹫]+(?:here|all|everyone|everybody|channel|staff-all)\b", re.IGNORECASE)
_AT = re.compile(r"[@＠﹫]+(?=[^\s@]|\s*\Z)")
# A colour needs a digit and a letter: without the one it may be a word, without the other a number.
_HEX = r"(?<![\w&])#(?=[0-9a-f]*\d)(?=\d*[a-f])(?:[0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})(?![\w:-])"
_DIRECTIVE = r"(?<![^\s(])#(?:include|define|undef|ifn?def|if|elif|else|endif|pragma|import|version|region)(?![\w:-])"
_NAME = re.compile(f"{HOST.pattern}|{_HEX}|{_DIRECTIVE}", re.IGNORECASE)
_ESCAPABLE = re.compile(r"[\\`*_\[\]<>~#|&]")
_MAYBE_LINK = re.compile(r"\w\.\w|//|:\S|@")
# A number after the sign is a number, unless a letter or a colon goes on with it.
_TAG_START = r"[^\W\d]|[\u00c0-\u1fff\u2c00-\ud7ff]|\d+(?![\d\s!-,./;-@\[-^`{-~’»”…]|\Z)|[:-]|\s*\Z"
_HASH = re.compile(rf"(?<![^\W_])(?!{_HEX}|{_DIRECTIVE})[#＃﹟]+(?={_TAG_START})", re.IGNORECASE)
_EMPTY = re.compile(
    rf"\([\s,;]*{GAP}[\s,;{GAP}]*\)|\[\s*{GAP}[\s{GAP}]*\]|<\s*{GAP}[\s{GAP}]*>|«\s*{GAP}[\s{GAP}]*»|“\s*{GAP}[\s{GAP}]*”"
)
_COMMAS = re.compile(rf"([,;:])(?:[ \t]*{GAP}[ \t{GAP}]*,)+")
_HOLE = re.compile(rf"[ \t]*{GAP}[ \t{GAP}]*")


def closed_names(text: str) -> frozenset[str]:
    """The names of the tags, of HTML or BBCode, that `text` closes somewhere."""
    return frozenset(name.lower() for name in re.findall(r"(?:<|&lt;|\[)/\s*([A-Za-z][\w:-]{0,40})", text))


def scrub(text: str, closed: frozenset[str], removed: Counter[str]) -> list[Text | CodeSpan]:
    """`text` with nothing in it that cooks into more than text; names of files and colours become code.

    `closed` are names of tags to drop wherever they stand.
    """
    if not _SUSPECT.search(text):
        return [Text(text)] if text else []
    # An entity may have brought an invisible character back; the gaps are the parser's own.
    pieces = [strip_invisible(piece) for piece in text.split(GAP)]
    removed["invisible"] += sum(count for _, count in pieces)
    text = _settled(GAP.join(piece for piece, _ in pieces), closed, removed)
    nodes: list[Text | CodeSpan] = []
    for node in _inert_names(text):
        # Beside a new piece of code stands a new beginning or end of text, where more may be live than in its midst.
        whole = isinstance(node, CodeSpan) or node.text == text
        nodes += [node] if whole else scrub(node.text, closed, removed)
    return [Text(_unlinked(node.text, removed)) if isinstance(node, Text) else node for node in nodes]


def _settled(text: str, closed: frozenset[str], removed: Counter[str]) -> str:
    for _ in range(6):
        shorter = _close_gaps(_once(text, closed, removed))
        if shorter == text:
            return text
        text = shorter
    # Each round uncovered another layer: whoever nests this deep gets no markup at all.
    return _HOLE.sub(" ", re.sub(r"[<>@#\[\]]|://", " ", text))


def _once(text: str, closed: frozenset[str], removed: Counter[str]) -> str:
    def tag(match: re.Match[str]) -> str | None:
        return GAP if match["name"] is None or is_tag(match, closed) else None

    def torn(match: re.Match[str]) -> str | None:
        return GAP if is_tag(match, closed) else None

    def bbcode(match: re.Match[str]) -> str | None:
        name = match["closed"]
        return GAP if name is None or name.lower() in closed or _FULL_BBCODE.match(match[0]) else None

    def address(match: re.Match[str]) -> str:
        tail = _TRAILING.search(match[0])
        return GAP + (tail[0] if tail and tail.start() else "")

    def host(match: re.Match[str]) -> str | None:
        match verdict(match):
            case "remove":
                return GAP
            case "space" if match[0].rstrip(".") == match["host"]:
                return (
                    match["host"][: -len(match["ending"])]
                    + " "
                    + match[0][match.end("host") - len(match["ending"]) - match.start() :]
                )
            case _:
                return None

    def gap(_: re.Match[str]) -> str:
        return GAP

    passes: tuple[tuple[re.Pattern[str], str, Callable[[re.Match[str]], str | None]], ...] = (
        (_TAGLIKE, "html", tag),
        (_TORN_TAG, "html", torn),
        (_BBCODE, "bbcode", bbcode),
        (_EMAIL, "email", gap),
        (_URL, "url", address),
        (HOST, "url", host),
        (_BRACKETS, "marker", gap),
        (_UPLOAD_NAME, "image", gap),
        (_MASS, "mention", gap),
        (_AT, "mention", gap),
    )
    for pattern, kind, replacement in passes:
        text = _replace(text, _fold(text), pattern, replacement, kind, removed)
    # A superscript two is a digit only when folded, and a hashtag as it stands.
    return _replace(text, text, _HASH, gap, "hashtag", removed)


def _replace(
    text: str,
    searched: str,
    pattern: re.Pattern[str],
    replacement: Callable[[re.Match[str]], str | None],
    kind: str,
    removed: Counter[str],
) -> str:
    """Replace in `text` what matches in `searched`, its image of the same length; None leaves a match as it is."""
    kept: list[str] = []
    start = 0
    for match in pattern.finditer(searched):
        new = replacement(match)
        if new is None:
            continue
        removed[kind] += 1
        kept += (text[start : match.start()], new)
        start = match.end()
    return "".join((*kept, text[start:]))


def _fold(text: str) -> str:
    """The same number of characters, each replaced by the plain one that it is a variant of."""
    return text if text.isascii() else "".join(map(_fold_char, text))


@lru_cache(maxsize=4096)
def _fold_char(char: str) -> str:
    folded = _LOOKALIKES.get(char) or normalize("NFKC", char)
    return folded if len(folded) == 1 else char


def _close_gaps(text: str) -> str:
    if GAP not in text:
        return text

    def close(match: re.Match[str]) -> str:
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        if after in (".", ",", ")") and (text[match.end() + 1 : match.end() + 2] or " ").isspace():
            return ""
        if before in ("(", "\n") or after == "\n":
            return ""
        return " " if len(match[0].strip(GAP)) or match[0][0] != GAP or (before.isalnum() and after.isalnum()) else ""

    text = _COMMAS.sub(rf"\1{GAP}", _EMPTY.sub(GAP, text))
    return _HOLE.sub(close, text)


def _inert_names(text: str) -> list[Text | CodeSpan]:
    """Split off, as code, the names that a forum would link or take for a hashtag."""
    nodes: list[Text | CodeSpan] = []
    start = 0
    for match in _NAME.finditer(text):
        if match["host"] and verdict(match) != "code":
            continue
        end = match.end("host") if match["host"] else match.end()
        nodes += (Text(text[start : match.start()]), CodeSpan(text[match.start() : end]))
        start = end
    nodes.append(Text(text[start:]))
    return [node for node in nodes if node.text]


def _unlinked(text: str, removed: Counter[str]) -> str:
    """The last word is the link finder's own: what it would still find goes."""
    if not _MAYBE_LINK.search(text):
        return text
    for separated in (str, _at_escapes):
        kept: list[str] = []
        start = 0
        for match in _linkify().match(separated(text)) or ():
            removed["url"] += 1
            kept.append(text[start : match.index])
            start = match.last_index
        text = " ".join((*kept, text[start:]))
    return text


def _at_escapes(text: str) -> str:
    """The text as a parser gives it to its link finder: in pieces, cut wherever a character is escaped."""
    return _ESCAPABLE.sub(" ", text)


@cache
def _linkify() -> LinkifyIt:
    return LinkifyIt().tlds(sorted(ENDINGS), True)
