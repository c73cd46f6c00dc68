"""What of a case is searched."""

from enum import StrEnum

from eval.domain import Case
from service.domain import Lang, Question


class Followups(StrEnum):
    """A follow-up is searched in full, as a perfect rewriting would give it, or by its last message alone."""

    FULL = "full"
    LAST = "last"


def asked_text(case: Case, followups: Followups, max_chars: int) -> str:
    """The text that every system searches, cut as the service cuts a question."""
    full = case.standalone if followups is Followups.FULL else None
    return (full or case.question)[:max_chars]


def question_of(case: Case, followups: Followups, max_chars: int) -> Question:
    """The case as the service sees a question."""
    text = asked_text(case, followups, max_chars)
    return Question(text, Lang(case.lang), exclude_from=case.exclude_from, history=case.history)
