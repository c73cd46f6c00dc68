"""Titles and first words of the posts that a report names, from the archive of its dataset."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from eval.datasets import Dataset
from eval.datasets.archive import read_archive
from service.discourse.cooked import plain_text

EXCERPT_CHARS = 240

Key = tuple[int, int | None]
"""A topic, and the number of a post of it: None stands for its first post."""


@dataclass(frozen=True, slots=True)
class Told:
    """A topic's title, and how one of its posts begins; empty where the archive doesn't have it."""

    title: str = ""
    excerpt: str = ""


def told_posts(
    dataset: Dataset, wanted: Iterable[Key], progress: Callable[[str, int, int], None] = lambda *_: None
) -> dict[Key, Told]:
    """What is told of each wanted post; nothing of those that the archive lacks. Raises Rejected for a broken one."""
    by_topic: dict[int, set[int | None]] = {}
    for topic, number in wanted:
        by_topic.setdefault(topic, set()).add(number)
    if not by_topic or not {"topics.jsonl.gz", "topics.jsonl"} & dataset.files.keys():
        return {}
    found: dict[Key, Told] = {}
    left = len(by_topic)
    progress("titles", 0, left)
    for read in read_archive(dataset.topics):
        numbers = by_topic.pop(read.topic.id, None)
        if numbers is None:
            continue
        title = read.topic.title
        found |= {(read.topic.id, number): Told(title) for number in numbers}
        for post in read.posts:
            number = post.post_number
            for key in {number, None if number == 1 else number} & numbers:
                found[read.topic.id, key] = Told(title, shortened(plain_text(post.cooked), EXCERPT_CHARS))
        progress("titles", left - len(by_topic), left)
        if not by_topic:
            break
    return found


def shortened(text: str, chars: int) -> str:
    """The text in one line, cut at a word with an ellipsis."""
    line = " ".join(text[: 20 * chars].split())
    return line if len(line) <= chars else line[:chars].rsplit(" ", 1)[0].rstrip() + " …"
