"""The reconciler on these services: its share of requests, and how a missed mention becomes a question."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from service.discourse.budget import Budget, Clock, Sleep
from service.discourse.recent import RecentReader
from service.domain import Post, PostId
from service.ingest.index import Indexer
from service.ingest.mend import Reconciler
from service.jobs import NewJob, TaskName, defer_jobs, waiting
from service.settings import Settings
from service.store.inbox import InboxStore, NewDelivery
from service.store.reconcile import ReconcileStore
from service.wiring.members import rules_now
from service.wiring.services import Services

EVENT = "mention_missed"
"""The name, in the inbox, of a question that no webhook brought."""

EVERY_ROUND = 8
"""Requests of a round beside its steps: categories, notifications, the newest posts and the topics active last."""


class MissedMentions:
    """Matches `service.ingest.reconcile_ports.Mentions`: a question goes the way of a delivery."""

    def __init__(self, state: ReconcileStore, inbox: InboxStore, instance: str) -> None:
        self._state = state
        self._inbox = inbox
        self._instance = instance

    async def unheard(self, post_id: PostId) -> bool:
        """Whether neither the ledger nor a trace knows this post."""
        return await self._state.unheard(post_id)

    async def ask(self, post: Post) -> bool:
        """Store the post and its job as a delivery would have; False when a webhook or an earlier call brought it."""
        if await self._state.delivered(post):
            return False
        jobs = (NewJob(TaskName.ANSWER_POST, f"answer:{post.id}"),)
        key = hashlib.sha256(f"{EVENT} {self._instance} {post.id} {post.updated_at.isoformat()}".encode()).digest()
        delivery = NewDelivery(key, self._instance, EVENT, "", waiting(jobs), post)
        return await self._inbox.receive(delivery, lambda conn, inbox_id: defer_jobs(conn, jobs, inbox_id)) is not None


def steps_of(requests_per_minute: float) -> int:
    """How many steps of the walk over everything a round takes, so that it lasts about a minute."""
    return max(1, int(requests_per_minute) - EVERY_ROUND)


@asynccontextmanager
async def open_reconciler(
    services: Services, *, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep
) -> AsyncIterator[Reconciler]:
    """The reconciler, with a reader of the forum of its own that keeps to `reconcile.requests_per_minute`."""
    async with recent_reader(services.settings, clock=clock, sleep=sleep) as forum:
        state = ReconcileStore(services.pool)
        rules = await rules_now(services.rules, services.pool)
        embedder, *others = services.embedders.configured
        yield Reconciler(
            Indexer(services.corpus, forum, services.inbox, embedder, rules, others),
            forum,
            state,
            MissedMentions(state, services.inbox, services.settings.forum.base_url),
            timedelta(minutes=services.settings.limits.max_age_minutes),
        )


def recent_reader(settings: Settings, *, clock: Clock, sleep: Sleep) -> RecentReader:
    """A slow reader of the configured forum."""
    forum = settings.forum
    return RecentReader(
        forum.base_url,
        api_key=forum.api_key.get_secret_value(),
        bot_username=forum.bot_username,
        timeout_seconds=forum.timeout_seconds,
        attempts=1,
        budget=Budget(settings.reconcile.requests_per_minute, clock=clock, sleep=sleep),
    )
