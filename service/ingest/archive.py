"""Read an archive: topic JSON lines (gzipped or not), categories, and vectors that were made elsewhere."""

import gzip
import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.discourse.shapes import categories_from_json, posts_of_topic_json, topic_from_json
from service.domain import Category, EmbeddingProfile, Post, Topic, TopicId, Vector
from service.errors import Rejected

MAX_LINE_BYTES = 128 * 2**20
"""Longest line of an archive: Discourse closes a topic at 10,000 posts unless told otherwise, which is about 40 MB."""

VECTOR_ARRAYS = ("profile", "topic_id", "post_number", "embedding")
_UNREADABLE = (OSError, ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)
"""What zipfile and numpy raise on a file that is damaged, encrypted, pickled, or lies about its size."""

UNIT_TOLERANCE = 2e-3
"""How far from 1 the length of a stored float16 vector may be."""


@dataclass(frozen=True, slots=True)
class ArchivedTopic:
    line: int
    topic: Topic
    posts: list[Post]


@dataclass(frozen=True, slots=True)
class GivenVectors:
    """Vectors by post: `rows[topic, post_number]` is an index into `matrix`, shape (n, dimensions)."""

    rows: dict[tuple[TopicId, int], int]
    matrix: NDArray[np.float16]

    def of(self, post: Post) -> Vector | None:
        row = self.rows.get((post.topic_id, post.post_number))
        return None if row is None else self.matrix[row].astype(np.float32)


def fingerprint(*paths: Path, terms: str) -> str:
    """SHA-256 of the files and the terms they are read under: the name under which progress on them is kept."""
    total = hashlib.sha256(terms.encode())
    for path in paths:
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def count_topics(path: Path) -> int:
    """How many lines the archive has; raises Rejected where it can't be read to its end, or a line is too long."""
    return sum(1 for _ in archive_lines(path))


def read_topics(path: Path, *, skip: int = 0) -> Iterator[ArchivedTopic]:
    """Each topic with its posts, after the first `skip` lines; raises Rejected with the line at fault."""
    for number, line in islice(archive_lines(path), skip, None):
        try:
            value = json.loads(line)
            topic = topic_from_json(value)
            yield ArchivedTopic(number, topic, posts_of_topic_json(value))
        except (ValueError, RecursionError) as exc:
            raise Rejected(f"{path}, line {number}: not a JSON object: {exc}") from exc
        except Rejected as exc:
            raise Rejected(f"{path}, line {number}: {exc}") from exc


def read_categories(path: Path) -> list[Category]:
    """The categories of a site.json or categories.json file; raises Rejected."""
    try:
        categories = categories_from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError, Rejected) as exc:
        raise Rejected(f"{path}: not a Discourse site.json: {exc}") from exc
    if not categories:
        raise Rejected(f"{path}: it names no category, so that nothing of the archive would be public")
    return categories


def read_vectors(path: Path, profile: EmbeddingProfile) -> GivenVectors:
    """Vectors made elsewhere for this profile: refused whole unless each is finite and of unit length.

    The file is an .npz of topic_id int[n], post_number int[n], embedding float16[n, dimensions] and profile, the
    name of the model (docs/interfaces: dataset folder). Raises Rejected saying what is wrong.
    """
    name, topics, numbers, matrix = _arrays(path)
    if name != profile.model:
        raise Rejected(f"{path}: vectors of {name!r}, but the embedder in use is {profile.model!r}")
    if topics.ndim != 1 or topics.dtype.kind not in "iu" or numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise Rejected(f"{path}: topic_id and post_number must be lists of whole numbers")
    if matrix.dtype.kind != "f" or matrix.ndim != 2 or matrix.shape[1] != profile.dimensions:
        raise Rejected(
            f"{path}: vectors of {matrix.dtype} in shape {matrix.shape}, expected floats (n, {profile.dimensions})"
        )
    if not len(topics) == len(numbers) == len(matrix):
        raise Rejected(f"{path}: {len(topics)} topics, {len(numbers)} post numbers and {len(matrix)} vectors")
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(matrix.astype(np.float32), axis=1)
    wrong = np.flatnonzero(~(np.abs(lengths - 1) <= UNIT_TOLERANCE))
    if wrong.size:
        raise Rejected(f"{path}: {wrong.size} vectors are not finite and of unit length, the first is row {wrong[0]}")
    rows = {(TopicId(int(t)), int(n)): i for i, (t, n) in enumerate(zip(topics, numbers, strict=True))}
    return GivenVectors(rows, matrix.astype(np.float16, copy=False))


def embedded_by(path: Path) -> str:
    """The model whose vectors the file holds; raises Rejected."""
    return _arrays(path)[0]


def _arrays(path: Path) -> tuple[str, NDArray[Any], NDArray[Any], NDArray[Any]]:
    try:
        with zipfile.ZipFile(path) as zipped:
            profile, topics, numbers, matrix = (_array(zipped, name) for name in VECTOR_ARRAYS)
    except KeyError as exc:
        raise Rejected(f"{path}: not a vectors file: it lacks one of {', '.join(VECTOR_ARRAYS)}") from exc
    except _UNREADABLE as exc:
        raise Rejected(f"{path}: not a vectors file: {exc}") from exc
    return str(profile), topics, numbers, matrix


def _array(zipped: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with zipped.open(f"{name}.npy") as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)  # a pickle could run anything
    return array


def archive_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line that is not blank, of a file gzipped or not, with its number; raises Rejected. Bounded in memory."""
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            with gzip.open(raw) if zipped else raw as file:
                number = 0
                while line := file.readline(MAX_LINE_BYTES + 1):
                    number += 1
                    if len(line) > MAX_LINE_BYTES:
                        raise Rejected(f"{path}, line {number}: longer than {MAX_LINE_BYTES:,} bytes: not a topic")
                    if line.strip():
                        yield number, line
    except (OSError, EOFError, zlib.error) as exc:
        raise Rejected(f"{path}: can't be read to its end: {exc}") from exc
