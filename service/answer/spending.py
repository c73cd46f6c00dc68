"""Keeps what one question uses up of its model calls and their time, so that another answer to it begins from there."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from service.answer.checking import Checked, Checker
from service.answer.pipeline import Stages
from service.answer.ports import Answerer
from service.domain import Draft, Question, Source, Spent, Zone


@dataclass(slots=True)
class Spending:
    """What the question has used up so far, with all that stages made by `counted` did for it."""

    spent: Spent
    clock: Callable[[], float] = time.monotonic

    def counted(self, stages: Stages) -> Stages:
        """The stages, whose drafts and checks count."""
        checker = stages.checker and _CountedChecker(stages.checker, self)
        return replace(stages, answerer=_CountedAnswerer(stages.answerer, self), checker=checker)


@dataclass(frozen=True, slots=True)
class _CountedAnswerer:
    answerer: Answerer
    spending: Spending

    async def draft(self, question: Question, sources: Sequence[Source], zone: Zone) -> Draft:
        before, started = question.spent, self.spending.clock()
        told = Spent()
        try:
            draft = await self.answerer.draft(question, sources, zone)
            told = draft.spent
            return draft
        finally:
            # A model that failed, and what stood in for it, tell nothing: the time went by, and a call was made.
            seconds = before.seconds + self.spending.clock() - started
            self.spending.spent = Spent(max(told.calls, before.calls + 1), max(told.seconds, seconds))


@dataclass(frozen=True, slots=True)
class _CountedChecker:
    checker: Checker
    spending: Spending

    async def check(
        self, question: Question, draft: Draft, sentences: Sequence[str], sources: Sequence[Source]
    ) -> Checked:
        found = await self.checker.check(question, draft, sentences, sources)
        self.spending.spent = found.spent
        return found

    def allows(self, spent: Spent, seconds: float) -> bool:
        return self.checker.allows(spent, seconds)
