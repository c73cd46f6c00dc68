"""What condensing gives, and the condenser that needs no model."""

from dataclasses import dataclass, field
from typing import Protocol

from service.answer.condense.rules import condense
from service.domain import Before, Post, Question, Spent


@dataclass(frozen=True, slots=True)
class Condensed:
    """The question in full, empty where the message stands alone; `by` what wrote it, `spent` what that took."""

    text: str = ""
    by: str = ""
    spent: Spent = field(default_factory=Spent)
    notes: tuple[str, ...] = ()


class Threads(Protocol):
    async def before(self, post: Post, humans: int) -> Before:
        """The last `humans` public posts by humans before this one in its topic, with our replies between them."""
        ...


class Condenser(Protocol):
    async def condense(self, question: Question) -> Condensed:
        """The question with what it leans on; the same for the same message and turns. It never raises."""
        ...


class RuleCondenser:
    """Condenser by rules alone."""

    async def condense(self, question: Question) -> Condensed:
        text = condense(question.text, question.history)
        return Condensed(text, "rules") if text else Condensed()
