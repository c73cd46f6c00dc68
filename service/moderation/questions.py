"""The kinds of what became of a question, for counting: the results of an answer, and all that got none."""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from service.domain import Result
from service.moderation.plots import Series
from service.moderation.wording import Words
from service.store.figures import DayCount

SHADOWED = "shadowed"


class Became(StrEnum):
    """The results of an answer, and all that got none."""

    ANSWERED = Result.ANSWERED
    ABSTAINED = Result.ABSTAINED
    GATED = Result.GATED
    HELPED = Result.HELPED
    FAILED = Result.FAILED
    SKIPPED = "skipped"


_FILLS = {
    Became.ANSWERED: "good",
    Became.ABSTAINED: "warn",
    Became.GATED: "accent",
    Became.HELPED: "cool",
    Became.FAILED: "bad",
    Became.SKIPPED: "edge",
}


def became(one: DayCount) -> Became:
    """The kind of an outcome; one of another version of the program counts as skipped."""
    known = one.word != Became.SKIPPED and one.of in list(Became)
    return Became(one.of) if known else Became.SKIPPED


def outcome_series(words: Words, found: Iterable[DayCount], days: Sequence[str]) -> list[Series]:
    """A series for each kind, with its count on each of these days."""
    counts: Counter[tuple[str, str]] = Counter()
    for one in found:
        counts[became(one), one.day] += one.count
    return [
        Series(words(f"common.became_{kind}"), _FILLS[kind], [counts[kind, day] for day in days]) for kind in Became
    ]
