"""The archive of a dataset line by line, with what only evaluation reads of it: accepted answers. Bounded in memory."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.datasets.parsing import one_line
from service.discourse.shapes import posts_of_topic_json, topic_from_json
from service.domain import Post, Topic
from service.errors import Rejected
from service.ingest.archive import archive_lines


@dataclass(frozen=True, slots=True)
class ReadTopic:
    """A topic, its posts by number, and the numbers of those accepted as its answer."""

    topic: Topic
    posts: tuple[Post, ...]
    accepted: tuple[int, ...]


def read_archive(path: Path) -> Iterator[ReadTopic]:
    """Each topic of the archive, gzipped or not; raises Rejected with the line at fault."""
    for number, line in archive_lines(path):
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
