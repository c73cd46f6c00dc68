"""Cuts a source's plain text into sentences that can stand alone in an answer."""

import re

MIN_CHARS = 20
MIN_WORDS = 4
MAX_CHARS = 320
MAX_SENTENCES = 60
"""Looked at of one source."""

_LINE = re.compile(r"\n+(?![a-zà-ÿ])|(?<=[;:])\n+")
_END = re.compile(r"(?<=[.!?…])[\"”»)]*\s+(?=[^a-zà-ÿ\s])")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|ex|env|approx|min|max|mr|mrs|dr|p|no)\.$", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")
# A semicolon alone doesn't make code: the items of a list end in one, in French after a space.
_CODE = re.compile(r"^(?:\s{2,}|\t)|[{}]\s*$|^\s*(?://|#\w|\$ )|\)\s*\{|\w\);|(?:\w\(|::|->|=|_\w).*\S;\s*$")
_CODE_MARK = re.compile(r"\w\(|::|->|=>|[{}=#]|(?<! );|[^\W_]+(?:_+[^\W_]+)+|\w/\w|\w[*&] |</")
_MOST_CODE_MARKS = 2
_BULLET = re.compile(r"^[-*–•]\s+")
_COURTESY = re.compile(
    r"^(?:hi|hello|hey|dear|welcome|thanks?|thank you|cheers|(?:kind |best )?regards|good luck|hope (?:this|that|it)|"
    r"bonjour|bonsoir|salut|coucou|bienvenue|merci|cordialement|bien à (?:vous|toi)|bonne (?:chance|journée)|"
    r"bon courage|en espérant|j['’]espère que|edit|édit)\b",
    re.IGNORECASE,
)
_COURTESY_CHARS = 70
"""Longer sentences say something beyond the courtesy they begin with."""


def sentences(text: str) -> list[str]:
    """The sentences worth quoting, in order, each on one line and at most MAX_CHARS long.

    Questions, courtesies, code, fragments, addresses and what ends in a colon are left out; an overlong one ends at a
    word with "…".
    """
    found = []
    for line in _LINE.split(text):
        if not _CODE.search(line):
            found += [one for part in _parts(line) if (one := _quotable(part))]
        if len(found) >= MAX_SENTENCES:
            break
    return found[:MAX_SENTENCES]


def _parts(line: str) -> list[str]:
    parts: list[str] = []
    for part in _END.split(line):
        if parts and _ABBREVIATION.search(parts[-1]):
            parts[-1] = f"{parts[-1]} {part}"
        else:
            parts.append(part)
    return parts


def _quotable(part: str) -> str | None:
    sentence = _BULLET.sub("", " ".join(part.split()).strip("…; "))
    if len(sentence) < MIN_CHARS or len(_WORD.findall(sentence)) < MIN_WORDS:
        return None
    if sentence.rstrip('"”») ').endswith(("?", ":")) or "://" in sentence:
        return None
    if len(_CODE_MARK.findall(sentence)) > _MOST_CODE_MARKS:
        return None
    if len(sentence) <= _COURTESY_CHARS and _COURTESY.search(sentence):
        return None
    if len(sentence) > MAX_CHARS:
        cut = sentence[: MAX_CHARS - 1]
        return f"{cut.rpartition(' ')[0] or cut}…"
    return sentence
