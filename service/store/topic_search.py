"""Keyword search by whole topics, over what the public sees at this moment: the legacy path's."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from psycopg.rows import dict_row

from service.answer.ports import TopicMatch
from service.domain import Candidate, TopicId
from service.store.bm25 import OF_POST, Bm25, rarity, score
from service.store.pool import Pool, timed_transaction
from service.store.search import TIMEOUT_SECONDS
from service.store.topic_channels import ANSWERING, ANSWERS, NOT_ASKING_US, OTHERS_LENGTH, READ_CHARS, excluding

COMMON_PERCENT, COMMON_POSTS = 5, 50
"""A word that more posts have, of all and in number, distinguishes nothing: it is asked only if no other is known."""

_TOPICS = f"""
WITH asked AS (
    SELECT lexeme, {rarity("%(posts)s", "posts")} AS weight
    FROM (
        SELECT lexeme, posts, min(posts) OVER () AS rarest
        FROM document_frequencies WHERE lexeme = ANY(%(lexemes)s) AND posts > 0
    ) AS known
    WHERE posts <= greatest(rarest, %(common)s, %(posts)s * %(common_percent)s / 100)
    ORDER BY posts, lexeme LIMIT %(rarest)s
), left_out AS MATERIALIZED (
    SELECT post_id, length FROM posts
    WHERE topic_id = %(asking_topic)s AND post_number BETWEEN %(from_number)s AND %(to_number)s
), held AS MATERIALIZED (
    SELECT topic_id, post_id, lexeme, weight, tf, postings.length FROM asked JOIN postings USING (lexeme)
    WHERE NOT (topic_id = %(asking_topic)s AND post_id IN (SELECT post_id FROM left_out))
), left_length AS (SELECT coalesce(sum(length), 0) AS length FROM left_out),
scored AS MATERIALIZED (
    SELECT topic_id, array_agg(lexeme ORDER BY lexeme) AS words, array_agg(weight ORDER BY lexeme) AS weights,
           {score("weight", OTHERS_LENGTH, "%(mean_topic_length)s")} AS bm25
    FROM (SELECT topic_id, lexeme, weight, sum(tf)::float8 AS tf FROM held GROUP BY topic_id, lexeme, weight) AS counted
    JOIN public_topics USING (topic_id) CROSS JOIN left_length
    GROUP BY topic_id ORDER BY bm25 DESC, topic_id LIMIT %(limit)s
), posts_of AS MATERIALIZED (
    SELECT topic_id, post_id, {OF_POST} AS bm25
    FROM held WHERE (topic_id IN (SELECT topic_id FROM scored)) IS TRUE  -- hashed: as a join it would be a loop
    GROUP BY topic_id, post_id
), read AS MATERIALIZED (
    SELECT topic_id, post_id, posts_of.bm25, post_number, left(body, %(read_chars)s) AS body
    FROM posts_of JOIN public_posts USING (post_id, topic_id) WHERE {NOT_ASKING_US}
), best AS MATERIALIZED (
    SELECT DISTINCT ON (topic_id) topic_id, post_id FROM (
        SELECT topic_id, post_id, {ANSWERING} AS answers FROM read
    ) AS ranked ORDER BY topic_id, answers DESC, post_id
), chosen AS MATERIALIZED (
    SELECT post_id, bm25, words, weights FROM scored JOIN best USING (topic_id)
)
SELECT public.*, bm25, words, weights, (SELECT sum(weight) FROM asked) AS asked
FROM chosen JOIN public_posts AS public USING (post_id) ORDER BY bm25 DESC, public.topic_id
"""  # noqa: S608 - made of constants


class TopicSearchStore:
    """Matches `service.answer.ports.TopicSearch`; a search that takes longer than the timeout ends in Transient."""

    def __init__(
        self,
        pool: Pool,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool = pool
        self._timeout_seconds = timeout_seconds
        self._bm25 = Bm25(clock=clock)

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

        Rare is counted in posts, as in the keyword channel; equal topics go to the lower id. Each comes with the post
        that is likeliest to answer of those that hold any of the words (topic_channels.ANSWERS). `exclude_post` leaves
        out one post and nothing behind it: what evaluation asks for. Who gives both gets a ValueError.
        """
        parameters = {
            "rarest": words,
            "read_chars": READ_CHARS,
            **ANSWERS,
            **excluding(exclude_from, exclude_post),
            "limit": limit,
            "common": COMMON_POSTS,
            "common_percent": COMMON_PERCENT,
        }
        limited = timed_transaction(self._pool, timeout_seconds=self._timeout_seconds)
        async with limited as conn, conn.cursor(row_factory=dict_row) as cursor:
            given = parameters | await self._bm25.parameters(conn, lexemes)
            # Never prepared: a generic plan would not know how rare the words are.
            await cursor.execute(_TOPICS, given, prepare=False)
            return [_match(row) for row in await cursor.fetchall()]


def _match(row: dict[str, Any]) -> TopicMatch:
    words, weights, asked = (row.pop(name) for name in ("words", "weights", "asked"))
    return TopicMatch(Candidate(**row), dict(zip(words, weights, strict=True)), asked)
