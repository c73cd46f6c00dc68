"""What a system under test is."""

from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

from eval.domain import Case, Retrieved

DEPTH = 100
"""Posts a system lists, where that many are found: enough for 25 topics."""


class System(Protocol):
    """Finds posts for a case: at most DEPTH, best first; equal scores go to the lower topic id, then post number.

    What the case excludes is not among them. Raises Transient when a part that the system needs is down: a system
    never measures as another one.
    """

    @property
    def name(self) -> str: ...
    @property
    def switches(self) -> Mapping[str, object]:
        """What sets it apart, for the run's record."""
        ...

    def rank(self, case: Case) -> Coroutine[Any, Any, Retrieved]: ...
