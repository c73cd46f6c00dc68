"""A row of the fallback table: which part fails how, and all that is then seen of it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from service.domain import Mode, Zone
from service.settings import Settings
from service.settings.models import WhenDown


class Part(StrEnum):
    EMBEDDER = "embedder"
    RERANKER = "reranker"
    MODEL = "model"
    FORUM = "forum"
    DATABASE = "database"


class Fault(StrEnum):
    """The first seven can befall any server, the others the database."""

    REFUSES = "refuses connections"
    HANGS = "hangs"
    TOO_MANY = "answers 429"
    ERROR = "answers 500"
    GARBAGE = "answers garbage"
    DRIPS = "drips slowly"
    DIES = "is right, then dies"
    LOCKED = "hangs on a lock"
    FULL = "has too many connections"
    READ_ONLY = "is read-only"
    TERMINATED = "ends a session in mid-transaction"
    COMMIT_LOST = "dies after COMMIT was sent"
    OLD_SCHEMA = "has too old a schema"
    SEARCH = "hangs in a search of vectors"


@dataclass(frozen=True, slots=True)
class Counted:
    """A sample of the metrics pages that grows; a label with several values, parted by |, means any of them."""

    name: str
    labels: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        labels = ", ".join(f'{name}{"=~" if "|" in value else "="}"{value}"' for name, value in self.labels)
        return f"`{self.name}{{{labels}}}`"


@dataclass(frozen=True, slots=True)
class Bound:
    """Seconds by the settings, and what they are made of."""

    seconds: Callable[[Settings], float]
    made_of: str


@dataclass(frozen=True, slots=True)
class Fallback:
    """One row. `notes` stand in the trace; `mode` and `best_zone` are of an answer given in spite of the fault.

    `up` is what `ariane_part_up` shows of the part meanwhile. `within` bounds what the fault adds to the answer while
    it lasts; where nothing is answered meanwhile (`waits`), how soon after its end the answer comes.
    """

    part: Part
    fault: Fault
    member: str
    posted: str
    retried: str
    recorded: str
    counted: tuple[Counted, ...]
    within: Bound
    notes: tuple[str, ...] = ()
    mode: Mode = Mode.RERANKED
    best_zone: Zone = Zone.NORMAL
    up: bool = False
    when_down: WhenDown | None = None
    """The setting under which the row holds, where it depends on it."""

    @property
    def waits(self) -> bool:
        """Without forum or database nothing is answered; without a part of the search it is, and the trace notes it."""
        return self.part in (Part.FORUM, Part.DATABASE) and not self.notes
