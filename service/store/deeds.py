"""What moderators decide about answers: each decision kept with who and why, and what came of it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from service.answer.ports import AnsweredPost, Deed, DeedKind, FixedReply
from service.domain import Posted, PostId, Result, SkipReason, UserId
from service.store.pool import Connection, Pool, connection, transaction
from service.store.values import storable

DONE = "done"
"""The outcome of a deed that was carried out; any other says why it wasn't."""

_ASK = """
INSERT INTO answer_deeds (post_id, kind, reason, raw, by, by_user_id, asked_at, outcome, done_at)
VALUES (%(post_id)s, %(kind)s, %(reason)s, %(raw)s, %(by)s, %(by_user_id)s, %(now)s,
        CASE WHEN %(at_once)s THEN 'done' END, CASE WHEN %(at_once)s THEN %(now)s::timestamptz END)
ON CONFLICT DO NOTHING
RETURNING deed_id
"""

_SAID_BEFORE = """
SELECT FROM answer_deeds
WHERE post_id = %(post_id)s AND kind = 'wrong' AND kind = %(kind)s AND by = %(by)s AND reason = %(reason)s
"""

_OF = """
SELECT deed_id, post_id, kind, reason, raw, by, by_user_id, asked_at, outcome, done_at FROM answer_deeds
WHERE post_id = %s ORDER BY deed_id
"""

_WAITING = """
SELECT deed_id, post_id, kind, reason, raw, by, by_user_id, asked_at, outcome, done_at FROM answer_deeds
WHERE deed_id = %s AND outcome IS NULL
"""

# A correction that was asked for while another moderator hid the post would bring it back.
_REPLY = """
SELECT topic_id, outcome, raw, result, cited, reply_post_id, private FROM answers WHERE post_id = %s AND raw IS NOT NULL
AND NOT EXISTS (
    SELECT FROM answer_deeds AS one WHERE one.post_id = answers.post_id AND kind = 'hide' AND one.outcome = 'done'
)
"""

_READ = """
UPDATE answer_deeds SET outcome = 'done', done_at = %(now)s, raw = %(raw)s
WHERE deed_id = %(deed_id)s AND outcome IS NULL
"""

_USED = "UPDATE answer_deeds SET raw = NULL WHERE post_id = %s AND kind = 'read'"

_CLOSE = """
UPDATE answer_deeds SET outcome = %(outcome)s, done_at = %(now)s, raw = NULL
WHERE deed_id = %(deed_id)s AND outcome IS NULL RETURNING post_id
"""

_POSTED = """
UPDATE answers SET outcome = 'posted', reply_post_id = %(reply_post_id)s, reply_post_number = %(number)s
WHERE post_id = %(post_id)s AND outcome = 'shadowed'
"""

# What the new text doesn't link to is no longer cited.
_EDITED = """
UPDATE answers SET raw = %(raw)s, cited = ARRAY(
    SELECT one.post_id FROM posts AS one WHERE one.post_id = ANY(answers.cited)
    AND position('/' || one.topic_id || '/' || one.post_number || ')' IN %(raw)s) > 0
) WHERE post_id = %(post_id)s
"""

_DEALT_WITH = """
UPDATE source_alerts SET seen_at = %(now)s, seen_by = %(by)s WHERE answer_post_id = %(post_id)s AND seen_at IS NULL
"""

# The words of an answer that was taken back are kept no longer than they are needed; what a post of ours said was let
# go before it was read for whoever corrects it, and is let go again the next day.
_EXPIRE = """
UPDATE answer_deeds SET raw = NULL
WHERE raw IS NOT NULL AND (asked_at < %s OR kind = 'read' AND asked_at < now() - interval '1 day')
"""

# A worker that was killed at every try, or met a fault of ours, closed nothing, and what waits is not asked for again.
_LOST = """
UPDATE answer_deeds SET outcome = %s, done_at = now(), raw = NULL
WHERE outcome IS NULL AND NOT EXISTS (
    SELECT FROM procrastinate_jobs
    WHERE task_name = 'carry_out' AND status IN ('todo', 'doing') AND args @> jsonb_build_object('deed_id', deed_id)
)
"""

CARRIED_OUT = frozenset({DeedKind.POST, DeedKind.HIDE, DeedKind.EDIT, DeedKind.READ})


@dataclass(frozen=True, slots=True)
class NewDeed:
    """A decision on the answer to this post; `raw` is the new text of an edit."""

    post_id: PostId
    kind: DeedKind
    reason: str
    by: str
    by_user_id: UserId | None
    raw: str | None = None


