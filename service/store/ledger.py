"""The ledger: one row an asking post, which makes a reply happen once; and the traces."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import LiteralString, assert_never

from psycopg.types.json import Jsonb

from service.answer.ports import Claim, FixedReply, RecentAnswers
from service.domain import (
    CategoryId,
    Duplicate,
    Outcome,
    Post,
    Posted,
    PostId,
    Result,
    Shadowed,
    Skipped,
    SkipReason,
    TopicId,
    Trace,
    UserId,
)
from service.settings import RetentionSettings
from service.store.pool import Pool, connection, transaction
from service.store.values import storable, to_json

TRACED_BODY_CHARS = 300
"""What a trace keeps of a candidate's text: enough to recognise it."""

_FIX = """
UPDATE answers SET
    result = CASE WHEN raw IS NULL THEN %(result)s ELSE result END,
    cited = CASE WHEN raw IS NULL THEN %(cited)s::bigint[] ELSE cited END,
    trace = CASE WHEN raw IS NULL THEN %(trace)s::jsonb ELSE trace END,
    raw = coalesce(raw, %(raw)s)
WHERE post_id = %(post_id)s
RETURNING raw, result, cited
"""

_FINISH = """
WITH claimed AS (
    SELECT post_id, topic_id, private, coalesce(%(trace)s::jsonb, trace, '{}') AS trace FROM answers
    WHERE post_id = %(post_id)s AND finished_at IS NULL FOR UPDATE
), recorded AS (
    INSERT INTO traces (post_id, topic_id, private, recorded_at, outcome, reason, zone, mode, trace)
    SELECT post_id, topic_id, private, %(now)s, %(outcome)s, %(reason)s, trace ->> 'zone', trace ->> 'mode', trace
    FROM claimed
)
UPDATE answers SET outcome = %(outcome)s, finished_at = %(now)s, trace = NULL,
    reply_post_id = %(reply_post_id)s, reply_post_number = %(reply_post_number)s
FROM claimed WHERE answers.post_id = claimed.post_id
"""

_RECENT = """
SELECT count(*) FILTER (WHERE user_id = %(user_id)s), count(*) FILTER (WHERE topic_id = %(topic_id)s), count(*),
    count(*) FILTER (WHERE category_id = %(category_id)s)
FROM answers WHERE claimed_at >= %(since)s AND (outcome IS NULL OR outcome IN ('posted', 'shadowed'))
"""


def outcome_words(outcome: Outcome) -> tuple[str, str | None]:
    """The words an outcome is stored under: what happened, and its result or reason."""
    match outcome:
        case Posted(result=result):
            return "posted", result.value
        case Shadowed(result=result):
            return "shadowed", result.value
        case Skipped(reason=reason):
            return "skipped", reason.value
        case Duplicate():
            return "duplicate", None
    assert_never(outcome)


def stored_trace(trace: Trace) -> Jsonb:
    """The trace as JSON, each candidate's text cut."""
    return Jsonb(
        to_json(replace(trace, candidates=[replace(c, body=c.body[:TRACED_BODY_CHARS]) for c in trace.candidates]))
    )


def _reply(raw: str | None, result: str, cited: list[int]) -> FixedReply | None:
    return None if raw is None else FixedReply(raw, Result(result), tuple(map(PostId, cited)))


