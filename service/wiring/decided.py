"""What decisions on answers, signals and unanswered questions work with, on these services."""

from datetime import datetime, timedelta

from service.answer.decided import Decided
from service.answer.trigger import Bot
from service.domain import Lang
from service.store.deeds import DeedStore
from service.store.signals import SignalStore
from service.store.unanswered import UnansweredStore
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


def unanswered_of(services: Services, *, now: datetime) -> UnansweredStore:
    """The questions that stayed without an answer, none of which is older than its retention."""
    return UnansweredStore(services.pool, since=now - timedelta(days=services.settings.retention.unanswered_days))


async def expire_decided(services: Services, *, now: datetime) -> None:
    """Drop texts of decisions, signals and unanswered questions that are past their retention."""
    retention = services.settings.retention
    oldest = now - timedelta(days=retention.trace_days)
    await DeedStore(services.pool).expire(before=oldest)
    await SignalStore(services.pool).expire(before=oldest)
    await unanswered_of(services, now=now).expire(retention, now=now)
