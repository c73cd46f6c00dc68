"""Search as a question sees it: only posts that the public sees at this moment, best first, in both channels."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from pgvector import HalfVector
from psycopg.rows import class_row
from psycopg.sql import Composed

from service.domain import Candidate, EmbeddingProfile, IndexKind, TopicId, Vector
from service.store.pool import Connection, Pool, connection, transaction
from service.store.profile_sql import nearest_statement
from service.store.profiles import find_profile

K1 = 1.2
"""How fast repeats of a word stop counting (Robertson and Zaragoza 2009, 3.4.3: 1.2 to 2)."""

B = 0.75
"""How much a long post is discounted, 0 to 1 (the same: 0.5 to 0.8)."""

STATISTICS_SECONDS = 60.0
"""How old the corpus's size and mean length may be: they move slowly, and counting reads every post."""

EF_SEARCH = 400
"""HNSW candidates: recall@25 0.992 in 5 ms on 36,768 e5 vectors (measured)."""

RESCORED = 800
"""Candidates by Hamming distance that hnsw_binary rescores by cosine."""

_WIDENINGS = (4, 32)
"""How many times the wanted number of passages is looked at before the whole profile is."""

_KEYWORDS = """
WITH asked AS (
    SELECT lexeme, ln(1 + (greatest(%(posts)s, posts) - posts + 0.5::float8) / (posts + 0.5::float8)) AS idf
    FROM document_frequencies WHERE lexeme = ANY(%(lexemes)s)
), best AS (
    SELECT post_id, sum(idf * tf * (%(k1)s::float8 + 1) / (
        tf + %(k1)s::float8 * (1 - %(b)s::float8 + %(b)s::float8 * length / %(mean_length)s::float8)
    )) AS bm25
    FROM asked JOIN postings USING (lexeme) GROUP BY post_id ORDER BY bm25 DESC, post_id LIMIT %(window)s
)
SELECT public_posts.*, bm25 FROM best JOIN public_posts USING (post_id)
WHERE NOT (topic_id = %(asking_topic)s AND post_number >= %(from_number)s)
ORDER BY bm25 DESC, post_id LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What BM25 needs of the whole corpus: indexed posts, and their mean length in lexemes."""

    posts: int
    mean_length: float


class SearchStore:
    """Matches `service.answer.ports.Search`.

    Both channels look at a few times the wanted number of passages first; where too many of them are private now or
    excluded they look further, in the end at everything, so that an exclusion never starves a result.
    """

    def __init__(
        self, pool: Pool, *, k1: float = K1, b: float = B, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pool = pool
        self._k1 = k1
        self._b = b
        self._clock = clock
        self._statistics: tuple[float, Statistics] | None = None

    async def nearest_posts(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, *, exclude_from: tuple[TopicId, int] | None = None
    ) -> list[Candidate]:
        """The `limit` public posts of highest cosine under this profile; none when nothing is stored under it.

        `exclude_from` leaves out the posts of that topic from that post number on.
        """
        async with transaction(self._pool) as conn:
            profile_id = await find_profile(conn, profile)
            if profile_id is None:
                return []
            parameters = _parameters(limit, exclude_from) | {"vector": HalfVector(vector)}
            found: list[Candidate] = []
            for kind, window in _rounds(profile.index_kind, limit):
                statement = nearest_statement(profile_id, kind, profile.dimensions)
                if kind is not IndexKind.EXACT:
                    await _look_as_far_as(conn, window or 0)
                rescored = max(RESCORED, 2 * (window or 0))
                found = await _candidates(conn, statement, parameters | {"window": window, "rescored": rescored})
                if len(found) >= limit:
                    break
            return found

    async def keyword_posts(
        self, lexemes: Sequence[str], limit: int, *, exclude_from: tuple[TopicId, int] | None = None
    ) -> list[Candidate]:
        """The `limit` public posts of highest BM25 over these lexemes, each counted once; `exclude_from` as above.

        Robertson and Zaragoza 2009, with Lucene's inverse document frequency, which is never negative:
        ln(1 + (N - n + 0.5) / (n + 0.5)).
        """
        async with connection(self._pool) as conn:
            statistics = await self._corpus_statistics(conn)
            parameters = _parameters(limit, exclude_from) | {
                "lexemes": list(set(lexemes)),
                "posts": statistics.posts,
                "mean_length": max(statistics.mean_length, 1.0),
                "k1": self._k1,
                "b": self._b,
            }
            found: list[Candidate] = []
            for window in (_WIDENINGS[0] * limit, None):
                found = await _candidates(conn, _KEYWORDS, parameters | {"window": window})
                if len(found) >= limit:
                    break
            return found

    async def _corpus_statistics(self, conn: Connection) -> Statistics:
        now = self._clock()
        if self._statistics is None or now - self._statistics[0] > STATISTICS_SECONDS:
            cursor = await conn.execute(
                "SELECT count(*), coalesce(avg(length), 0)::float8 FROM posts WHERE refusal IS NULL"
            )
            row = await cursor.fetchone()
            found = Statistics(*row) if row else Statistics(0, 0.0)
            if found.posts == 0:
                return found
            self._statistics = (now, found)
        return self._statistics[1]


def _parameters(limit: int, exclude_from: tuple[TopicId, int] | None) -> dict[str, Any]:
    topic_id, post_number = exclude_from or (0, 0)  # topic ids start at 1
    return {"limit": limit, "asking_topic": topic_id, "from_number": post_number}


def _rounds(kind: IndexKind, limit: int) -> list[tuple[IndexKind, int | None]]:
    widenings = _WIDENINGS[:1] if kind is IndexKind.EXACT else _WIDENINGS  # each round of it reads the whole profile
    return [*((kind, factor * limit) for factor in widenings), (IndexKind.EXACT, None)]


async def _look_as_far_as(conn: Connection, window: int) -> None:
    await conn.execute(
        "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'strict_order', true)",
        (str(min(1000, max(EF_SEARCH, window))),),
    )


async def _candidates(
    conn: Connection, statement: LiteralString | Composed, parameters: Mapping[str, Any]
) -> list[Candidate]:
    async with conn.cursor(row_factory=class_row(Candidate)) as cursor:
        # Never prepared: a generic plan would not know the window, and would not take the index for it.
        await cursor.execute(statement, parameters, prepare=False)
        return await cursor.fetchall()
