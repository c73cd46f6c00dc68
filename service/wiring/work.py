"""What the jobs do on these services: each method is one call of a use case."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from service.answer import decided
from service.answer.opinion import hear
from service.answer.respond import Respond, give_up, respond
from service.answer.trigger import Bot
from service.answer.unanswered import group_unanswered
from service.discourse.names import folded_name
from service.domain import CategoryId, InboxId, Lang, Post, PostId, PostType, TopicId, UserId
from service.errors import Misconfigured, Transient
from service.ingest import index
from service.ingest.index import Indexer
from service.ingest.reconcile import reconcile_round
from service.ingest.share import embed_part_of_each
from service.jobs import Work
from service.stop import until_stopped
from service.store.alerts import AlertStore
from service.store.crawl import CrawlStore
from service.store.members import MemberStore
from service.store.signals import SignalStore
from service.store.trials import TrialStore
from service.store.withdrawn import sweep
from service.telemetry import log
from service.wiring.decided import decided_of, expire_decided, unanswered_of
from service.wiring.members import erase_departed, rules_now
from service.wiring.reconcile import open_reconciler, steps_of
from service.wiring.services import Services
from service.wiring.trial import try_question


class Worker:
    """Matches `service.jobs.Work`."""

    def __init__(self, services: Services, stop: asyncio.Event) -> None:
        self._services = services
        self._stop = stop
        forum = services.settings.forum
        self._respond = Respond(
            stages=services.stages,
            flags=services.flags,
            ledger=services.ledger,
            forum=services.forum,
            bot=Bot(forum.bot_username, frozenset(folded_name(name) for name in forum.known_bots)),
            limits=services.settings.limits,
            default_lang=Lang(forum.language),
            gate=services.gate.base,
            turns=services.turns,
            threads=services.threads,
        )
        self._decided = decided_of(services, self._respond.bot)
        self._signals = SignalStore(services.pool)

    async def _indexer(self) -> Indexer:
        at = self._services
        embedder, *others = at.embedders.configured
        return Indexer(at.corpus, at.forum, at.inbox, embedder, await rules_now(at.rules, at.pool), others)

    async def index_post(self, inbox_id: InboxId) -> None:
        await index.index_post(inbox_id, await self._indexer())

    async def remove_post(self, inbox_id: InboxId) -> None:
        await index.remove_post(inbox_id, await self._indexer())

    async def hide_topic(self, topic_id: TopicId) -> None:
        await self._services.corpus.hide_topic(topic_id)

    async def close_category(self, category_id: CategoryId) -> None:
        await self._services.corpus.close_category(category_id)

    async def refresh_post(self, post_id: PostId) -> None:
        await index.refresh_post(post_id, await self._indexer())

    async def refresh_topic(self, topic_id: TopicId) -> None:
        await index.refresh_topic(topic_id, await self._indexer())

    async def refresh_categories(self) -> None:
        await index.refresh_categories(await self._indexer())

    async def reconcile(self) -> None:
        per_minute = self._services.settings.reconcile.requests_per_minute
        if not per_minute:
            return
        try:
            async with open_reconciler(self._services) as at:
                # A round takes a minute, most of it waiting for its turn: it must not hold up the process's end.
                await until_stopped(self._stop, reconcile_round(at, steps=steps_of(per_minute), now=_now()))
        except (Transient, Misconfigured) as exc:  # the next round comes in a minute
            log.warning("reconcile_stopped", error=str(exc))

    async def embed_pending(self) -> int:
        at = self._services
        return await embed_part_of_each(at.corpus, at.embedders.configured, CrawlStore(at.pool))

    async def answer_post(self, inbox_id: InboxId) -> None:
        post = await self._question(inbox_id)
        if post is not None:
            await hear(post, self._respond.bot, self._signals)
            deps = replace(
                self._respond,
                gate=await self._services.gate.read(),  # moderators may have added rules
                stages=await self._services.embedders.applied(self._respond.stages),
            )
            await respond(post, deps, now=_now())
            await self._services.inbox.done(inbox_id, "answer_post")

    async def give_up(self, inbox_id: InboxId) -> None:
        delivery = await self._services.inbox.delivery(inbox_id)
        if delivery is not None:
            await give_up(delivery.post, self._respond, now=_now())
            await self._services.inbox.done(inbox_id, "answer_post")

    async def erase_member(self, user_id: UserId) -> None:
        services = self._services
        if await erase_departed(user_id, services.pool, services.forum.groups_of, now=_now()):
            log.info("member_erased")

    async def carry_out(self, deed_id: int, *, last_try: bool) -> None:
        await decided.carry_out(deed_id, self._decided, last_try=last_try, now=_now())

    async def try_question(self, trial_id: int) -> None:
        await try_question(trial_id, self._services)

    async def group_unanswered(self) -> None:
        await group_unanswered(unanswered_of(self._services, now=_now()), self._services.embedder)

    async def expire(self) -> None:
        await self._services.inbox.expire(self._services.settings.retention, now=_now())
        await self._services.ledger.expire(self._services.settings.retention, now=_now())
        await TrialStore(self._services.pool).expire(now=_now())
        await expire_decided(self._services, now=_now())
        await self._services.corpus.withdraw_private()
        await sweep(self._services.pool)
        await AlertStore(self._services.pool).drop_restored()
        for user_id in await MemberStore(self._services.pool).left_behind():
            await self.erase_member(user_id)

    async def _question(self, inbox_id: InboxId) -> Post | None:
        """The delivered post; one whose text is not kept is read as the public sees it, without text if it doesn't."""
        delivery = await self._services.inbox.delivery(inbox_id)
        if delivery is None:
            return None
        if delivery.has_text:
            return delivery.post
        read = await self._services.forum.public_post(delivery.post.id)
        if read is None:
            gone = delivery.post.post_type == PostType.REGULAR and await self._is_public(delivery.post.category_id)
            return replace(delivery.post, deleted=gone)
        return replace(read, cooked="") if read.hidden else read  # the public reads a notice in place of a hidden text

    async def _is_public(self, category_id: CategoryId | None) -> bool:
        category = (await self._services.corpus.categories()).get(category_id or CategoryId(0))
        return category is not None and not category.read_restricted


def _now() -> datetime:
    return datetime.now(UTC)


def work_of(services: Services, stop: asyncio.Event) -> Work:
    """The jobs' work on these services, which ends soon after `stop` is set (and the proof, to the type checker, that
    every port is matched)."""
    return Worker(services, stop)
