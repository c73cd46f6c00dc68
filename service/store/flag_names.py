"""Which switches there are, and what each may be: names, values, and the state they make together."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from service.answer.ports import AnsweringMode, Flags
from service.domain import CategoryId
from service.errors import Misconfigured, Rejected

MODES = tuple(mode.value for mode in AnsweringMode)
OFF_OR_ON = ("off", "on")
ALLOWED: dict[str, tuple[str, ...]] = {
    "answering": MODES,
    "posts_pipeline": OFF_OR_ON,
    "input_gate": OFF_OR_ON,
    "private_messages": OFF_OR_ON,
}
"""The switches of the whole forum, all off until they are set."""

EMBEDDING_PROFILE = "embedding_profile"
"""Whose vectors answer: the name of a profile; until it is set, that of models.embedder."""

DEFAULT = "default"
"""The value that takes a switch or limit of a category or group, or a profile, away again."""

MAX_PER_HOUR = 100_000
_SCOPED = re.compile(
    r"category:(?P<category>[1-9][0-9]{0,17})(?P<limit>:per_hour)?|group:(?P<group>[\w.-]{1,100}):per_hour"
)
_NUMBER = re.compile(r"[0-9]{1,6}")
_PROFILE = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,300}/-?[0-9]{1,10}\.-?[0-9]{1,10}")

FORMS = f"{', '.join(ALLOWED)}, {EMBEDDING_PROFILE}, category:ID, category:ID:per_hour, group:NAME:per_hour"
"""How a name is written, for people."""


class Scope(StrEnum):
    CATEGORY = "category"
    CATEGORY_LIMIT = "category_limit"
    GROUP_LIMIT = "group_limit"


@dataclass(frozen=True, slots=True)
class Scoped:
    """A switch or limit of one category (by its id) or group (by its name)."""

    scope: Scope
    of: str


def scoped(name: str) -> Scoped | None:
    """What a name is about, when it is a category's or a group's."""
    found = _SCOPED.fullmatch(name)
    if found is None:
        return None
    if group := found["group"]:
        return Scoped(Scope.GROUP_LIMIT, group)
    return Scoped(Scope.CATEGORY_LIMIT if found["limit"] else Scope.CATEGORY, found["category"])


def allowed(name: str) -> tuple[str, ...] | None:
    """The values of a switch, or None for a limit, which is a number, and the profile; else raises Rejected (422)."""
    if name in ALLOWED:
        return ALLOWED[name]
    if name == EMBEDDING_PROFILE:
        return None
    about = scoped(name)
    if about is None:
        raise Rejected(f"there is no flag {name[:100]!r}: {FORMS}", status=422)
    return (DEFAULT, *MODES) if about.scope is Scope.CATEGORY else None


def check(name: str, value: str) -> None:
    """Raise Rejected (422) unless this switch may have this value."""
    values = allowed(name)
    if name == EMBEDDING_PROFILE:
        if value != DEFAULT and not _PROFILE.fullmatch(value):
            raise Rejected(f"{name} can't be {value[:100]!r}: {DEFAULT}, or MODEL/STRATEGY.VERSION", status=422)
    elif values is None:
        if value != DEFAULT and not (_NUMBER.fullmatch(value) and int(value) <= MAX_PER_HOUR):
            raise Rejected(f"{name} can't be {value[:100]!r}: {DEFAULT}, or 0 to {MAX_PER_HOUR}", status=422)
    elif value not in values:
        raise Rejected(f"{name} can't be {value[:100]!r}: {', '.join(values)}", status=422)


def limits_of(flags: Flags) -> list[tuple[str, str]]:
    """The names and values of all that is set for single categories and groups, in order."""
    return [
        *((f"category:{of}", mode.value) for of, mode in sorted(flags.categories.items())),
        *((f"category:{of}:per_hour", str(limit)) for of, limit in sorted(flags.category_per_hour.items())),
        *((f"group:{of}:per_hour", str(limit)) for of, limit in sorted(flags.group_per_hour.items())),
    ]


def state(rows: Iterable[tuple[str, str]], signature: str) -> Flags:
    """The switches that these names and values make; raises Misconfigured for one that we don't know."""
    values = dict.fromkeys(ALLOWED, "off")
    parts: Mapping[Scope, dict[str, str]] = {scope: {} for scope in Scope}
    for name, value in rows:
        try:
            check(name, value)
        except Rejected as exc:
            raise Misconfigured(f"the flag {name} holds {value!r}: set it anew ({exc})") from exc
        if value == DEFAULT:
            continue
        if about := scoped(name):
            parts[about.scope][about.of] = value
        else:
            values[name] = value
    return Flags(
        answering=AnsweringMode(values["answering"]),
        posts_pipeline=values["posts_pipeline"] == "on",
        input_gate=values["input_gate"] == "on",
        private_messages=values["private_messages"] == "on",
        signature=signature,
        embedding_profile=values.get(EMBEDDING_PROFILE, ""),
        categories={CategoryId(int(of)): AnsweringMode(value) for of, value in parts[Scope.CATEGORY].items()},
        category_per_hour={CategoryId(int(of)): int(value) for of, value in parts[Scope.CATEGORY_LIMIT].items()},
        group_per_hour={of: int(value) for of, value in parts[Scope.GROUP_LIMIT].items()},
    )
