"""Tells a question from a greeting, a bare mention and a thank-you."""

import re
from collections.abc import Set
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache

from service.answer.messages import folded_words, wordings

MAX_COURTESY_WORDS = 14
"""A longer post says something, whatever its words."""


class Courtesy(Enum):
    """What a post without a question is; ASKS is everything else."""

    BARE = auto()
    THANKS = auto()
    ASKS = auto()


_NAME = re.compile(r"(?<!\w)@[\w.-]+")
_EMOJI = re.compile(
    r":[a-z0-9_+-]+(?::t\d)?:|<3|[:;]-?[)d](?!\w)|[\u2600-\u27bf\u2b50\U0001f000-\U0001faff]", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Patterns:
    greetings_only: re.Pattern[str]
    courtesies_only: re.Pattern[str]
    thanks: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    languages = wordings().values()
    greetings = {phrase for wording in languages for phrase in wording.greetings}
    thanks = {phrase for wording in languages for phrase in wording.thanks}
    filler = {phrase for wording in languages for phrase in wording.thanks_filler}
    return _Patterns(
        re.compile(f"(?:{any_of(greetings)}(?: |$))+"),
        re.compile(f"(?:{any_of(greetings | thanks | filler)}(?: |$))+"),
        re.compile(rf"\b{any_of(thanks)}\b"),
    )


def any_of(phrases: Set[str]) -> str:
    """A regular expression for any of these phrases: the longest of those that begin alike."""
    return f"(?:{'|'.join(map(re.escape, sorted(phrases, key=lambda phrase: (-len(phrase), phrase))))})"


def courtesy(text: str) -> Courtesy:
    """Read a post without its mention: nothing or greetings, thanks only, or something that may be a question."""
    words = folded_words(_EMOJI.sub(" ", _NAME.sub(" ", text)))
    if not words:
        return Courtesy.THANKS if _EMOJI.search(text) else Courtesy.BARE
    if len(words.split()) > MAX_COURTESY_WORDS:
        return Courtesy.ASKS
    patterns = _patterns()
    if patterns.greetings_only.fullmatch(words):
        return Courtesy.BARE
    thanks = "?" not in text and patterns.thanks.search(words) and patterns.courtesies_only.fullmatch(words)
    return Courtesy.THANKS if thanks else Courtesy.ASKS
