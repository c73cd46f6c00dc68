"""Search as a question sees it: only what the public sees at this moment, best first, in every channel."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, LiteralString

from pgvector import HalfVector
from psycopg.rows import class_row
from psycopg.sql import Composed

from service.domain import Candidate, EmbeddingProfile, IndexKind, TopicHit, TopicId, Vector
from service.store import topic_channels
from service.store.bm25 import ASKED, K1, OF_POST, B, Bm25
from service.store.kept import Kept, keeps_few
from service.store.pool import Connection, Pool, timed_transaction
from service.store.profile_sql import nearest_statement
from service.store.profiles import find_profile
from service.store.topic_channels import Grain, excluding

EF_SEARCH = 400
"""HNSW candidates: recall@25 0.992 in 5 ms on 36,768 e5 vectors (measured)."""

RESCORED = 800
"""Candidates by Hamming distance that hnsw_binary rescores by cosine."""

_WIDENINGS = (4, 32)
"""How many times the wanted number of passages is looked at before the whole profile is."""

_KEYWORDS = f"""
WITH asked AS ({ASKED}), best AS (
    SELECT post_id, {OF_POST} AS bm25
    FROM asked JOIN postings USING (lexeme) GROUP BY post_id ORDER BY bm25 DESC, post_id LIMIT %(window)s
)
SELECT public_posts.*, bm25 FROM best JOIN public_posts USING (post_id)
WHERE NOT (topic_id = %(asking_topic)s AND post_number >= %(from_number)s)
ORDER BY bm25 DESC, post_id LIMIT %(limit)s
"""  # noqa: S608 - made of constants

COMMON_PERCENT, COMMON_POSTS = 30, 5_000
"""A word that more posts have, of all and in number, is asked only if every word is as common: it says little, and is
most of the work. Under that number it costs little, and on a help desk two of 167 questions needed one."""

TIMEOUT_SECONDS = 10.0
"""What a statement may take: some twenty times an exact scan of 425,000 posts."""


class SearchStore:
    """Matches `service.answer.ports.Search`.

    The channels of posts look at a few times the wanted number of passages first; where too many of them are private
    now or excluded they look further, in the end at everything, so that an exclusion never starves a result. What takes
    longer than the timeout ends in Transient.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        k1: float = K1,
        b: float = B,
        timeout_seconds: float = TIMEOUT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool = pool
        self._timeout_seconds = timeout_seconds
        self._bm25 = Bm25(k1=k1, b=b, clock=clock)

    async def nearest_posts(
        self,
        profile: EmbeddingProfile,
        vector: Vector,
        limit: int,
        *,
        exclude_from: tuple[TopicId, int] | None = None,
        kept: Kept | None = None,
    ) -> list[Candidate]:
        """The `limit` public posts of highest cosine under this profile; none when nothing is stored under it.

        `exclude_from` leaves out the posts of that topic from that post number on; `kept` holds the search to some
        posts, which are all read where they are few, whatever the profile's index.
        """
        async with self._limited() as conn:
            profile_id = await find_profile(conn, profile)
            if profile_id is None:
                return []
            parameters = _parameters(limit, exclude_from) | {"vector": HalfVector(vector)}
            indexed = profile.index_kind
            if kept is not None:
                parameters |= kept.parameters
                if await keeps_few(conn, kept):
                    indexed = IndexKind.EXACT
            found: list[Candidate] = []
            for kind, window in _rounds(indexed, limit):
                statement = nearest_statement(profile_id, kind, profile.dimensions, filtered=kept is not None)
                if kind is not IndexKind.EXACT:
                    await _look_as_far_as(conn, window or 0)
                rescored = max(RESCORED, 2 * (window or 0))
                found = await _candidates(conn, statement, parameters | {"window": window, "rescored": rescored})
                if len(found) >= limit:
                    break
            return found

    def _limited(self) -> AbstractAsyncContextManager[Connection]:
        return timed_transaction(self._pool, timeout_seconds=self._timeout_seconds)

    async def keyword_posts(
        self, lexemes: Sequence[str], limit: int, *, exclude_from: tuple[TopicId, int] | None = None
    ) -> list[Candidate]:
        """The `limit` public posts of highest BM25 over these lexemes, repeats counting; `exclude_from` as above."""
        async with self._limited() as conn:
            parameters = _parameters(limit, exclude_from) | await self._bm25.parameters(conn, lexemes)
            found: list[Candidate] = []
            for window in (_WIDENINGS[0] * limit, None):
                found = await _candidates(conn, _KEYWORDS, parameters | {"window": window})
                if len(found) >= limit:
                    break
            return found

    async def asked_words(self, lexemes: Sequence[str], limit: int) -> list[str]:
        """The `limit` rarest of these lexemes, each that no post has replaced by those that resemble it, or by none.

        It mends typos; and the commonest words of a question say little, and would be most of the work.
        """
        async with self._limited() as conn:
            posts = (await self._bm25.statistics(conn)).posts
            common = max(COMMON_POSTS, posts * COMMON_PERCENT // 100)
            return await topic_channels.asked_words(conn, lexemes, limit, common)

    async def keyword_topics(
        self,
        lexemes: Sequence[str],
        limit: int,
        *,
        exclude_from: tuple[TopicId, int] | None = None,
        exclude_post: tuple[TopicId, int] | None = None,
    ) -> list[TopicHit]:
        """The `limit` public topics of highest BM25 of their whole text over these lexemes, each counted once.

        `exclude_from` as above; `exclude_post` leaves out one post and nothing behind it: what evaluation asks for. Who
        gives both gets a ValueError: one run of posts is left out.
        """
        async with self._limited() as conn:
            given = (
                await self._bm25.parameters(conn, lexemes) | excluding(exclude_from, exclude_post) | {"limit": limit}
            )
            return await topic_channels.topics_by_words(conn, given)

    async def mean_topics(
        self,
        profile: EmbeddingProfile,
        vector: Vector,
        limit: int,
        *,
        exclude_from: tuple[TopicId, int] | None = None,
        exclude_post: tuple[TopicId, int] | None = None,
    ) -> list[TopicHit]:
        """The `limit` public topics whose posts' mean vector has the highest cosine; exclusions as above."""
        return await self._near(profile, vector, Grain.MEAN, excluding(exclude_from, exclude_post) | {"limit": limit})

    async def first_post_topics(
        self,
        profile: EmbeddingProfile,
        vector: Vector,
        limit: int,
        *,
        exclude_from: tuple[TopicId, int] | None = None,
        exclude_post: tuple[TopicId, int] | None = None,
    ) -> list[TopicHit]:
        """The `limit` public topics whose first post has the highest cosine; exclusions as above."""
        return await self._near(profile, vector, Grain.FIRST, excluding(exclude_from, exclude_post) | {"limit": limit})

    async def _near(
        self, profile: EmbeddingProfile, vector: Vector, grain: Grain, parameters: Mapping[str, Any]
    ) -> list[TopicHit]:
        async with self._limited() as conn:
            profile_id = await find_profile(conn, profile)
            if profile_id is None:
                return []
            return await topic_channels.topics_by_vector(conn, profile_id, vector, grain, parameters)

    async def best_posts(
        self,
        topics: Sequence[TopicId],
        profile: EmbeddingProfile,
        vector: Vector | None,
        lexemes: Sequence[str],
        *,
        exclude_from: tuple[TopicId, int] | None = None,
        exclude_post: tuple[TopicId, int] | None = None,
    ) -> list[Candidate]:
        """The public post of each topic that is likeliest to answer, in no order, with the topic's scores but `words`.

        By its words, and by not asking itself (topic_channels.ANSWERS). Exclusions as above.
        """
        async with self._limited() as conn:
            given = await self._bm25.parameters(conn, lexemes) | excluding(exclude_from, exclude_post)
            return await topic_channels.best_posts(
                conn,
                given
                | {
                    "topic_ids": list(topics),
                    "profile_id": await find_profile(conn, profile),
                    "vector": None if vector is None else HalfVector(vector),
                },
            )


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
