"""Puts misspelt, glued and broken words back to the words that the gate's rules know."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

LEAST_CHARS = 5
"""Shorter words have too many neighbours to be told apart."""
_BEGINNING_CHARS = 4
_ENDING_CHARS = 3
_LONGEST_ENDING = 5
_REPLACED_CHARS = 9
"""Another letter in its place makes a word of its own of most shorter ones."""
_LEAST_GLUED_CHARS = 9
_MOST_GLUED_CHARS = 300
_PIECE = re.compile(r"[a-z]+")


@dataclass(frozen=True)
class Lexicon:
    """`targets`: beginnings of words that patterns name, `heads` theirs; `known`: words that are right as they are.

    `neighbours` are the targets by themselves less a letter at most, `beginnings` those of its keys; `scrambled` the
    targets by their letters, `shapes` the first letter, the last and the length of each.
    """

    targets: frozenset[str]
    heads: frozenset[str]
    known: frozenset[str]
    neighbours: dict[str, tuple[str, ...]]
    beginnings: frozenset[str]
    scrambled: dict[str, str]
    shapes: frozenset[tuple[str, str, int]]

    def mended(self, words: Sequence[str]) -> list[str]:
        """The words with broken ones joined, glued ones parted, and misspelt ones put right."""
        heads, targets, known = self.heads, self.targets, self.known
        broken = {
            at
            for at, (word, after) in enumerate(pairwise(words))
            if word in heads and word + after in targets and self._is_broken(word, after)
        }
        if broken:
            words = "".join(word if at in broken else f"{word} " for at, word in enumerate(words)).split()
        mended: list[str] = []
        for word in words:
            if word in known:
                mended.append(word)
            else:
                mended += _mend(self, word)
        return mended

    def _is_broken(self, first: str, second: str) -> bool:
        one_is_unknown = first not in self.known or second not in self.known
        return one_is_unknown and len(second) > 1 and len(first + second) > LEAST_CHARS

    __hash__ = object.__hash__
    __eq__ = object.__eq__


def lexicon(patterns: Iterable[str], examples: Iterable[str]) -> Lexicon:
    """The lexicon of these patterns, and of normalised examples and other texts, whose words are right."""
    pieces = {piece for pattern in patterns for piece in _PIECE.findall(pattern)}
    targets = frozenset(piece for piece in pieces if len(piece) >= LEAST_CHARS)
    neighbours: dict[str, tuple[str, ...]] = {}
    for target in sorted(targets):
        for shorter in _shortened(target):
            neighbours[shorter] = (*neighbours.get(shorter, ()), target)
    words = {word for example in examples for word in example.split()}
    scrambled = {_letters(target): target for target in sorted(targets)}
    return Lexicon(
        targets,
        frozenset(target[:end] for target in targets for end in range(2, len(target))),
        frozenset(words | pieces),
        neighbours,
        frozenset(key[:_BEGINNING_CHARS] for key in neighbours),
        scrambled,
        frozenset((target[0], target[-1], len(target)) for target in targets),
    )


def _letters(word: str) -> str:
    """The letters of a word whose inner ones have changed places."""
    return word[0] + "".join(sorted(word[1:-1])) + word[-1]


def _shortened(word: str) -> set[str]:
    return {word} | {word[:at] + word[at + 1 :] for at in range(1, len(word))}


@lru_cache(maxsize=65_536)
def _mend(known: Lexicon, word: str) -> tuple[str, ...]:
    if len(word) < LEAST_CHARS - 1 or word in known.known or not word.isalpha():
        return (word,)
    if any(word[:end] in known.targets for end in range(max(LEAST_CHARS, len(word) - _LONGEST_ENDING), len(word) + 1)):
        return (word,)
    begins_alike = _begins_alike(known, word)
    for end in range(len(word), max(LEAST_CHARS - 1, len(word) - _ENDING_CHARS) - 1, -1):
        right = _respelt(known, word[:end], begins_alike)
        if right and (end == len(word) or right[-1] == word[end - 1]):
            return (right + word[end:],)
    return _parted(known, word) or (word,)


def _begins_alike(known: Lexicon, word: str) -> bool:
    """Whether a word, whole or less one of its first letters, begins as one of the neighbours does: few words do."""
    begins, left = known.beginnings, range(1, _BEGINNING_CHARS)
    return word[:_BEGINNING_CHARS] in begins or any(
        word[:at] + word[at + 1 : _BEGINNING_CHARS + 1] in begins for at in left
    )


def _respelt(known: Lexicon, word: str, begins_alike: bool) -> str | None:
    shape = word[0], word[-1], len(word)
    if shape in known.shapes and (scrambled := known.scrambled.get(_letters(word))):
        return scrambled
    if not begins_alike:
        return None
    near = {
        target for shorter in _shortened(word) if shorter in known.neighbours for target in known.neighbours[shorter]
    }
    return max(
        (target for target in near if _one_slip(word, target)), key=lambda target: (len(target), target), default=None
    )


def _one_slip(word: str, target: str) -> bool:
    """Whether one letter was dropped, added, doubled, swapped with the next or, in a longer word, replaced."""
    start = next(
        (at for at, (a, b) in enumerate(zip(word, target, strict=False)) if a != b), min(len(word), len(target))
    )
    if start == 0:
        return False
    a, b = word[start:], target[start:]
    if len(word) == len(target):
        swapped = a[:2] == b[1::-1] and a[2:] == b[2:]
        return swapped or (a[1:] == b[1:] and len(target) >= _REPLACED_CHARS)
    if abs(len(word) - len(target)) > 1:
        return False
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    doubled = word[start - 1 : start] == a[:1]
    return longer[1:] == shorter and (len(target) > LEAST_CHARS or doubled)


def _parted(known: Lexicon, word: str) -> tuple[str, ...]:
    """The fewest known words that make up a glued one, or none."""
    if not _LEAST_GLUED_CHARS <= len(word) <= _MOST_GLUED_CHARS:
        return ()
    best: list[tuple[str, ...] | None] = [()] + [None] * len(word)
    for end in range(2, len(word) + 1):
        for start in range(max(0, end - 18), end - 1):
            before = best[start]
            if before is None or word[start:end] not in known.known:
                continue
            if best[end] is None or len(before) + 1 < len(best[end] or ()):
                best[end] = (*before, word[start:end])
    parts = best[-1]
    return parts if parts and any(part in known.targets for part in parts) else ()
