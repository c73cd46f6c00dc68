"""The archive of a dataset line by line, with what only evaluation reads of it: accepted answers. Bounded in memory."""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.datasets.parsing import one_line
from service.discourse.shapes import posts_of_topic_json, topic_from_json
from service.domain import Post, Topic
from service.errors import Rejected

MAX_TOPIC_BYTES = 256 * 2**20
"""A topic of 10,000 posts is some 30 MB; what is longer than this is no topic."""


@dataclass(frozen=True, slots=True)
class ReadTopic:
    """A topic, its posts by number, and the numbers of those accepted as its answer."""

    topic: Topic
    posts: tuple[Post, ...]
    accepted: tuple[int, ...]


def read_archive(path: Path) -> Iterator[ReadTopic]:
    """Each topic of the archive, gzipped or not; raises Rejected with the line at fault."""
    for number, line in _lines(path):
        where = f"{path}, line {number}"
        try:
            value = json.loads(line)
            topic = topic_from_json(value)
            posts = sorted(posts_of_topic_json(value), key=lambda post: post.post_number)
        except (ValueError, RecursionError) as exc:
            raise Rejected(f"{where}: not JSON: {one_line(exc)}") from exc
        except Rejected as exc:
            raise Rejected(f"{where}: {exc}") from exc
        yield ReadTopic(topic, tuple(posts), _accepted(value))


def _accepted(topic: dict[str, Any]) -> tuple[int, ...]:
    """Discourse's solved plugin marks the post, and on the topic says which one it is; either may be missing."""
    marked = {
        post["post_number"] for post in topic["post_stream"].get("posts") or () if post.get("accepted_answer") is True
    }
    answer = topic.get("accepted_answer")
    number = answer.get("post_number") if isinstance(answer, dict) else None
    if isinstance(number, int) and not isinstance(number, bool):
        marked.add(number)
    return tuple(sorted(marked))


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            with gzip.open(raw) if zipped else raw as file:
                number = 0
                while line := file.readline(MAX_TOPIC_BYTES + 1):
                    number += 1
                    if len(line) > MAX_TOPIC_BYTES:
                        raise Rejected(f"{path}, line {number}: longer than {MAX_TOPIC_BYTES:,} bytes")
                    if line.strip():
                        yield number, line
    except (OSError, EOFError, zlib.error) as exc:
        raise Rejected(f"{path}: can't be read to its end: {one_line(exc)}") from exc
