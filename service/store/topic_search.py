"""Keyword search by whole topics, over what the public sees at this moment: the legacy path's."""

import time
from collections.abc import Callable, Sequence
from dataclasses import fields

from psycopg import AsyncCursor
from psycopg.rows import DictRow, dict_row

from service.answer.ports import TopicMatch
from service.domain import Candidate, TopicId
from service.store.bm25 import K1, STATISTICS_SECONDS, B
from service.store.pool import Pool, connection

COMMON_PERCENT, COMMON_POSTS = 5, 50
"""A word that more posts have, of all and in number, distinguishes nothing: it is asked only if no other is known."""

_COLUMNS = tuple(one.name for one in fields(Candidate))

_CORPUS = """
SELECT count(*) AS posts, greatest(avg(length), 1)::float8 AS post_length,
       greatest(sum(length)::float8 / greatest(count(DISTINCT topic_id), 1), 1) AS topic_length
FROM posts WHERE refusal IS NULL
"""

_TOPICS = """
WITH asked AS (
    SELECT lexeme, ln(1 + (greatest(%(posts)s, posts) - posts + 0.5::float8) / (posts + 0.5::float8)) AS idf
    FROM (
        SELECT lexeme, posts, min(posts) OVER () AS rarest
        FROM document_frequencies WHERE lexeme = ANY(%(lexemes)s) AND posts > 0
    ) AS known
    WHERE posts <= greatest(rarest, %(common)s, %(posts)s * %(common_percent)s / 100)
    ORDER BY posts, lexeme LIMIT %(words)s
), held AS MATERIALIZED (
    SELECT topic_id, post_id, lexeme, idf, tf, postings.length
    FROM asked JOIN postings USING (lexeme) JOIN public_posts USING (post_id, topic_id)
    WHERE NOT (topic_id = %(asking_topic)s AND post_number >= %(from_number)s)
      AND NOT (topic_id = %(left_topic)s AND post_number = %(left_number)s)
), lengths AS MATERIALIZED (
    SELECT topic_id, sum(length)::float8 AS length FROM posts
    WHERE refusal IS NULL AND topic_id IN (SELECT topic_id FROM held)
      AND NOT (topic_id = %(asking_topic)s AND post_number >= %(from_number)s)
      AND NOT (topic_id = %(left_topic)s AND post_number = %(left_number)s)
    GROUP BY topic_id
), scored AS MATERIALIZED (
    SELECT topic_id, array_agg(lexeme ORDER BY lexeme) AS words, array_agg(idf ORDER BY lexeme) AS weights,
           sum(idf * tf * (%(k1)s::float8 + 1) / (
               tf + %(k1)s::float8 * (1 - %(b)s::float8 + %(b)s::float8 * length / %(topic_length)s::float8)
           )) AS bm25
    FROM (SELECT topic_id, lexeme, idf, sum(tf)::float8 AS tf FROM held GROUP BY topic_id, lexeme, idf) AS counted
    JOIN lengths USING (topic_id)
    GROUP BY topic_id ORDER BY bm25 DESC, topic_id LIMIT %(limit)s
), best AS MATERIALIZED (
    SELECT DISTINCT ON (topic_id) topic_id, post_id
    FROM (
        SELECT topic_id, post_id, sum(idf * tf * (%(k1)s::float8 + 1) / (
            tf + %(k1)s::float8 * (1 - %(b)s::float8 + %(b)s::float8 * length / %(post_length)s::float8)
        )) AS score
        FROM held WHERE (topic_id IN (SELECT topic_id FROM scored)) IS TRUE  -- hashed: as a join it would be a loop
        GROUP BY topic_id, post_id
    ) AS posts_of ORDER BY topic_id, score DESC, post_id
), chosen AS MATERIALIZED (
    SELECT post_id, bm25, words, weights FROM scored JOIN best USING (topic_id)
)
SELECT public.*, bm25, words, weights, (SELECT sum(idf) FROM asked) AS asked
FROM chosen JOIN public_posts AS public USING (post_id) ORDER BY bm25 DESC, public.topic_id
"""


class TopicSearchStore:
    """Matches `service.answer.ports.TopicSearch`."""

    def __init__(self, pool: Pool, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._clock = clock
        self._corpus: tuple[float, dict[str, float]] | None = None

    async def keyword_topics(
        self,
        lexemes: Sequence[str],
        limit: int,
        *,
        words: int,
        exclude_from: tuple[TopicId, int] | None = None,
        exclude_post: tuple[TopicId, int] | None = None,
    ) -> list[TopicMatch]:
        """The `limit` topics of highest BM25 of their whole public text over the `words` rarest of these lexemes.

        Rare is counted in posts, as in the keyword channel; equal topics go to the lower id. `exclude_post` leaves out
        one post and nothing behind it: what evaluation asks for.
        """
        asking_topic, from_number = exclude_from or (0, 0)  # topic ids start at 1
        left_topic, left_number = exclude_post or (0, 0)
        parameters = {
            "lexemes": list(set(lexemes)),
            "words": words,
            "limit": limit,
            "asking_topic": asking_topic,
            "from_number": from_number,
            "left_topic": left_topic,
            "left_number": left_number,
            "common": COMMON_POSTS,
            "common_percent": COMMON_PERCENT,
            "k1": K1,
            "b": B,
        }
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            # Never prepared: a generic plan would not know how rare the words are.
            await cursor.execute(_TOPICS, parameters | await self._statistics(cursor), prepare=False)
            return [
                TopicMatch(
                    Candidate(**{name: row[name] for name in _COLUMNS if name in row}),
                    dict(zip(row["words"], row["weights"], strict=True)),
                    row["asked"],
                )
                async for row in cursor
            ]

    async def _statistics(self, cursor: AsyncCursor[DictRow]) -> dict[str, float]:
        """Posts, and the mean length of a post and of a topic: counted at most every STATISTICS_SECONDS."""
        now = self._clock()
        if self._corpus is None or now - self._corpus[0] > STATISTICS_SECONDS:
            await cursor.execute(_CORPUS)
            counted = await cursor.fetchone() or {}
            if not counted.get("posts"):
                return {"posts": 0, "post_length": 1.0, "topic_length": 1.0}
            self._corpus = (now, counted)
        return self._corpus[1]
