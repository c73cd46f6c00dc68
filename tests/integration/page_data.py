"""Questions with what became of them, for the tests of the moderators' pages."""

from datetime import datetime
from typing import Any

from service.answer.ports import FixedReply
from service.domain import Outcome, Post, Posted, Shadowed, Skipped, Trace
from service.store.ledger import LedgerStore
from service.store.pool import Pool
from tests.integration.store_data import post


async def happened(
    pool: Pool, number: int, outcome: Outcome, at: datetime, trace: Trace | None = None, **of: Any
) -> Post:
    """Post `number` asked, and came to this; `of` changes the post."""
    asked, ledger = post(number, **of), LedgerStore(pool)
    if isinstance(outcome, Skipped):
        await ledger.record_skip(asked, outcome.reason, now=at)
    elif isinstance(outcome, Posted | Shadowed):
        await ledger.claim(asked, now=at)
        await ledger.fix_reply(asked.id, FixedReply("said", outcome.result, ()), trace or Trace())
        await ledger.finish(asked.id, outcome, None, now=at)
    return asked
