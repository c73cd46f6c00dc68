"""The moderators' switches, as answering reads them at the moment of use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from service.domain import CategoryId


class AnsweringMode(StrEnum):
    """What becomes of an answer; each mode does less than the next."""

    OFF = "off"
    SHADOW = "shadow"
    ON = "on"


_MODES = tuple(AnsweringMode)


@dataclass(frozen=True, slots=True)
class Flags:
    """The switches moderators turn at run time, read at the moment of use.

    `signature` is of the configuration that posts_pipeline was switched on under: empty when off, or not known.
    `embedding_profile` is the name of the one whose vectors answer: empty for that of models.embedder.
    `categories` hold back what `answering` allows; the limits are answers an hour, in a whole category and to each
    member of a group.
    """

    answering: AnsweringMode = AnsweringMode.OFF
    posts_pipeline: bool = False
    input_gate: bool = False
    private_messages: bool = False
    signature: str = ""
    embedding_profile: str = ""
    categories: Mapping[CategoryId, AnsweringMode] = field(default_factory=dict)
    category_per_hour: Mapping[CategoryId, int] = field(default_factory=dict)
    group_per_hour: Mapping[str, int] = field(default_factory=dict)

    def answering_in(self, category_id: CategoryId | None) -> AnsweringMode:
        """What becomes of answers in this category: what `answering` says, unless its own switch allows less."""
        own = AnsweringMode.ON if category_id is None else self.categories.get(category_id, AnsweringMode.ON)
        return min(self.answering, own, key=_MODES.index)


class FlagReader(Protocol):
    async def read(self) -> Flags: ...
