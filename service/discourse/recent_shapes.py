"""What the forum told the bot's account of: the rows of `/notifications.json` that concern us."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum

from service.discourse.shapes import fields_of, id_of
from service.domain import PostId
from service.errors import Rejected


class NotificationType(IntEnum):
    """Discourse's types of notifications by which a post addresses somebody (docs/discourse, section 5)."""

    MENTIONED = 1
    REPLIED = 2


@dataclass(frozen=True, slots=True)
class Notice:
    """The forum told the bot's account of a post that mentions it or replies to it."""

    id: int
    post_id: PostId
    created_at: datetime


def notice_from_json(row: object) -> Notice | None:
    """A row of `/notifications.json` that tells of a mention or a reply; None for any other, or one that is broken."""
    try:
        fields = fields_of(row, "notification")
        if fields.get("notification_type") not in tuple(NotificationType):
            return None
        data = fields_of(fields.get("data"), "notification.data")
        created = datetime.fromisoformat(str(fields.get("created_at")))
        return Notice(
            id_of(fields, "id", "notification"),
            PostId(id_of(data, "original_post_id", "notification.data")),
            created if created.tzinfo else created.replace(tzinfo=UTC),
        )
    except (Rejected, ValueError):
        return None
