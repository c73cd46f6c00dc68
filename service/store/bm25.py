"""What BM25 is computed with: its constants, and what it needs of the whole corpus, counted once a minute."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from service.store.pool import Connection

K1 = 1.2
"""How fast repeats of a word stop counting (Robertson and Zaragoza 2009, 3.4.3: 1.2 to 2)."""

B = 0.75
"""How much a long post is discounted, 0 to 1 (the same: 0.5 to 0.8)."""

STATISTICS_SECONDS = 60.0
"""How old the corpus's size and mean lengths may be: they move slowly, and counting reads every post."""

_STATISTICS = """
SELECT posts, post_length, topics, topic_length FROM (
    SELECT count(*) AS posts, coalesce(avg(length), 0)::float8 AS post_length FROM posts WHERE refusal IS NULL
) AS of_posts, (
    SELECT count(*) AS topics, coalesce(avg(length), 0)::float8 AS topic_length FROM topics WHERE length > 0
) AS of_topics
"""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Indexed posts, topics that have any, and their mean lengths in lexemes."""

    posts: int
    mean_length: float
    topics: int
    mean_topic_length: float


class Bm25:
    """The parameters of every statement that computes BM25."""

    def __init__(self, *, k1: float = K1, b: float = B, clock: Callable[[], float] = time.monotonic) -> None:
        self._k1 = k1
        self._b = b
        self._clock = clock
        self._known: tuple[float, Statistics] | None = None

    async def parameters(self, conn: Connection, lexemes: Sequence[str]) -> dict[str, Any]:
        """The lexemes and how often each is asked, the corpus's statistics, k1 and b."""
        statistics = await self._statistics(conn)
        asked = Counter(lexemes)
        return {
            "lexemes": list(asked),
            "times": [float(times) for times in asked.values()],
            "posts": statistics.posts,
            "mean_length": max(statistics.mean_length, 1.0),
            "topics": statistics.topics,
            "mean_topic_length": max(statistics.mean_topic_length, 1.0),
            "k1": self._k1,
            "b": self._b,
        }

    async def _statistics(self, conn: Connection) -> Statistics:
        now = self._clock()
        if self._known is None or now - self._known[0] > STATISTICS_SECONDS:
            row = await (await conn.execute(_STATISTICS)).fetchone()
            found = Statistics(*row) if row else Statistics(0, 0.0, 0, 0.0)
            if found.posts == 0:
                return found
            self._known = (now, found)
        return self._known[1]
