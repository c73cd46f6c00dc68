"""The moderators' pages on this database, under these settings."""

from datetime import UTC, datetime

from service.answer.activation import Activation
from service.domain import UserId
from service.moderation.desk import Desk
from service.settings import Settings
from service.store.pool import Pool
from service.store.sessions import SessionStore
from service.wiring.activation import present_activation, turn


class Switches:
    """Matches `service.moderation.desk.Switches`: the same way to turn one as the command line's."""

    def __init__(self, pool: Pool, settings: Settings) -> None:
        self._pool = pool
        self._settings = settings

    async def turn(self, name: str, value: str, *, by: str, user_id: UserId | None, reason: str) -> None:
        await turn(self._pool, self._settings, name, value, by=by, user_id=user_id, reason=reason)

    async def activation(self) -> Activation:
        return await present_activation(self._pool, self._settings)


def moderation_desk(pool: Pool, settings: Settings) -> Desk:
    """What the pages work with."""
    return Desk(
        settings=settings,
        pool=pool,
        sessions=SessionStore(pool),
        switches=Switches(pool, settings),
        clock=lambda: datetime.now(UTC),
    )
