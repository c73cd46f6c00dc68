"""What the moderators' pages work with, and how a request reaches it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Protocol, cast

from fastapi import Depends, Request

from service.answer.activation import Activation
from service.answer.gate.in_use import GateInUse
from service.domain import EmbeddingProfile, RerankerProfile, UserId
from service.moderation.place import Site, site_of
from service.settings import Settings
from service.store.pool import Pool
from service.store.sessions import SessionLife, SessionStore


class Switches(Protocol):
    """The switches under the configuration in use."""

    async def turn(self, name: str, value: str, *, by: str, user_id: UserId | None, reason: str) -> None:
        """Turn a switch; raises Rejected for what can't be (422) and with what is missing for it (409)."""
        ...

    async def sign_off(self, tried: str, *, passed: bool, by: str, reason: str) -> None:
        """Record a verdict on the configuration `tried`, its signature; raises Rejected (422, 409)."""
        ...

    async def activation(self) -> Activation:
        """How that configuration stands to the one that was tested and switched on."""
        ...


class ModelsInUse(Protocol):
    """What the settings say of the models; both raise Misconfigured for a profile that nobody knows."""

    def embedder(self) -> EmbeddingProfile: ...

    def reranker(self) -> RerankerProfile: ...


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything a page may need; pages make their stores on `pool`."""

    settings: Settings
    pool: Pool
    sessions: SessionStore
    switches: Switches
    models: ModelsInUse
    gate: GateInUse
    clock: Callable[[], datetime]

    @property
    def site(self) -> Site:
        return site_of(self.settings.moderation)

    @property
    def secret(self) -> bytes:
        """The secret that we share with the forum; empty when there is none."""
        return self.settings.moderation.connect_secret.get_secret_value().encode()

    @property
    def life(self) -> SessionLife:
        chosen = self.settings.moderation
        return SessionLife(timedelta(minutes=chosen.idle_minutes), timedelta(hours=chosen.absolute_hours))


async def desk(request: Request) -> Desk:
    return cast("Desk", request.app.state.desk)


Here = Annotated[Desk, Depends(desk)]
