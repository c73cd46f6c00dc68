"""Plain text as it is written down: what separates two pieces, and which characters never get in."""

import re
from enum import IntEnum

# Control characters but white space, soft hyphens, zero-width and bidirectional marks, variation selectors, fillers and
# tag characters: a reader doesn't see them, a model and a search do.
_INVISIBLE = re.compile(
    "[\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SPACES = re.compile(r"\s+")
_BLANK_START = re.compile(r"\A(?:[^\S\n]*+\n)++")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


class Gap(IntEnum):
    """What parts two pieces of text, the weaker first."""

    NONE = 0
    SPACE = 1
    CELL = 2
    LINE = 3
    BLANK = 4


_WRITTEN = {Gap.NONE: "", Gap.SPACE: " ", Gap.CELL: " | ", Gap.LINE: "\n", Gap.BLANK: "\n\n"}


class Page:
    """Text in the making: of the gaps asked for between two pieces, the strongest is written, and none at the ends."""

    __slots__ = ("_gap", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._gap = Gap.NONE

    def part(self, gap: Gap) -> None:
        self._gap = max(self._gap, gap)

    def write(self, text: str) -> None:
        """Add running text: invisible characters are dropped, any run of white space is one space."""
        text = _SPACES.sub(" ", _INVISIBLE.sub("", text))
        if text.startswith(" "):
            self.part(Gap.SPACE)
        self._put(text.strip(" "))
        if text.endswith(" "):
            self.part(Gap.SPACE)

    def write_code(self, text: str) -> None:
        """Add text whose lines and indentation count; invisible characters are dropped all the same."""
        self._put(_BLANK_START.sub("", _LINE_ENDS.sub("\n", _INVISIBLE.sub("", text)).rstrip()))

    def mark(self, character: str) -> None:
        """Add a character as it is, one that `write` would drop: a place to find again in the text."""
        self._put(character)

    def text(self) -> str:
        return "".join(self._pieces)

    def _put(self, piece: str) -> None:
        if not piece:
            return
        if self._pieces:
            self._pieces.append(_WRITTEN[self._gap])
        self._pieces.append(piece)
        self._gap = Gap.NONE
