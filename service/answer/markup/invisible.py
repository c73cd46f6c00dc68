"""Characters that a reader cannot see, and piles of marks: taken out of any text."""

import re
from unicodedata import category

# Unicode's Cc, Cf, Cs, Co and the default-ignorable code points, the joiners and selectors of emoji aside:
# those are judged by their neighbours below.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufdd0-\ufdef\ufe00-\ufe0d"
    "\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff\ud800-\udfff\ue000-\uf8ff\U000110bd\U000110cd\U00013430-\U0001345f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U0001fffe\U0001ffff\U000e0000-\U000e0fff\U000efffe-\U0010ffff]"
)
_LINE_BREAK = re.compile("\r\n|[\r\x85\u2028\u2029]")
_ODD_SPACE = re.compile("[\x0b\x0c\u1680\u2000-\u200a\u205f\u3000]")
_JOINER = re.compile("([\u200d\ufe0e\ufe0f])")
_MOST_MARKS = 4
_PILE = re.compile(f"[^\x00-\u02ff]{{{_MOST_MARKS + 1},}}")


def strip_invisible(text: str) -> tuple[str, int]:
    """The text without control, zero-width, direction, tag and private-use characters, and how many went.

    Every line break becomes a newline and every wide or thin space a plain one (the two no-break spaces of French
    stay); joiners and variation selectors stay only where they shape an emoji; a letter keeps four combining marks.
    """
    text = _ODD_SPACE.sub(" ", _LINE_BREAK.sub("\n", text))
    cleaned = _INVISIBLE.sub("", text)
    if _JOINER.search(cleaned):
        cleaned = _shape_emoji(cleaned)
    cleaned = _PILE.sub(_thinned, cleaned)
    return cleaned, len(text) - len(cleaned)


def _shape_emoji(text: str) -> str:
    kept: list[str] = []
    pieces = _JOINER.split(text)
    last = ""
    for index, piece in enumerate(pieces):
        if index % 2 and not _shapes(piece, last, pieces[index + 1][:1]):
            continue
        kept.append(piece)
        last = piece[-1:] or last
    return "".join(kept)


def _shapes(joiner: str, before: str, after: str) -> bool:
    if joiner == "\u200d":
        return (before == "\ufe0f" or _is_picture(before)) and _is_picture(after)
    return _is_picture(before) or (before in set("0123456789#*") and after == "\u20e3")


def _is_picture(char: str) -> bool:
    return char > "\x7f" and category(char) in ("So", "Sk", "Sm", "Po")


def _thinned(pile: re.Match[str]) -> str:
    kept: list[str] = []
    run = 0
    for char in pile[0]:
        run = run + 1 if category(char)[0] == "M" and char not in "\ufe0e\ufe0f" else 0
        if run <= _MOST_MARKS:
            kept.append(char)
    return "".join(kept)
