"""What of a case is searched."""

from dataclasses import replace
from enum import StrEnum

from eval.domain import Case
from service.answer.condense.rules import condense
from service.domain import Lang, Question


class Followups(StrEnum):
    """How a follow-up is searched.

    In full, as a perfect rewriting would give it; by its last message alone; or condensed by the service's rules, both
    queries fused (baselines search the condensed one).
    """

    FULL = "full"
    LAST = "last"
    CONDENSED = "condensed"


def asked_text(case: Case, followups: Followups, max_chars: int) -> str:
    """The one text that baselines search, and candidates are scored by."""
    return question_of(case, followups, max_chars).scored


def question_of(case: Case, followups: Followups, max_chars: int) -> Question:
    """The case as the service sees a question, cut as the service cuts it."""
    full = case.standalone if followups is Followups.FULL else None
    text = (full or case.question)[:max_chars]
    question = Question(text, Lang(case.lang), exclude_from=case.exclude_from, history=case.history)
    if followups is Followups.CONDENSED and case.history:
        return replace(question, condensed=condense(text, case.history))
    return question
