"""Where a setting that can't be used was read: in the file, or in which environment variable."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import ErrorDetails

PREFIX = "ARIANE_"
DELIMITER = "__"
"""Between the names of a section and of its setting, in a variable."""

Place = Sequence[int | str]


def listed(
    faults: Sequence[ErrorDetails], *, path: Path | None, values: Mapping[str, Any], environment: Mapping[str, str]
) -> str:
    """All faults in one line, by what they are in; `values` are those of the file at `path`."""
    by_source: dict[str, list[str]] = {}
    for fault in faults:
        place = fault["loc"]
        source = source_of(place, path=path, values=values, environment=environment)
        by_source.setdefault(source, []).append(f"{'.'.join(map(str, place))}: {fault['msg']}")
    return "; ".join(f"{source}: {'; '.join(said)}" for source, said in by_source.items())


def source_of(place: Place, *, path: Path | None, values: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """The variable that gives the value at this place, else the file that does.

    Of a section that is given in parts, all that give one. Names of variables are read in any case, as Settings does.
    """
    given = {name.upper(): text for name, text in environment.items() if name.upper().startswith(PREFIX)}
    for end in range(len(place), 0, -1):
        name = variable(place[:end])
        if name in given and _holds(_read(given[name]), place[end:]):
            return name
    sources = [str(path)] if path is not None and _holds(values, place) else []
    sources += sorted(name for name in given if name.startswith(variable(place) + DELIMITER))
    return ", ".join(sources) or str(path or "environment")


def variable(place: Place) -> str:
    """The name of the variable for the setting at this place."""
    return PREFIX + DELIMITER.join(map(str, place)).upper()


def _holds(value: Any, place: Place) -> bool:
    """Whether this value gives the one at that place below it; what is not a section gives, or spoils, all below."""
    for name in place:
        if not isinstance(value, Mapping):
            return True
        if name not in value:
            return False
        value = value[name]
    return True


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # a plain text
        return text
