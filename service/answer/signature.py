"""The signature of a configuration: canonical JSON of all that decides an answer, hashed part by part (spec A4)."""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

from service.answer.evidence import excerpt
from service.domain import Part, Signature
from service.domain.runs import Value
from service.lexer import query_lexemes

_DIGEST = re.compile(r"[0-9a-f]{64}")
_TEMPLATE_COMMENT = re.compile(r"\{#.*?#\}\n?", re.DOTALL)
_SAMPLE = (
    "Rain came early this year. The tomatoes in the long bed took brown spots within a week, and leaves fell.\n"
    "I cut them off. Two plants in pots under the roof stayed clean! Was it the water on the leaves? "
    "A neighbour sprays copper every ten days, others swear by wider rows and air between the plants, and one old man "
    "says that nothing helps once the spots are there, so he sows again and hopes for a dry August which never comes."
)
_SAMPLE_QUESTION = "Does copper help tomatoes in pots against spots?"
_SAMPLE_CHARS = (90, 140, 260)


def sign(parts: Mapping[str, object]) -> Signature:
    """The signature of these parts: dataclasses, mappings and plain values, in any order of their names.

    Raises TypeError for what has no canonical form, ValueError for a number that isn't finite.
    """
    named = {name: _part(value) for name, value in sorted(parts.items())}
    return Signature(digest({name: part.sha256 for name, part in named.items()}), named)


def digest(value: object) -> str:
    """SHA-256 (hex) of a value's canonical JSON: what is equal has the same on every machine."""
    plain = json.dumps(_leaves(value), separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(plain.encode()).hexdigest()


def template_digest(text: str) -> str:
    """The digest of a template as a model reads it: without its comments and the ends of its lines."""
    lines = _TEMPLATE_COMMENT.sub("", text).split("\n")
    return digest("\n".join(line.rstrip() for line in lines).strip("\n"))


def excerpt_rule() -> str:
    """What the excerpt rule makes of a sample: changes when the rule does, not when its code is only rewritten."""
    wanted = query_lexemes(_SAMPLE_QUESTION)
    return digest([excerpt(_SAMPLE, wanted, chars) for chars in _SAMPLE_CHARS])


def differences(then: Signature, now: Signature) -> tuple[str, ...]:
    """What changed between two configurations, a line each: "retrieval.candidates 25 -> 30", "prompts.role.en.j2"."""
    before, after = (
        {f"{name}.{key}": value for name, part in one.parts.items() for key, value in part.values.items()}
        for one in (then, now)
    )
    changed = sorted(name for name in before.keys() | after.keys() if _of(before, name) != _of(after, name))
    return tuple(_line(name, _of(before, name), _of(after, name)) for name in changed)


def _of(values: Mapping[str, Value], name: str) -> Value:
    return values.get(name, "(none)")


def _line(name: str, before: Value, after: Value) -> str:
    if any(_DIGEST.fullmatch(str(value)) for value in (before, after)):
        return name
    return f"{name} {before} -> {after}"


def _part(value: object) -> Part:
    return Part(dict(_leaves(value)), digest(value))


def _leaves(value: object) -> list[tuple[str, Value]]:
    """The plain values in it with their dotted names, in one order; an empty collection is one of them."""
    return sorted(_unordered(value), key=lambda leaf: (leaf[0], repr(leaf[1])))


def _unordered(value: object, name: str = "") -> Iterator[tuple[str, Value]]:
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, str | bool | int | float):
        yield name, value
        return
    inner = _items(value)
    if not inner and name:
        yield name, None
    for key, item in inner:
        yield from _unordered(item, f"{name}.{key}" if name else key)


def _items(value: object) -> list[tuple[str, object]]:
    if is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        return [(str(key), item) for key, item in value.items()]
    if isinstance(value, frozenset | set):
        value = sorted(value, key=str)
    if isinstance(value, Collection) and not isinstance(value, bytes):
        return [(str(n), item) for n, item in enumerate(value)]
    raise TypeError(f"{type(value).__name__} has no canonical form")
