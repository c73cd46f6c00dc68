"""Commands that answer one JSON object a line with one: what they read, and how a bad line ends them."""

import json
import re
import sys
from collections.abc import Callable, Iterable
from typing import TextIO, TypeVar

from pydantic import TypeAdapter, ValidationError

from service.commands.group import BAD_INPUT

L = TypeVar("L")

_NOT_UTF8 = re.compile("[\udc80-\udcff]")


def answer_lines(
    name: str, lines: Iterable[str], out: TextIO, read: Callable[[str], L], answer: Callable[[L], object]
) -> int:
    """Answer each line but the blank ones; the status is 0, or 2 after a line on stderr that says what is wrong where.

    `read` raises ValueError for a line that isn't what it should be.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            given = read(line)
        except ValueError as exc:
            print(f"{name}: line {number}: {exc}", file=sys.stderr)
            return BAD_INPUT
        json.dump(answer(given), out, ensure_ascii=True)
        out.write("\n")
    return 0


def read_line(line: str, shape: TypeAdapter[L]) -> L:
    """The line, surrogates standing for bytes that are no UTF-8, as that shape; raises ValueError: field and fault."""
    if _NOT_UTF8.search(line):
        raise ValueError("not UTF-8")
    try:
        return shape.validate_python(json.loads(line))
    except ValidationError as exc:
        fault = exc.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"] if not isinstance(part, str) or part.isidentifier())
        raise ValueError(f"{where}: {fault['msg']}" if where else str(fault["msg"])) from exc
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"not JSON: {exc}") from exc
