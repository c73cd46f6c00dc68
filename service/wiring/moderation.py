"""The moderators' pages on this database, under these settings."""

from datetime import UTC, datetime

from service.moderation.desk import Desk
from service.settings import Settings
from service.store.pool import Pool
from service.store.sessions import SessionStore


def moderation_desk(pool: Pool, settings: Settings) -> Desk:
    """What the pages work with."""
    return Desk(settings=settings, pool=pool, sessions=SessionStore(pool), clock=lambda: datetime.now(UTC))
