"""The rules that moderators add to the input gate, and every change of them with who made it and why."""

import json
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row, scalar_row
from psycopg.types.json import Jsonb

from service.domain import UserId
from service.errors import Rejected
from service.store.pool import Pool, connection, transaction
from service.store.values import storable, to_json

MAX_RULES = 50
"""Each is a label of a metric, and more belong into a file."""

_CHANGE = """
INSERT INTO gate_rule_changes (rule_id, old_rule, new_rule, changed_by, changed_by_user_id, reason)
VALUES (
    %(rule_id)s, (SELECT rule FROM gate_rules WHERE rule_id = %(rule_id)s), %(rule)s, %(by)s, %(user_id)s, %(reason)s
)
"""

_PUT = """
INSERT INTO gate_rules (rule_id, rule, added_by) VALUES (%(rule_id)s, %(rule)s, %(by)s)
ON CONFLICT (rule_id) DO UPDATE SET rule = excluded.rule, added_by = excluded.added_by, added_at = now()
"""


@dataclass(frozen=True, slots=True)
class AddedRule:
    """A rule as JSON, and who added it."""

    rule_id: str
    text: str
    added_at: datetime
    added_by: str


@dataclass(frozen=True, slots=True)
class RuleChange:
    """Who added (`what` is "added"), changed or removed which rule, and why."""

    rule_id: str
    what: str
    changed_at: datetime
    changed_by: str
    changed_by_user_id: UserId | None
    reason: str


class GateRuleStore:
    """Matches `service.answer.gate.in_use.AddedRules`, and changes them for the moderators."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def version(self) -> int:
        """A number that grows with every change."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=scalar_row) as cursor:
            await cursor.execute("SELECT coalesce(max(change_id), 0) FROM gate_rule_changes")
            return int(await cursor.fetchone() or 0)

    async def texts(self) -> dict[str, str]:
        """Each rule as JSON, by its id."""
        return {one.rule_id: one.text for one in await self.rules()}

    async def rules(self) -> list[AddedRule]:
        """Every rule, in the order of their ids."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(AddedRule)) as cursor:
            await cursor.execute(
                "SELECT rule_id, rule::text AS text, added_at, added_by FROM gate_rules ORDER BY rule_id"
            )
            return await cursor.fetchall()

    async def put(self, rule_id: str, text: str, *, by: str, user_id: UserId | None, reason: str) -> None:
        """Add a rule, or put it in the place of an added one; raises Rejected (409) beyond MAX_RULES."""
        values = self._values(rule_id, by, user_id, reason) | {"rule": Jsonb(to_json(json.loads(text)))}
        async with transaction(self._pool) as conn:
            await conn.execute("SELECT pg_advisory_xact_lock(hashtext('gate_rules'))")  # so that old_rule is the truth
            await conn.execute(_CHANGE, values)
            await conn.execute(_PUT, values)
            row = await (await conn.execute("SELECT count(*) FROM gate_rules")).fetchone()
            if row and row[0] > MAX_RULES:
                raise Rejected(f"{MAX_RULES} added rules at most: put them into gate.rules_file", status=409)

    async def remove(self, rule_id: str, *, by: str, user_id: UserId | None, reason: str) -> None:
        """Take an added rule away; raises Rejected (404) where there is none of that id."""
        values = self._values(rule_id, by, user_id, reason) | {"rule": None}
        async with transaction(self._pool) as conn:
            await conn.execute("SELECT pg_advisory_xact_lock(hashtext('gate_rules'))")
            await conn.execute(_CHANGE, values)
            if not (await conn.execute("DELETE FROM gate_rules WHERE rule_id = %(rule_id)s", values)).rowcount:
                raise Rejected(f"there is no added rule {rule_id!r}", status=404)

    async def changes(self, limit: int) -> list[RuleChange]:
        """The latest changes, newest first."""
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(RuleChange)) as cursor:
            await cursor.execute(
                "SELECT rule_id, CASE WHEN new_rule IS NULL THEN 'removed' WHEN old_rule IS NULL THEN 'added'"
                " ELSE 'changed' END AS what, changed_at, changed_by, changed_by_user_id, reason"
                " FROM gate_rule_changes ORDER BY change_id DESC LIMIT %s",
                (limit,),
            )
            return await cursor.fetchall()

    def _values(self, rule_id: str, by: str, user_id: UserId | None, reason: str) -> dict[str, object]:
        return {"rule_id": storable(rule_id), "by": storable(by), "user_id": user_id, "reason": storable(reason)}
