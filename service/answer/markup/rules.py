"""Markdown's bracket and angle syntax as the sanitizer reads it: citations kept, links unwrapped, the rest dropped.

markdown-it's own link, image, autolink and HTML rules are replaced: they take a citation for a link, and their cost
grows with the square of the brackets. Every pattern here is bounded or possessive, so a draft costs linear time.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

from service.answer.markup.numbers import read_numbers

GAP = "\ue000"
"""Stands where something was removed; private-use characters never come from a draft."""

_OPEN, _CLOSE = "[［【", "]］】"
_RUN = re.compile(rf"[{re.escape(_OPEN)}](?:[ \t]*+[{re.escape(_OPEN)}])*+")
_CLOSER = re.compile(rf"[ \t]*+[{re.escape(_CLOSE)}]")
_BODY = re.compile(r"([^\[\]［］【】]{0,120})(?=[\]］】])")
_NEXT = re.compile(r"\s*(?:,|;|&|et|and)?\s*[\[［【]([^\[\]［］【】]{0,40})[\]］】]")
_LONE_NUMBER = re.compile(r"\[\s{0,5}\d[\d\s,;]{0,20}\]{2,}|【\s{0,5}\d[^【】\n]{0,60}】|\[\^[^\[\]\s]{1,60}\]")
_LABEL = r"(?:[^\[\]\\]|\\.|\[\[[^\[\]]{0,60}\]\]|\[[^\[\]]{0,60}\]){0,500}+"
_DESTINATION = (
    r"\(\s{0,9}(?:<[^<>\n]{0,2000}+>|(?:[^\s()<>]|\([^\s()]{0,200}+\)){0,2000}+)"
    r"(?:\s{1,9}(?:\"[^\"]{0,500}+\"|'[^']{0,500}+'|\([^()]{0,500}+\)))?\s{0,9}\)"
)
_LINK = re.compile(rf"\[{_LABEL}\](?={_DESTINATION})", re.DOTALL)
_IMAGE = re.compile(rf"!\[(?P<label>{_LABEL})\](?:(?P<to>{_DESTINATION})|\[(?P<ref>[^\[\]]{{0,200}})\])?", re.DOTALL)
_TAIL = re.compile(_DESTINATION)
_REFERENCE = re.compile(r"\[(?P<label>[^\[\]]{1,200})\](?:\[(?P<ref>[^\[\]]{0,200})\])?")
_SECOND_LABEL = re.compile(r"\[([^\[\]]{0,200})\]")
_GLUED_LABEL = re.compile(r"\[[^\[\]\n]{0,60}\](?!\])")
_AUTOLINK = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:(?!:)[^\s<>]{0,2000}+|[^\s<>@]{1,100}@[^\s<>]{1,200}+)>")
_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[A-Za-z][\w:-]{0,40}+)"
    r"(?P<rest>(?:[\s/](?:[^<>\"']|\"[^\"]{0,2000}+\"|'[^']{0,2000}+'){0,1000}+)?)>"
)
_MARKUP = re.compile(r"<!--.{0,500}?-->|<\?.{0,500}?\?>|<!\[CDATA\[.{0,500}?\]\]>|<![A-Za-z][^<>]{0,2000}+>", re.DOTALL)

# HTML's element names, and those that stand inside words; any other name may be a placeholder in prose.
_NAMES = (
    "a abbr address applet area article aside audio b base basefont bdi bdo big blink blockquote body br button "
    "canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em embed "
    "fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i "
    "iframe image img input ins kbd label legend li link main map mark marquee math menu meta meter nav nobr "
    "noembed noscript object ol optgroup option output p param path picture plaintext portal pre progress q rect "
    "rp rt ruby s samp script search section select slot small source span strike strong style sub summary sup "
    "svg table tbody td template textarea tfoot th thead time title tr track tt u ul use var video wbr xmp"
)
_NAMES_IN_WORDS = "a abbr b bdi bdo big code del em font i ins kbd mark q s samp small span strong sub sup tt u var wbr"
HTML_NAMES, _INLINE_NAMES = frozenset(_NAMES.split()), frozenset(_NAMES_IN_WORDS.split())


@dataclass(slots=True)
class Reading:
    """What the rules need to know of the draft, and the counts of what they removed.

    `references` are the labels that the draft defines as links, `closed` the names of tags that it closes somewhere.
    """

    sources: int
    removed: Counter[str]
    closed: frozenset[str] = frozenset()
    references: set[str] = field(default_factory=set)


def install(md: MarkdownIt) -> None:
    """Put the rules in place of markdown-it's; a parse then needs `env["reading"]`."""
    md.disable(["link", "image", "autolink", "html_inline"])
    for char in "［【":
        md.inline.add_terminator_char(char)
    for name, rule in (("opening", _opening), ("closing", _closing), ("image_or_text", _image), ("angle", _angle)):
        md.inline.ruler.before("entity", name, rule)


def normal_label(label: str) -> str:
    return " ".join(label.split()).casefold()


def _reading(state: StateInline) -> Reading:
    reading: Reading = state.env["reading"]
    return reading


