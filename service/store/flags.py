"""The moderators' switches: read in one query at the moment of use, every change audited."""

from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from service.answer.ports import Flags
from service.domain import UserId
from service.errors import Rejected
from service.store import evaluations
from service.store.flag_names import DEFAULT, EMBEDDING_PROFILE, check, state
from service.store.flag_rows import NewValue, put_flag
from service.store.pool import Connection, Pool, connection, transaction
from service.store.profiles import named_profile

PIPELINE = "posts_pipeline"


@dataclass(frozen=True, slots=True)
class FlagChange:
    """Who turned which switch from what to what, when and why; without a user id it was done from the command line."""

    name: str
    old_value: str | None
    new_value: str
    changed_at: datetime
    changed_by: str
    reason: str
    changed_by_user_id: UserId | None = None


async def _checked(conn: Connection, name: str, value: str, signature: str) -> None:
    check(name, value)
    if name == PIPELINE and value == "on" and not await evaluations.passed(conn, signature):
        raise Rejected("posts_pipeline can't be turned on: this configuration has no passed test", status=409)
    if name == EMBEDDING_PROFILE and value != DEFAULT and not (await named_profile(conn, value)).index_built:
        raise Rejected(f"the index of {value} isn't built: `ariane profiles activate {value}` does both", status=409)


class FlagStore:
    """Matches `service.answer.ports.FlagReader`, and changes flags for the moderators."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read(self) -> Flags:
        """The flags as they are now; one that was never set is off. Raises Misconfigured for a value we don't know."""
        async with connection(self._pool) as conn:
            rows = await (await conn.execute("SELECT name, value, coalesce(signature, '') FROM flags")).fetchall()
        signature = next((signature for name, _, signature in rows if name == PIPELINE), "")
        return state(((name, value) for name, value, _ in rows), signature)

    async def set(
        self, name: str, value: str, *, by: str, reason: str, signature: str = "", user_id: UserId | None = None
    ) -> None:
        """Change a flag and record who did it and why, in one transaction; raises Rejected with what is allowed.

        posts_pipeline goes on only under the `signature` of a configuration whose newest run passed
        (service.wiring.activation says what is missing), embedding_profile only to one whose index is built. `user_id`
        is of whoever signed in by the forum.
        """
        async with transaction(self._pool) as conn:
            await _checked(conn, name, value, signature)
            under = signature if name == PIPELINE and value == "on" else None
            await put_flag(conn, NewValue(name, value, by, reason, user_id, under))

    async def changes(self, limit: int) -> list[FlagChange]:
        """The latest changes, newest first."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(FlagChange)) as cursor:
            await cursor.execute(
                "SELECT name, old_value, new_value, changed_at, changed_by, reason, changed_by_user_id"
                " FROM flag_changes ORDER BY change_id DESC LIMIT %s",
                (limit,),
            )
            return await cursor.fetchall()
