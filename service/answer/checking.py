"""What checking a draft works with and gives, apart from the check itself, which is slow to import."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from service.answer.ports import Answerer, SentenceEmbedder
from service.domain import Draft, Question, Source, Spent


class DraftFault(StrEnum):
    """Why a draft fails the model's check; the same words in the trace."""

    OFF_QUESTION = "off_question"
    UNSUPPORTED = "unsupported"
    REPEATS = "repeats"
    ABOUT_ITSELF = "about_itself"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the model says of a draft: its faults, what it lacks, as queries, and its unsupported sentences, from 1."""

    faults: frozenset[DraftFault]
    missing: tuple[str, ...]
    unsupported: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """A verdict, or None and why the check could not be made, which is no pass; `spent` with it."""

    verdict: Verdict | None
    spent: Spent
    not_made: str = ""


class Checker(Protocol):
    """Checks drafts with the model that writes them."""

    async def check(
        self, question: Question, draft: Draft, sentences: Sequence[str], sources: Sequence[Source]
    ) -> Checked:
        """What the model says of a draft made of these sentences; it never raises."""
        ...

    def allows(self, spent: Spent, seconds: float) -> bool:
        """Whether a call of so many seconds may still be made for a question."""
        ...


@dataclass(frozen=True, slots=True)
class Checking:
    """Who checks and who writes again; without a `checker` only the sources judge a draft."""

    answerer: Answerer
    checker: Checker | None
    embedder: SentenceEmbedder | None


@dataclass(frozen=True, slots=True)
class Written:
    """What is to be posted: the draft; without one the list of the sources, or the `limit` where two drafts failed."""

    draft: Draft | None
    sources: tuple[Source, ...]
    limit: bool = False
