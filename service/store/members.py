"""Members who are not to be quoted: who they are, since when, and by whose decision."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from service.domain import UserId
from service.store.pool import Connection, Pool, connection, transaction
from service.store.removal import opt_out_posts
from service.store.values import storable

_AUTHORS = """
SELECT user_id, username FROM (
    SELECT user_id, username FROM posts WHERE username <> ''
    UNION SELECT (state ->> 'user_id')::bigint, state ->> 'username' FROM inbox WHERE state ->> 'username' <> ''
    UNION SELECT user_id, username FROM departures
    UNION SELECT user_id, username FROM member_changes WHERE num_nonnulls(user_id, username) = 2
    UNION SELECT user_id, username FROM moderator_sessions WHERE user_id IS NOT NULL
    UNION SELECT changed_by_user_id, changed_by FROM flag_changes WHERE changed_by_user_id IS NOT NULL
    UNION SELECT changed_by_user_id, changed_by FROM gate_rule_changes WHERE changed_by_user_id IS NOT NULL
    UNION SELECT by_user_id, by FROM answer_deeds WHERE by_user_id IS NOT NULL
    UNION SELECT made_by_user_id, made_by FROM test_questions WHERE made_by_user_id IS NOT NULL
) AS named (user_id, username) ORDER BY username, user_id
"""

_OPT_OUTS = "SELECT user_id, username, by, reason, since FROM opt_outs ORDER BY opt_out_id"

_ADD = """
INSERT INTO opt_outs (user_id, username, by, reason, since) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT DO NOTHING
"""

_CHANGE = """
INSERT INTO member_changes (kind, user_id, username, by, reason, changed_at) VALUES (%s, %s, %s, %s, %s, %s)
"""


@dataclass(frozen=True, slots=True)
class Account:
    """A member as something that is kept names him; one of the two may not be known."""

    user_id: UserId | None
    username: str | None


@dataclass(frozen=True, slots=True)
class OptOut:
    """A member who is not to be quoted."""

    user_id: UserId | None
    username: str | None
    by: str
    reason: str
    since: datetime


class MemberStore:
    """Keeps who is not to be quoted, and what was decided about members."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def authors(self) -> list[Account]:
        """Every account that wrote, signed in or decided something that is kept, once for each name it had."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(Account)) as cursor:
            await cursor.execute(_AUTHORS)
            return await cursor.fetchall()

    async def departed(self, user_id: UserId) -> str | None:
        """The name of an account that may be gone; None for one that no delivery said so of."""
        async with connection(self._pool) as conn:
            cursor = await conn.execute("SELECT username FROM departures WHERE user_id = %s", (user_id,))
            row = await cursor.fetchone()
        return None if row is None else str(row[0])

    async def left_behind(self) -> list[UserId]:
        """Accounts noticed more than an hour ago: the job that asks the forum about them has given up, or will soon."""
        async with connection(self._pool) as conn:
            cursor = await conn.execute("SELECT user_id FROM departures WHERE noticed_at < now() - interval '1 hour'")
            return [UserId(row[0]) async for row in cursor]

    async def has_not_departed(self, user_id: UserId) -> None:
        """The forum still has this account."""
        async with connection(self._pool) as conn:
            await conn.execute("DELETE FROM departures WHERE user_id = %s", (user_id,))

    async def opt_outs(self) -> list[OptOut]:
        """Who is not to be quoted, the first one first."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(OptOut)) as cursor:
            await cursor.execute(_OPT_OUTS)
            return await cursor.fetchall()

    async def opt_out(self, accounts: Sequence[Account], *, by: str, reason: str, now: datetime) -> int:
        """From now on nothing that these accounts wrote is a source; how many posts left the index."""
        async with transaction(self._pool) as conn:
            await conn.execute("LOCK TABLE opt_outs IN EXCLUSIVE MODE")
            for account in accounts:
                who = account.user_id, _name(account)
                if (await conn.execute(_ADD, (*who, storable(by), storable(reason), now))).rowcount:
                    await note_change(conn, "opted_out", account, by=by, reason=reason, now=now)
        ids = [one.user_id for one in accounts if one.user_id is not None]
        names = [name for one in accounts if (name := _name(one)) is not None]
        left = 0
        while True:
            async with transaction(self._pool) as conn:
                part = await opt_out_posts(conn, ids, names)
            if not part:
                return left
            left += part

    async def opt_in(self, accounts: Sequence[Account], *, by: str, reason: str, now: datetime) -> int:
        """These accounts may be quoted again, once their posts are read anew; how many had opted out."""
        changed = 0
        async with transaction(self._pool) as conn:
            for account in accounts:
                cursor = await conn.execute(
                    "DELETE FROM opt_outs WHERE user_id = %s OR username = %s", (account.user_id, _name(account))
                )
                if cursor.rowcount:
                    changed += cursor.rowcount
                    await note_change(conn, "opted_in", account, by=by, reason=reason, now=now)
        return changed


async def note_departure(conn: Connection, user_id: UserId, username: str) -> None:
    """Keep, in the connection's transaction, that this account may be gone."""
    await conn.execute(
        "INSERT INTO departures (user_id, username) VALUES (%s, %s)"
        " ON CONFLICT (user_id) DO UPDATE SET username = excluded.username",
        (user_id, storable(username)),
    )


async def note_change(conn: Connection, kind: str, account: Account, *, by: str, reason: str, now: datetime) -> None:
    """Keep who decided what about a member, in the connection's transaction."""
    who = account.user_id, _name(account)
    await conn.execute(_CHANGE, (kind, *who, storable(by), storable(reason), now))


def _name(account: Account) -> str | None:
    return None if account.username is None else storable(account.username)
