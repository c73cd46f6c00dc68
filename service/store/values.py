"""What Postgres can hold of what we are given: no NUL, no lone surrogate, no NaN in JSON."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from numbers import Integral, Real

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def storable(text: str) -> str:
    """The text with U+FFFD in place of each character that Postgres refuses."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def to_json(value: object) -> Json:
    """Our dataclasses, enums, times and numpy numbers as JSON values; a number that isn't finite becomes null.

    Raises TypeError for a type that none of our dataclasses holds.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return to_json(value.value)
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {storable(str(key)): to_json(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [to_json(item) for item in value]
    raise TypeError(f"{type(value).__name__} can't be stored as JSON")
