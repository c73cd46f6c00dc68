"""The edge of a dataset: YAML lists and JSON lines of bounded size, each item checked, faults told in one line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from service.errors import Rejected

MAX_FILE_BYTES = 64 * 2**20
MAX_LINE_BYTES = 2**20
MAX_ITEMS = 20_000
MAX_TEXT_CHARS = 100_000
"""More than the longest post of a forum (Discourse allows 32,000 characters, 150,000 at most)."""

_MAX_FAULT_CHARS = 300

Name = Annotated[str, StringConstraints(pattern=r"^[\w.:/+-]{1,100}$")]
"""An id or a slice: no white space, since a run file separates its columns by it."""

Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT_CHARS)]
Line = Annotated[str, StringConstraints(max_length=2_000)]
TopicNumber = Annotated[int, Field(ge=1, lt=2**63)]
PostNumber = Annotated[int, Field(ge=1, lt=2**31)]


class Entry(BaseModel):
    """An item of a file: a key we don't know is a fault, since it is most often a misspelt one that we do."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Turn(Entry):
    """One earlier message of the conversation."""

    role: Literal["user", "bot"]
    text: Text


def _as_list(value: object) -> object:
    return [] if value is None else value


History = Annotated[list[Turn], BeforeValidator(_as_list), Field(max_length=50)]
"""Earlier turns, oldest first; absent or null: none."""

E = TypeVar("E", bound=BaseModel)


def read_yaml(path: Path) -> Any:
    """The one document of a YAML file; raises Rejected with the line at fault."""
    text = read_text(path)
    try:
        return yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as exc:
        where = f", line {exc.problem_mark.line + 1}" if exc.problem_mark else ""
        raise Rejected(f"{path}{where}: not YAML: {exc.problem or exc.context}") from exc
    except (yaml.YAMLError, ValueError, RecursionError) as exc:  # ValueError: a date or number that is none
        raise Rejected(f"{path}: not YAML: {one_line(exc)}") from exc


def yaml_items(path: Path, model: type[E]) -> Iterator[tuple[str, E]]:
    """Each item of a YAML list with the words that say where it is; raises Rejected at the first bad one."""
    listed = read_yaml(path)
    if not isinstance(listed, list):
        raise Rejected(f"{path}: expected a list, found {_kind(listed)}")
    _bound(path, len(listed))
    for number, value in enumerate(listed, start=1):
        where = f"{path}, item {number}{_named(value)}"
        yield where, checked(value, model, where)


def json_items(path: Path, model: type[E]) -> Iterator[tuple[str, E]]:
    """Each line of a JSON lines file with the words that say where it is; raises Rejected at the first bad one."""
    count = 0
    with _opened(path).open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            where = f"{path}, line {number}"
            if len(line) > MAX_LINE_BYTES:
                raise Rejected(f"{where}: longer than {MAX_LINE_BYTES:,} bytes")
            if not line.strip():
                continue
            count += 1
            _bound(path, count)
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as exc:
                raise Rejected(f"{where}: not JSON: {one_line(exc)}") from exc
            yield where, checked(value, model, where)


def checked(value: object, model: type[E], where: str) -> E:
    """`value` as this model; raises Rejected naming the first field at fault."""
    try:
        return model.model_validate(value)
    except ValidationError as exc:
        fault = exc.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(part) for part in fault["loc"])
        raise Rejected(one_line(f"{where}{', ' if field else ''}{field}: {fault['msg']}")) from exc
    except RecursionError as exc:
        raise Rejected(f"{where}: nested too deeply") from exc


def read_text(path: Path) -> str:
    """A file of bounded size as text; raises Rejected."""
    try:
        return _opened(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        raise Rejected(f"{path}: not UTF-8 text: {exc}") from exc


def one_line(text: object) -> str:
    """`text` on one line, and short."""
    flat = " ".join(str(text).split())
    return flat if len(flat) <= _MAX_FAULT_CHARS else flat[: _MAX_FAULT_CHARS - 1] + "…"


def _opened(path: Path) -> Path:
    try:
        size = path.stat().st_size
    except OSError as exc:
        raise Rejected(f"{path}: can't be read: {exc.strerror}") from exc
    if size > MAX_FILE_BYTES:
        raise Rejected(f"{path}: {size:,} bytes, more than {MAX_FILE_BYTES:,}")
    return path


def _bound(path: Path, items: int) -> None:
    if items > MAX_ITEMS:
        raise Rejected(f"{path}: more than {MAX_ITEMS:,} items")


def _named(value: object) -> str:
    name = value.get("id") if isinstance(value, dict) else None
    return f" ({one_line(name)})" if isinstance(name, str | int) else ""


def _kind(value: object) -> str:
    return {dict: "a mapping", type(None): "nothing"}.get(type(value), "something else")