class LedgerStore:
    """Matches `service.answer.ports.Ledger`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def claim(self, post: Post, *, now: datetime) -> Claim:
        """Claim this post for an answer, or find the claim that is already there."""
        async with connection(self._pool) as conn:
            while True:  # a claim that is released between the two statements is neither inserted nor found
                cursor = await conn.execute(
                    "INSERT INTO answers (post_id, topic_id, post_number, user_id, private, claimed_at)"
                    " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (post_id) DO NOTHING",
                    (post.id, post.topic_id, post.post_number, post.user_id, post.archetype == "private_message", now),
                )
                if cursor.rowcount:
                    return Claim(post.id, fresh=True, finished=False, reply=None)
                cursor = await conn.execute(
                    "SELECT finished_at IS NOT NULL, raw, result, cited FROM answers WHERE post_id = %s", (post.id,)
                )
                row = await cursor.fetchone()
                if row is not None:
                    return Claim(post.id, fresh=False, finished=row[0], reply=_reply(*row[1:]))

    async def fix_reply(self, post_id: PostId, reply: FixedReply, trace: Trace) -> FixedReply:
        """Store the reply and its trace with the claim unless one is stored already; returns the reply that counts."""
        async with connection(self._pool) as conn:
            cursor = await conn.execute(
                _FIX,
                {
                    "post_id": post_id,
                    "raw": storable(reply.raw),
                    "result": reply.result,
                    "cited": list(reply.cited),
                    "trace": stored_trace(trace),
                },
            )
            row = await cursor.fetchone()
        counts = None if row is None else _reply(*row)
        if counts is None:
            raise LookupError(f"post {post_id} has no claim to fix a reply with")
        return counts

    async def finish(
        self,
        post_id: PostId,
        outcome: Outcome,
        trace: Trace | None,
        *,
        reply_post_number: int | None = None,
        now: datetime,
    ) -> None:
        """Close the claim and store the trace with its outcome, in one transaction; once only, the first one counts.

        Without a trace, the one that was stored with the reply counts.
        """
        what, why = outcome_words(outcome)
        async with connection(self._pool) as conn:
            await conn.execute(
                _FINISH,
                {
                    "post_id": post_id,
                    "outcome": what,
                    "reason": why,
                    "trace": None if trace is None else stored_trace(trace),
                    "reply_post_id": outcome.reply_post_id if isinstance(outcome, Posted) else None,
                    "reply_post_number": reply_post_number,
                    "now": now,
                },
            )

    async def release(self, post_id: PostId) -> None:
        """Give an unfinished claim without text back, so that a later event may answer."""
        async with connection(self._pool) as conn:
            await conn.execute(
                "DELETE FROM answers WHERE post_id = %s AND finished_at IS NULL AND raw IS NULL", (post_id,)
            )

    async def record_skip(
        self, post: Post, reason: SkipReason, *, now: datetime, waited_seconds: float | None = None
    ) -> None:
        """Store a trace that says why this post got no answer (without its text), and how long a question waited."""
        kept = {} if waited_seconds is None else {"waited_seconds": waited_seconds}
        async with connection(self._pool) as conn:
            await conn.execute(
                "INSERT INTO traces (post_id, topic_id, private, recorded_at, outcome, reason, trace)"
                " VALUES (%s, %s, %s, %s, 'skipped', %s, %s)",
                (post.id, post.topic_id, post.archetype == "private_message", now, reason, Jsonb(kept)),
            )

    async def place(self, post_id: PostId, category_id: CategoryId) -> None:
        """Note the category that a claimed post stands in, which its topic tells."""
        async with connection(self._pool) as conn:
            await conn.execute("UPDATE answers SET category_id = %s WHERE post_id = %s", (category_id, post_id))

    async def recent(
        self,
        *,
        user_id: UserId | None,
        topic_id: TopicId,
        category_id: CategoryId | None = None,
        since: datetime,
    ) -> RecentAnswers:
        """How many posts were answered or are being answered since then; skipped ones don't count."""
        values = {"user_id": user_id, "topic_id": topic_id, "category_id": category_id, "since": since}
        async with connection(self._pool) as conn:
            cursor = await conn.execute(_RECENT, values)
            row = await cursor.fetchone()
        return RecentAnswers(*row) if row else RecentAnswers(0, 0, 0)

    async def help_given(self, topic_id: TopicId) -> bool:
        """Whether a bare mention in this topic got its help reply, or is about to."""
        return await self._exists(
            "SELECT EXISTS (SELECT FROM answers WHERE topic_id = %s AND result = %s"
            " AND outcome IS DISTINCT FROM 'skipped')",
            topic_id,
            Result.HELPED,
        )

    async def is_own_reply(self, topic_id: TopicId, post_number: int) -> bool:
        """Whether that post is a reply of ours."""
        return await self._exists(
            "SELECT EXISTS (SELECT FROM answers WHERE topic_id = %s AND reply_post_number = %s)", topic_id, post_number
        )

    async def _exists(self, query: LiteralString, *values: object) -> bool:
        async with connection(self._pool) as conn:
            row = await (await conn.execute(query, values)).fetchone()
        return row is not None and bool(row[0])

    async def expire(self, retention: RetentionSettings, *, now: datetime) -> int:
        """Delete the traces that are older than the settings allow; how many.

        The ledger's rows stay, but not their texts, which quote posts that may have been withdrawn since.
        """
        oldest = now - timedelta(days=retention.trace_days)
        async with transaction(self._pool) as conn:
            await conn.execute("UPDATE answers SET raw = '' WHERE finished_at < %s AND raw <> ''", (oldest,))
            return (await conn.execute("DELETE FROM traces WHERE recorded_at < %s", (oldest,))).rowcount