async def ask(conn: Connection, deed: NewDeed, *, now: datetime) -> int | None:
    """Keep a decision in the connection's transaction; None when one like it waits or was carried out, or was said."""
    values = {
        "post_id": deed.post_id,
        "kind": deed.kind,
        "reason": storable(deed.reason),
        "raw": None if deed.raw is None else storable(deed.raw),
        "by": storable(deed.by),
        "by_user_id": deed.by_user_id,
        "now": now,
        "at_once": deed.kind not in CARRIED_OUT,
    }
    await conn.execute("SELECT pg_advisory_xact_lock(hashtextextended('deeds', %s))", (deed.post_id,))
    if (await conn.execute(_SAID_BEFORE, values)).rowcount:
        return None
    row = await (await conn.execute(_ASK, values)).fetchone()
    return None if row is None else int(row[0])


class DeedStore:
    """Matches `service.answer.decided.Deeds`, and keeps decisions for the pages."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def ask(
        self, deed: NewDeed, defer: Callable[[Connection, int], Awaitable[None]], *, now: datetime
    ) -> int | None:
        """Keep a decision and `defer` what carries it out, in one transaction; None as for the function."""
        async with transaction(self._pool) as conn:
            deed_id = await ask(conn, deed, now=now)
            if deed_id is not None:
                await defer(conn, deed_id)
            return deed_id

    async def of(self, post_id: PostId) -> list[Deed]:
        """The decisions on the answer to this post, the first one first."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(Deed)) as cursor:
            await cursor.execute(_OF, (post_id,))
            return await cursor.fetchall()

    async def waiting(self, deed_id: int) -> Deed | None:
        """The decision, while it has not been carried out."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(Deed)) as cursor:
            await cursor.execute(_WAITING, (deed_id,))
            return await cursor.fetchone()

    async def answered(self, post_id: PostId) -> AnsweredPost | None:
        """The answer that the ledger has for this post; None without a text, and of one that was hidden."""
        async with connection(self._pool) as conn:
            row = await (await conn.execute(_REPLY, (post_id,))).fetchone()
        if row is None:
            return None
        topic_id, outcome, raw, result, cited, reply_post_id, private = row
        return AnsweredPost(topic_id, outcome, FixedReply(raw, Result(result), tuple(cited)), reply_post_id, private)

    async def posted(self, deed: Deed, outcome: Posted, number: int | None, *, now: datetime) -> None:
        """The answer is on the forum now: the ledger says so, and the deed is done, in one transaction."""
        async with transaction(self._pool) as conn:
            reply = {"post_id": deed.post_id, "reply_post_id": outcome.reply_post_id, "number": number}
            await conn.execute(_POSTED, reply)
            await _close(conn, deed, DONE, now)

    async def edited(self, deed: Deed, raw: str, *, now: datetime) -> None:
        """Our post says this now; what it no longer cites can't be missing from it."""
        async with transaction(self._pool) as conn:
            await conn.execute(_EDITED, {"post_id": deed.post_id, "raw": storable(raw)})
            await conn.execute(_USED, (deed.post_id,))
            await conn.execute(_DEALT_WITH, {"post_id": deed.post_id, "by": deed.by, "now": now})
            await _close(conn, deed, DONE, now)

    async def read(self, deed: Deed, raw: str, *, now: datetime) -> None:
        """Our post says this now."""
        async with transaction(self._pool) as conn:
            await conn.execute(_USED, (deed.post_id,))
            await conn.execute(_READ, {"deed_id": deed.deed_id, "raw": storable(raw), "now": now})

    async def hidden(self, deed: Deed, *, now: datetime) -> None:
        """Our post is gone from the forum, or says nothing any more."""
        async with transaction(self._pool) as conn:
            await conn.execute(_USED, (deed.post_id,))
            await conn.execute(_DEALT_WITH, {"post_id": deed.post_id, "by": deed.by, "now": now})
            await _close(conn, deed, DONE, now)

    async def refused(self, deed: Deed, why: str, *, now: datetime) -> None:
        """It could not be carried out; it may be asked for again."""
        async with transaction(self._pool) as conn:
            await _close(conn, deed, why, now)

    async def expire(self, *, before: datetime) -> None:
        """Give up what no job is left for, drop the texts of edits from `before`, and what our posts said a day ago."""
        async with transaction(self._pool) as conn:
            await conn.execute(_LOST, (SkipReason.GIVEN_UP,))
            await conn.execute(_EXPIRE, (before,))


async def _close(conn: Connection, deed: Deed, outcome: str, now: datetime) -> None:
    await conn.execute(_CLOSE, {"deed_id": deed.deed_id, "outcome": storable(outcome), "now": now})
