"""BM25: its formula in SQL, its constants, and what it needs of the whole corpus, counted once a minute."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from service.store.pool import Connection

K1 = 1.2
"""How fast repeats of a word stop counting (Robertson and Zaragoza 2009, 3.4.3: 1.2 to 2)."""

B = 0.75
"""How much a long post is discounted, 0 to 1 (the same: 0.5 to 0.8)."""

STATISTICS_SECONDS = 60.0
"""How old the corpus's size and mean lengths may be: they move slowly, and counting reads every post."""


def rarity(documents: LiteralString, holding: LiteralString) -> LiteralString:
    """SQL of a word's inverse document frequency, as Lucene has it: never negative."""
    return f"ln(1 + (greatest({documents}, {holding}) - {holding} + 0.5::float8) / ({holding} + 0.5::float8))"


def score(weight: LiteralString, length: LiteralString, mean: LiteralString) -> LiteralString:
    """SQL of BM25 (Robertson and Zaragoza 2009, 3.15), an aggregate over the words of one text that hold it `tf` times.

    Each word counts its `weight`; `length` is of the text, `mean` of all texts. Parameters: k1 and b.
    """
    return (
        f"sum({weight} * tf * (%(k1)s::float8 + 1) / (tf + %(k1)s::float8 * "
        f"(1 - %(b)s::float8 + %(b)s::float8 * ({length}) / {mean}::float8)))"
    )


ASKED = f"""
SELECT lexeme, times * {rarity("%(posts)s", "posts")} AS weight
FROM document_frequencies JOIN unnest(%(lexemes)s::text[], %(times)s::float8[]) AS given (lexeme, times) USING (lexeme)
"""  # noqa: S608 - made of constants
"""The lexemes that posts have, each weighted by how few do and how often it is asked."""

OF_POST = score("weight", "length", "%(mean_length)s")
"""The BM25 of a post, over lexemes of ASKED joined with its postings."""

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
        statistics = await self.statistics(conn)
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

    async def statistics(self, conn: Connection) -> Statistics:
        """Those of the corpus, at most STATISTICS_SECONDS old."""
        now = self._clock()
        if self._known is None or now - self._known[0] > STATISTICS_SECONDS:
            row = await (await conn.execute(_STATISTICS)).fetchone()
            found = Statistics(*row) if row else Statistics(0, 0.0, 0, 0.0)
            if found.posts == 0:
                return found
            self._known = (now, found)
        return self._known[1]
