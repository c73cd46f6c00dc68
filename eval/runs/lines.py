"""JSON lines of a run, one a case: appended as the run goes, read back whole or not at all."""

from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError

from service.errors import Rejected

MAX_LINE_BYTES = 4 * 2**20

T = TypeVar("T")


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    """Reads a list of one: the configuration of a list holds for the dataclasses in it."""
    return TypeAdapter(tuple[kind], config=ConfigDict(allow_inf_nan=False))


@cache
def _writer(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def as_line(item: object) -> bytes:
    """One dataclass as a line of JSON; floats come back as they were."""
    kind: Any = type(item)
    return _writer(kind).dump_json(item) + b"\n"


def read_lines(path: Path, kind: type[T]) -> list[T]:
    """The items of a file in its order, none when there is no file; raises Rejected with the line at fault.

    A last line without its end was cut by a kill, and is no item.
    """
    if not path.exists():
        return []
    found = []
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), start=1):
            where = f"{path}, line {number}"
            if len(line) > MAX_LINE_BYTES:
                raise Rejected(f"{where}: longer than {MAX_LINE_BYTES:,} bytes")
            if line.endswith(b"\n"):
                found.append(_item(line, kind, where))
    return found


def cut_to_whole_lines(path: Path) -> None:
    """Drop what a kill left of a last line, so that the next one starts on its own."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = file.seek(0, 2)
        kept = 0
        for start in range(max(0, end - 2 * MAX_LINE_BYTES), end, MAX_LINE_BYTES):
            file.seek(start)
            last = file.read(MAX_LINE_BYTES).rfind(b"\n")
            if last >= 0:
                kept = start + last + 1
        file.truncate(kept)


def _item(line: bytes, kind: type[T], where: str) -> T:
    try:
        (item,) = _reader(cast("Any", kind)).validate_json(b"[%b]" % line)
    except ValidationError as exc:
        fault = exc.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(map(str, fault["loc"][1:]))
        raise Rejected(f"{where}{', ' if field else ''}{field}: {' '.join(fault['msg'].split())}") from exc
    return cast("T", item)
