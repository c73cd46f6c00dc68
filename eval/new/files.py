"""Writes the files of a dataset, the same bytes for the same content."""

import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from eval.datasets.labels import Found


@contextmanager
def topic_lines(path: Path) -> Iterator[Callable[[str], object]]:
    """Write one topic JSON a line, gzipped without the time or a name."""
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as zipped,
        io.TextIOWrapper(zipped, encoding="utf-8", newline="\n") as text,
    ):
        yield lambda line: text.write(f"{line}\n")


def write_found(path: Path, labels: Iterable[Found]) -> int:
    """Write natural labels, one a line; how many. Nothing is written when there are none."""
    lines = [json.dumps(one.model_dump(), ensure_ascii=False) for one in labels]
    if lines:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)
