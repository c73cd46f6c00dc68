"""What members do with our replies and say of them: kept as kinds, without a word of theirs."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from psycopg.rows import class_row

from service.domain import PostId, TopicId, UserId
from service.store.pool import Connection, Pool, connection, transaction

_NOTE = """
INSERT INTO answer_signals (post_id, kind, about_post_id, by_user_id)
SELECT post_id, %(kind)s, %(about)s, %(by)s FROM answers
WHERE reply_post_id = %(about)s AND outcome = 'posted'
ON CONFLICT DO NOTHING
"""

_SOLVED_ELSEWHERE = """
INSERT INTO answer_signals (post_id, kind, about_post_id)
SELECT post_id, 'solved_by_other', %(solution)s FROM answers
WHERE topic_id = %(topic_id)s AND outcome = 'posted' AND reply_post_id IS DISTINCT FROM %(solution)s
ON CONFLICT DO NOTHING
"""

_FLAGGED = """
INSERT INTO answer_signals (post_id, kind, about_post_id)
SELECT post_id, 'flagged', coalesce(reply_post_id, 0) FROM answers
WHERE topic_id = %(topic_id)s AND reply_post_number = %(number)s AND outcome = 'posted'
ON CONFLICT DO NOTHING
"""

_SAID = """
INSERT INTO answer_signals (post_id, kind, about_post_id, by_user_id)
SELECT post_id, %(kind)s, %(about)s, %(by)s FROM answers
WHERE topic_id = %(topic_id)s AND reply_post_number = %(number)s AND outcome = 'posted'
ON CONFLICT DO NOTHING
"""


class Signal(StrEnum):
    """What becomes of a reply; `solved_by_other` is a solution of its topic that isn't ours."""

    LIKED = "liked"
    FLAGGED = "flagged"
    SOLVED = "solved"
    SOLVED_BY_OTHER = "solved_by_other"
    THANKED = "thanked"
    OBJECTED = "objected"
    DELETED = "deleted"
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class Noticed:
    """How often one kind was noticed of an answer, and when last."""

    kind: str
    n: int
    last_at: datetime


async def note(conn: Connection, signal: Signal, reply: PostId, *, by: UserId | None = None) -> None:
    """Keep what happened to a post, where it is a reply of ours; once for each member."""
    await conn.execute(_NOTE, {"kind": signal, "about": reply, "by": by or 0})


async def note_flag(conn: Connection, topic_id: TopicId, post_number: int) -> None:
    """Keep that a post is flagged, where it is a reply of ours; the forum names it by its number."""
    await conn.execute(_FLAGGED, {"topic_id": topic_id, "number": post_number})


async def drop_flag(conn: Connection, topic_id: TopicId, post_number: int) -> None:
    """The moderators of the forum found nothing amiss with a post."""
    await conn.execute(
        "DELETE FROM answer_signals USING answers WHERE answer_signals.post_id = answers.post_id AND kind = 'flagged'"
        " AND topic_id = %s AND reply_post_number = %s",
        (topic_id, post_number),
    )


async def note_solution(conn: Connection, topic_id: TopicId, solution: PostId) -> None:
    """Keep that a topic has this solution: ours, or somebody else's beside our answer."""
    await note(conn, Signal.SOLVED, solution)
    await conn.execute(_SOLVED_ELSEWHERE, {"topic_id": topic_id, "solution": solution})


async def drop_solution(conn: Connection, solution: PostId) -> None:
    """A post is no solution any more."""
    await conn.execute(
        "DELETE FROM answer_signals WHERE about_post_id = %s AND kind IN ('solved', 'solved_by_other')", (solution,)
    )


class SignalStore:
    """Matches `service.answer.opinion.Opinions`, and gives the pages what there is of an answer."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def happened(self, signal: Signal, reply: PostId) -> None:
        """Keep what happened to this post, where it is a reply of ours."""
        async with connection(self._pool) as conn:
            await note(conn, signal, reply)

    async def said(
        self, kind: str | None, topic_id: TopicId, post_number: int, *, in_post: PostId, by: UserId | None
    ) -> None:
        """Keep what a post says of the reply of ours with this number, if it is one, in place of what it said."""
        async with transaction(self._pool) as conn:
            await conn.execute(
                "DELETE FROM answer_signals WHERE about_post_id = %s AND kind IN ('thanked', 'objected')", (in_post,)
            )
            if kind is not None:
                values = {"kind": kind, "topic_id": topic_id, "number": post_number, "about": in_post, "by": by or 0}
                await conn.execute(_SAID, values)

    async def of(self, post_id: PostId) -> list[Noticed]:
        """What was noticed of the answer to this post."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(Noticed)) as cursor:
            await cursor.execute(
                "SELECT kind, count(*) AS n, max(noticed_at) AS last_at FROM answer_signals WHERE post_id = %s"
                " GROUP BY 1 ORDER BY 1",
                (post_id,),
            )
            return await cursor.fetchall()

    async def expire(self, *, before: datetime) -> int:
        """Delete the signals noticed before then; how many."""
        async with transaction(self._pool) as conn:
            return (await conn.execute("DELETE FROM answer_signals WHERE noticed_at < %s", (before,))).rowcount
