"""What a moderator's form says about a test question, read without I/O: which posts answer it."""

import re
from collections.abc import Mapping
from itertools import groupby

from service.errors import Rejected

MOST_POSTS = 50
LARGEST_ID = 2**31 - 1
MOST_CHARS = 8_000
"""Of the links to posts: as many as fifty of them need."""
_CHECKED = re.compile(r"golden-([0-9]{1,10})-([0-9]{1,10})")
_ADDRESS = re.compile(r"(?:^|/)t/(?:[^/\s]{1,600}/)?([0-9]{1,10})/([0-9]{1,10})(?:[?#]\S*)?$")

NEGATIVE = frozenset({"unanswerable", "offtopic"})
"""Slices of questions that nothing answers."""


def golden_of(sent: Mapping[str, str]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The topics that answer and in each the numbers of the posts, of the boxes that are checked and of `other`.

    `other` has a link to a post a line. Raises Rejected (422) for a line that is none, and for too many posts.
    """
    found = {(int(one[1]), int(one[2])) for name in sent if (one := _CHECKED.fullmatch(name))}
    other = sent.get("other", "")
    if len(other) > MOST_CHARS:
        raise Rejected(f"links to posts: {MOST_CHARS:,} characters at most", status=422)
    for line in other.split("\n"):
        if not line.strip():
            continue
        address = _ADDRESS.search(line.strip())
        if address is None:
            raise Rejected(f"no link to a post: {line.strip()[:100]}", status=422)
        found.add((int(address[1]), int(address[2])))
    if any(not 0 < number <= LARGEST_ID for pair in found for number in pair):
        raise Rejected("topics and posts are numbered from 1", status=422)
    if len(found) > MOST_POSTS:
        raise Rejected(f"at most {MOST_POSTS} posts", status=422)
    by_topic = groupby(sorted(found), key=lambda pair: pair[0])
    return tuple((topic, tuple(number for _, number in pairs)) for topic, pairs in by_topic)
