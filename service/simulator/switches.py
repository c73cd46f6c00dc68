"""The forum's misbehaviours, set at run time: what goes wrong, for which requests, how often."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any


class Fault(StrEnum):
    """What can go wrong: the first five with REST answers, one with posting, the others with webhooks."""

    SLOW = "slow"
    STATUS = "status"
    GARBAGE = "garbage"
    TRUNCATED = "truncated"
    LOST = "lost"
    ENQUEUE = "enqueue"
    HOOK_DROP = "hook_drop"
    HOOK_DOUBLE = "hook_double"
    HOOK_SHUFFLE = "hook_shuffle"
    HOOK_FORGE = "hook_forge"
    HOOK_DELAY = "hook_delay"

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS: dict[Fault, str] = {
    Fault.SLOW: "a REST answer waits this many seconds",
    Fault.STATUS: "a REST request gets this status and is not carried out",
    Fault.GARBAGE: "a REST answer is carried out and says 200, but is no JSON",
    Fault.TRUNCATED: "a REST answer is carried out and breaks off in the middle",
    Fault.LOST: "a REST request is carried out, then the connection closes without an answer",
    Fault.ENQUEUE: "a new post waits for a moderator's approval",
    Fault.HOOK_DROP: "a webhook is never sent",
    Fault.HOOK_DOUBLE: "a webhook is sent twice",
    Fault.HOOK_SHUFFLE: "a webhook waits a random time up to this many seconds, so that order is lost",
    Fault.HOOK_FORGE: "a webhook carries a wrong signature",
    Fault.HOOK_DELAY: "a webhook waits this many seconds",
}


class Body(StrEnum):
    """What the body of a `status` fault looks like."""

    JSON = "json"
    HTML = "html"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Switch:
    """One fault that is on. Empty `method` and `path` match all; `path` is a prefix; `times` None is for ever."""

    id: int
    fault: Fault
    method: str = ""
    path: str = ""
    times: int | None = None
    status: int = 500
    body: Body = Body.JSON
    seconds: float = 1.0
    retry_after_seconds: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Switches:
    """The faults that are on, oldest first."""

    def __init__(self) -> None:
        self._on: list[Switch] = []
        self._last = 0

    def __iter__(self) -> Iterator[Switch]:
        return iter(tuple(self._on))

    def turn_on(self, fault: Fault, **options: Any) -> Switch:
        """Add a fault; options are those of Switch. Raises TypeError or ValueError for options that don't fit."""
        self._last += 1
        switch = Switch(self._last, fault, **options)
        self._on.append(switch)
        return switch

    def turn_off(self, switch_id: int | None = None) -> None:
        """Remove one fault, or all."""
        self._on = [] if switch_id is None else [s for s in self._on if s.id != switch_id]

    def take(self, fault: Fault, *, method: str = "", path: str = "") -> Switch | None:
        """The first switch of this fault that fits the request, used up by one."""
        for i, switch in enumerate(self._on):
            if switch.fault is fault and switch.method in {"", method} and path.startswith(switch.path):
                if switch.times is not None:
                    left = replace(switch, times=switch.times - 1)
                    self._on[i : i + 1] = [left] if left.times else []
                return switch
        return None


_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "method": lambda value: str(value).upper(),
    "path": str,
    "times": int,
    "status": int,
    "body": Body,
    "seconds": float,
    "retry_after_seconds": int,
}


def switch_from_json(switches: Switches, values: Mapping[str, Any]) -> Switch:
    """Turn on what a JSON object or a form asks for; raises ValueError that says what is wrong."""
    unknown = values.keys() - _OPTIONS.keys() - {"fault"}
    if unknown:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    given = {key: value for key, value in values.items() if value not in ("", None)}
    fault = Fault(given.get("fault", ""))
    options = {name: read(given[name]) for name, read in _OPTIONS.items() if name in given}
    if not 400 <= options.get("status", 400) <= 599:
        raise ValueError("status must be between 400 and 599")
    if not 0 <= options.get("seconds", 0) <= 600:
        raise ValueError("seconds must be between 0 and 600")
    if options.get("times", 1) < 1:
        raise ValueError("times must be at least 1")
    return switches.turn_on(fault, **options)