def _gap(state: StateInline, end: int, kind: str | None) -> bool:
    if kind is not None:
        _reading(state).removed[kind] += 1
    state.pending += GAP
    state.pos = end
    return True


def _opening(state: StateInline, silent: bool) -> bool:
    src, pos = state.src, state.pos
    if silent or src[pos] not in _OPEN:
        return False
    run = _RUN.match(src, pos)
    depth = sum(char in _OPEN for char in run[0]) if run else 0
    if run and depth >= 2:
        return _marker(state, run.end(), depth)
    lone = _LONE_NUMBER.match(src, pos)
    if lone:
        return _gap(state, lone.end(), "marker")
    if src[pos] == "[" and _LINK.match(src, pos):
        state.pos += 1
        return True
    reference = _REFERENCE.match(src, pos)
    if reference and normal_label(reference["ref"] or reference["label"]) in _reading(state).references:
        _reading(state).removed["link"] += 1
        state.pending += reference["label"]
        state.pos = reference.end()
        return True
    state.pending += src[pos]
    state.pos += 1
    return True


def _marker(state: StateInline, start: int, depth: int) -> bool:
    """Read a citation whose brackets end at `start`: a failed one goes, other words only lose their brackets."""
    src, reading = state.src, _reading(state)
    first = _BODY.match(src, start)
    if first is None:
        return _gap(state, start, "marker")
    bodies, end, open_brackets = [first[1]], first.end() + 1, depth - 1
    while open_brackets and (more := _NEXT.match(src, end)):
        bodies.append(more[1])
        end = more.end()
    closers = 1 + (len(bodies) > 1)
    while open_brackets and (closer := _CLOSER.match(src, end)):
        end, closers, open_brackets = closer.end(), closers + 1, open_brackets - 1
    numbers = read_numbers(",".join(bodies), reading.sources)
    if closers < 2 or numbers is None:
        attempt = closers >= 2 and len(" ".join(bodies)) <= 12 and len(bodies[0].split()) <= 1
        broken = numbers is not None or attempt
        return _gap(state, end if broken else start, "marker")
    found, missing = numbers
    if missing:
        reading.removed["marker"] += missing
    if not found:
        state.pending += GAP
    for n in found:
        state.push("cite", "", 0).meta = {"n": n}
    state.pos = _after_marker(src, end)
    return True


def _after_marker(src: str, end: int) -> int:
    """Skip the label or address glued to a citation; round brackets with words in them stay."""
    label = _GLUED_LABEL.match(src, end)
    if label and not src.startswith("[[", end):
        end = label.end()
        nested = _TAIL.match(src, end)
        return nested.end() if nested else end
    target = _TAIL.match(src, end)
    return target.end() if target and re.search(r"[:/.#\\]", target[0]) else end


def _closing(state: StateInline, silent: bool) -> bool:
    src, pos = state.src, state.pos
    if silent or src[pos] != "]":
        return False
    end = pos + 1
    while end < state.posMax and src[end] == "]":
        end += 1
    target = _TAIL.match(src, end)
    if target:
        return _gap(state, target.end(), "link") if end - pos > 1 else _unwrap(state, target.end())
    reference = _SECOND_LABEL.match(src, end)
    if reference and (not reference[1] or normal_label(reference[1]) in _reading(state).references):
        return _unwrap(state, reference.end())
    if end - pos > 1:
        return _gap(state, end, "marker")
    state.pending += "]"
    state.pos = end
    return True


def _unwrap(state: StateInline, end: int) -> bool:
    _reading(state).removed["link"] += 1
    state.pos = end
    return True


def _image(state: StateInline, silent: bool) -> bool:
    src, pos = state.src, state.pos
    if silent or not src.startswith("![", pos):
        return False
    image = _IMAGE.match(src, pos)
    defined = image is not None and normal_label(image["ref"] or image["label"]) in _reading(state).references
    if image and (image["to"] is not None or image["ref"] or defined):
        return _gap(state, image.end(), "image")
    return False


def _angle(state: StateInline, silent: bool) -> bool:
    src, pos = state.src, state.pos
    if silent or src[pos] != "<":
        return False
    autolink = _AUTOLINK.match(src, pos)
    if autolink:
        return _gap(state, autolink.end(), "email" if "@" in autolink[0] and "://" not in autolink[0] else "url")
    markup = _MARKUP.match(src, pos)
    if markup:
        return _gap(state, markup.end(), "html")
    tag = _TAG.match(src, pos)
    if tag is None or not is_tag(tag, _reading(state).closed):
        return False
    if tag["name"].lower() not in _INLINE_NAMES:
        return _gap(state, tag.end(), "html")
    _reading(state).removed["html"] += 1
    state.pos = tag.end()
    return True


def is_tag(tag: re.Match[str], closed: frozenset[str]) -> bool:
    """Whether a thing in angle brackets is markup: a bare unknown name that is never closed is a placeholder."""
    name = tag["name"].lower()
    return bool(tag["close"] or name in HTML_NAMES or name in closed or "=" in tag["rest"] or "/" in tag["rest"][-1:])
