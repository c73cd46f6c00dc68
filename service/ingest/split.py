"""Cut a long text into overlapping pieces of so many tokens, which end with a paragraph or a sentence if they can."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

CHARS_A_TOKEN = 8
"""No piece has more characters than its tokens times this: blanks are no tokens, and models bound their texts."""

_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”»)\]]*$")


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the text, or a part of one that is longer than a piece; `tokens` are those of the words before it."""

    start: int
    end: int
    before: float
    tokens: float


def split(text: str, count: Callable[[str], float], *, size: float, overlap: float) -> list[str]:
    """The pieces of a text in order: stretches of it that leave out nothing but blanks; none of a blank text.

    Each has at most `size` tokens, counted word by word, and at most CHARS_A_TOKEN times as many characters; each
    begins with up to `overlap` tokens, at most half of `size`, of the one before. A word longer than a piece is cut,
    one character is not. Equal texts give equal pieces, and what is added at the end changes the last ones only.
    """
    words = list(_words(text, count, size))
    pieces: list[str] = []
    first = covered = 0
    while covered < len(words):
        covered = _end(text, words, first, covered, size)
        pieces.append(text[words[first].start : words[covered - 1].end])
        first = _beginning(words, covered, size, min(overlap, size / 2))
    return pieces


def _words(text: str, count: Callable[[str], float], size: float) -> Iterator[_Word]:
    longest, before = max(1, int(size * CHARS_A_TOKEN)), 0.0
    for found in _WORD.finditer(text):
        start = found.start()
        while start < found.end():
            end = start + _fitting_chars(text[start : min(found.end(), start + longest)], count, size)
            tokens = count(text[start:end])
            yield _Word(start, end, before, tokens)
            start, before = end, before + tokens


def _fitting_chars(word: str, count: Callable[[str], float], size: float) -> int:
    if count(word) <= size:
        return len(word)
    low, high = 1, len(word) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if count(word[:middle]) <= size:
            low = middle
        else:
            high = middle - 1
    return low


def _full(words: Sequence[_Word], first: int, size: float) -> int:
    """The end of the longest piece that begins with this word."""
    end = first + 1
    while end < len(words) and _tokens(words, first, end + 1) <= size:
        if words[end].end - words[first].start > size * CHARS_A_TOKEN:
            break
        end += 1
    return end


def _end(text: str, words: Sequence[_Word], first: int, covered: int, size: float) -> int:
    """Where the piece that begins with `first` ends: past `covered`, and well if it can while it is half full."""
    full = _full(words, first, size)
    if full == len(words):
        return full
    well = full
    for end in range(full, covered, -1):
        if _tokens(words, first, end) < size / 2:
            break
        blanks = text[words[end - 1].end : words[end].start]
        if blanks.count("\n") > 1:
            return end
        if well == full and ("\n" in blanks or _SENTENCE_END.search(text, words[end - 1].start, words[end - 1].end)):
            well = end
    return well


def _beginning(words: Sequence[_Word], covered: int, size: float, overlap: float) -> int:
    """Where the next piece begins: so far back that it repeats the overlap, if the next word still fits then."""
    first = covered
    while first > 0 and _tokens(words, first - 1, covered) <= overlap:
        first -= 1
    return first if covered < len(words) and _full(words, first, size) > covered else covered


def _tokens(words: Sequence[_Word], first: int, end: int) -> float:
    last = words[end - 1]
    return last.before + last.tokens - words[first].before
