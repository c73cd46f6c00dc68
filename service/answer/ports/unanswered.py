"""The questions that stayed without an answer, as putting the same ones together needs them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from service.domain import PostId, Vector


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A kept question; its vector is of the profile that was asked for, None where there is none yet."""

    post_id: PostId
    question: str
    vector: Vector | None
    group_id: PostId | None


class UnansweredQuestions(Protocol):
    """The kept questions."""

    async def collect(self) -> None:
        """Keep the questions of answers that came to nothing since."""
        ...

    async def all(self, profile: str) -> list[Unanswered]:
        """Every question, the first asked first, with vectors of this profile."""
        ...

    async def put(self, questions: Sequence[Unanswered], profile: str) -> None:
        """Store the groups and vectors of these questions."""
        ...
