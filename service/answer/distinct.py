"""Near-duplicates among candidates: posts that say the same twice, as where a member asks in several places."""

import re
from collections.abc import Sequence

from service.domain import Candidate

READ_CHARS = 2_000
ALIKE = 0.9
"""Least share of common words, of all words of both (Jaccard), of posts that are the same."""

LEAST_WORDS = 8
"""Shorter posts ("this helped, thanks") are alike by chance: their topics tell them apart."""

_WORD = re.compile(r"\w+")


def distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates without those whose words are nearly those of an earlier one."""
    kept: list[tuple[Candidate, frozenset[str]]] = []
    for one in candidates:
        words = frozenset(_WORD.findall(one.body[:READ_CHARS].casefold()))
        if len(words) < LEAST_WORDS or not any(_alike(words, others) for _, others in kept):
            kept.append((one, words))
    return [one for one, _ in kept]


def _alike(words: frozenset[str], others: frozenset[str]) -> bool:
    fewer, more = sorted((len(words), len(others)))
    if fewer < ALIKE * more:
        return False
    common = len(words & others)
    return common >= ALIKE * (len(words) + len(others) - common)
