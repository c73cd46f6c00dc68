"""The moderators' pages on this database, under these settings."""

from datetime import UTC, datetime

from service.answer.activation import Activation
from service.answer.gate.in_use import GateInUse
from service.domain import EmbeddingProfile, RerankerProfile, UserId
from service.moderation.desk import Desk
from service.settings import Settings
from service.store.gate_rules import GateRuleStore
from service.store.pool import Pool
from service.store.sessions import SessionStore
from service.wiring.activation import present_activation, sign_off, turn
from service.wiring.configuration import embedding_profile, reranker_profile


class Switches:
    """Matches `service.moderation.desk.Switches`: the same way to turn one as the command line's."""

    def __init__(self, pool: Pool, settings: Settings) -> None:
        self._pool = pool
        self._settings = settings

    async def turn(self, name: str, value: str, *, by: str, user_id: UserId | None, reason: str) -> None:
        await turn(self._pool, self._settings, name, value, by=by, user_id=user_id, reason=reason)

    async def sign_off(self, tried: str, *, passed: bool, by: str, reason: str) -> None:
        await sign_off(self._pool, self._settings, tried, passed=passed, by=by, reason=reason)

    async def activation(self) -> Activation:
        return await present_activation(self._pool, self._settings)


class ModelsInUse:
    """Matches `service.moderation.desk.ModelsInUse`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def embedder(self) -> EmbeddingProfile:
        return embedding_profile(self._settings.models)

    def reranker(self) -> RerankerProfile:
        return reranker_profile(self._settings.models)


def moderation_desk(pool: Pool, settings: Settings) -> Desk:
    """What the pages work with."""
    return Desk(
        settings=settings,
        pool=pool,
        sessions=SessionStore(pool),
        switches=Switches(pool, settings),
        models=ModelsInUse(settings),
        gate=GateInUse(settings.gate, GateRuleStore(pool)),
        clock=lambda: datetime.now(UTC),
    )
