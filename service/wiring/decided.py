"""What carrying out a moderator's decision works with, on these services."""

from service.answer.decided import Decided
from service.answer.trigger import Bot
from service.domain import Lang
from service.store.deeds import DeedStore
from service.wiring.services import Services


def decided_of(services: Services, bot: Bot) -> Decided:
    """The parts of `service.answer.decided` (and the proof, to the type checker, that every port is matched)."""
    return Decided(
        deeds=DeedStore(services.pool),
        ledger=services.ledger,
        flags=services.flags,
        forum=services.forum,
        own=services.forum,
        bot=bot,
        lang=Lang(services.settings.forum.language),
    )
