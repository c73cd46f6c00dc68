"""The rows of a switch: its value, and the change that is kept of it, written together."""

from dataclasses import dataclass

from service.domain import UserId
from service.store.flag_names import DEFAULT
from service.store.pool import Connection
from service.store.values import storable

_LOCK = "SELECT pg_advisory_xact_lock(hashtext('flags'))"

_CHANGE = """
INSERT INTO flag_changes (name, old_value, new_value, changed_by, changed_by_user_id, reason, signature)
VALUES (%(name)s, (SELECT value FROM flags WHERE name = %(name)s), %(value)s, %(by)s, %(user_id)s, %(reason)s,
        %(signature)s)
"""

_SET = """
INSERT INTO flags (name, value, changed_by, signature) VALUES (%(name)s, %(value)s, %(by)s, %(signature)s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, changed_by = excluded.changed_by,
    signature = excluded.signature, changed_at = now()
"""


@dataclass(frozen=True, slots=True)
class NewValue:
    """What a switch is turned to, by whom and why; `signature` is of the configuration it is turned on under."""

    name: str
    value: str
    by: str
    reason: str
    user_id: UserId | None = None
    signature: str | None = None


async def put_flag(conn: Connection, new: NewValue) -> None:
    """Turn a switch, whatever may be said against it, and record the change; in a transaction."""
    await conn.execute(_LOCK)  # so that old_value is the truth
    change = {
        "name": new.name,
        "value": new.value,
        "by": storable(new.by),
        "user_id": new.user_id,
        "reason": storable(new.reason),
        "signature": new.signature,
    }
    await conn.execute(_CHANGE, change)
    if new.value == DEFAULT:
        await conn.execute("DELETE FROM flags WHERE name = %(name)s", change)
    else:
        await conn.execute(_SET, change)
