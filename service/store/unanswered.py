"""The questions that stayed without an answer: kept for a time, and for so many."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from psycopg.rows import class_row

from service.answer.ports import Unanswered
from service.domain import PostId, TopicId
from service.settings import RetentionSettings
from service.store.pool import Pool, connection, transaction

QUESTION_CHARS = 1500
SHOWN = 5
"""Questions of a group that a page shows."""

# What was let go when its post went has no text to keep. What was deleted here is not collected again: what is newer
# than the newest was not looked at yet, and an hour more is for transactions that ended late.
_COLLECT = """
INSERT INTO unanswered (post_id, asked_at, reason, lang, question)
SELECT post_id, recorded_at, reason, trace ->> 'lang', question FROM (
    SELECT *, left(coalesce(nullif(trace -> 'queries' ->> 0, ''), nullif(trace ->> 'asked', '')), %(chars)s) AS question
    FROM shown_traces
    WHERE recorded_at > greatest(%(since)s, (SELECT max(asked_at) FROM unanswered) - interval '1 hour')
      AND (outcome IN ('posted', 'shadowed') AND reason IN ('abstained', 'failed') OR reason = 'given_up')
) AS found WHERE question <> ''
ON CONFLICT (post_id) DO NOTHING
"""

_ALL = """
SELECT post_id, question, CASE WHEN profile = %s THEN vector END, group_id FROM unanswered ORDER BY asked_at, post_id
"""

_PUT = """
UPDATE unanswered SET group_id = %(group_id)s, vector = coalesce(%(vector)s::real[], vector),
    profile = CASE WHEN %(vector)s::real[] IS NULL THEN profile ELSE %(profile)s END
WHERE post_id = %(post_id)s
"""

_SEEN = """
seen AS (
    SELECT unanswered.*, coalesce(group_id, unanswered.post_id) AS named, answers.topic_id, answers.post_number,
           coalesce(public_topics.slug, '') AS slug
    FROM unanswered JOIN answers USING (post_id)
    LEFT JOIN topics ON topics.topic_id = answers.topic_id
    LEFT JOIN categories ON categories.category_id = coalesce(topics.category_id, answers.category_id)
    LEFT JOIN public_topics ON public_topics.topic_id = answers.topic_id
    WHERE %(admin)s OR NOT is_closed(answers.private, topics.archetype, categories.read_restricted)
)
"""

_GROUPS = f"""
WITH {_SEEN}, ranked AS (
    SELECT *, count(*) OVER (PARTITION BY named) AS n, max(asked_at) OVER (PARTITION BY named) AS last_at,
           row_number() OVER (PARTITION BY named ORDER BY asked_at DESC, post_id DESC) AS place
    FROM seen
), groups AS (
    SELECT named FROM ranked WHERE place = 1 ORDER BY n DESC, last_at DESC, named LIMIT %(limit)s OFFSET %(offset)s
)
SELECT named, n, post_id, topic_id, post_number, slug, question, asked_at, reason
FROM ranked JOIN groups USING (named) WHERE place <= %(shown)s ORDER BY n DESC, last_at DESC, named, place
"""  # noqa: S608 - both parts are constants of this module

# A group goes as a whole, once nobody has asked it for so long; beyond so many, those asked longest ago go.
_EXPIRE = """
DELETE FROM unanswered WHERE post_id IN (
    SELECT post_id FROM (
        SELECT post_id, last_at, row_number() OVER (ORDER BY last_at DESC, asked_at DESC, post_id DESC) AS place FROM (
            SELECT post_id, asked_at, max(asked_at) OVER (PARTITION BY coalesce(group_id, post_id)) AS last_at
            FROM unanswered
        ) AS dated
    ) AS ranked WHERE last_at < %(oldest)s OR place > %(most)s
)
"""


@dataclass(frozen=True, slots=True)
class AskedOnce:
    """One question of a group: which post asked it where, and when."""

    named: PostId
    n: int
    post_id: PostId
    topic_id: TopicId
    post_number: int
    slug: str
    question: str
    asked_at: datetime
    reason: str


class UnansweredStore:
    """Matches `service.answer.ports.UnansweredQuestions`, and gives the pages the groups."""

    def __init__(self, pool: Pool, *, since: datetime) -> None:
        """Questions recorded before `since` are not collected any more."""
        self._pool = pool
        self._since = since

    async def collect(self) -> None:
        """Keep the questions of answers that came to nothing since."""
        async with connection(self._pool) as conn:
            await conn.execute(_COLLECT, {"since": self._since, "chars": QUESTION_CHARS})

    async def all(self, profile: str) -> list[Unanswered]:
        """Every question, the first asked first, with vectors of this profile."""
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_ALL, (profile,))).fetchall()
        return [_unanswered(*row) for row in rows]

    async def put(self, questions: Sequence[Unanswered], profile: str) -> None:
        """Store the groups and vectors of these questions."""
        values = [
            {
                "post_id": one.post_id,
                "group_id": one.group_id,
                "profile": profile,
                "vector": None if one.vector is None else one.vector.tolist(),
            }
            for one in questions
        ]
        async with transaction(self._pool) as conn, conn.cursor() as cursor:
            await cursor.executemany(_PUT, values)

    async def expire(self, retention: RetentionSettings, *, now: datetime) -> int:
        """Delete what was not asked for so long, and what is beyond so many; how many questions."""
        values = {
            "oldest": now - timedelta(days=retention.unanswered_days),
            "most": retention.unanswered_questions,
        }
        async with connection(self._pool) as conn:
            return (await conn.execute(_EXPIRE, values)).rowcount


async def groups(pool: Pool, *, admin: bool, limit: int, offset: int) -> list[list[AskedOnce]]:
    """The groups that this reader may see, the most asked first, each with its latest questions."""
    values = {"admin": admin, "limit": limit, "offset": offset, "shown": SHOWN}
    async with connection(pool) as conn, conn.cursor(row_factory=class_row(AskedOnce)) as cursor:
        await cursor.execute(_GROUPS, values)
        found: dict[PostId, list[AskedOnce]] = {}
        for one in await cursor.fetchall():
            found.setdefault(one.named, []).append(one)
    return list(found.values())


def _unanswered(post_id: PostId, question: str, vector: list[float] | None, group_id: PostId | None) -> Unanswered:
    read: Any = None if vector is None else np.asarray(vector, dtype=np.float32)
    return Unanswered(post_id, question, read, group_id)
