"""The living index beside a changing forum: deliveries that get lost, doubled and shuffled, and jobs in any order."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from service.app import listen
from service.discourse.budget import Budget
from service.discourse.client import DiscourseClient
from service.discourse.names import folded_name
from service.discourse.recent import RecentReader
from service.domain import CategoryId, EmbeddingProfile, InboxId, PostId, TopicId
from service.errors import Transient
from service.ingest import index
from service.ingest.eligibility import IndexRules
from service.ingest.index import Indexer
from service.ingest.mend import Reconciler, Report
from service.ingest.reconcile import reconcile_all, reconcile_round
from service.simulator.forum import Forum
from service.simulator.webhooks import Hook, Webhooks
from service.store.corpus import CorpusStore
from service.store.inbox import InboxStore
from service.store.pool import Pool
from service.store.reconcile import ReconcileStore
from service.webhook.route import Hook as Receiving
from service.webhook.route import webhook_router
from service.wiring.reconcile import MissedMentions
from tests.changing_forum import BOTS, People, is_public, may_be_found
from tests.e2e.loop import ANY_PORT, SECRET, address, serving
from tests.fakes.embedder import HashEmbedder
from tests.integration.store_data import rows
from tests.simulated import KEY, Clock, room_of, simulator, tiny_forum

PROFILE = EmbeddingProfile("toy", 1, 1, dimensions=4, window_tokens=512)
RULES = IndexRules(frozenset(folded_name(name) for name in BOTS), index_banners=False)
ENOUGH = 100_000


class Posted(httpx.AsyncBaseTransport):
    """What the forum sends, kept instead of delivered."""

    def __init__(self) -> None:
        self.waiting: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.waiting.append(request)
        return httpx.Response(200)


@dataclass
class Life:
    """The forum, its people, and the index that follows them."""

    people: People
    pool: Pool
    indexer: Indexer
    reconciler: Reconciler
    sent: Posted
    webhooks: Webhooks
    web: httpx.AsyncClient
    chance: random.Random
    asked: list[int] = field(default_factory=list)
    told: set[tuple[str, int]] = field(default_factory=set)
    """What a processed event said to be private, as long as it is."""

    @property
    def forum(self) -> Forum:
        return self.people.forum

    async def change(self, *, dropped: float, doubled: float) -> str:
        """One change; its deliveries are lost or doubled by chance and wait to be delivered."""
        before = len(self.sent.waiting)
        name = self.people.act()
        await self.webhooks.drain()
        kept = [one for one in self.sent.waiting[before:] if self.chance.random() >= dropped]
        twice = [one for one in kept if self.chance.random() < doubled]
        self.sent.waiting[before:] = [*kept, *twice]
        self.told = {one for one in self.told if self._private(*one)}
        return name

    async def deliver(self, *, leave: int = 0, patiently: bool = False) -> None:
        """Deliver in any order until only so many wait, and do their jobs after each; `patiently` as for `work`."""
        waiting = self.sent.waiting
        while len(waiting) > leave:
            request = waiting.pop(self.chance.randrange(len(waiting)))
            headers = {key: value for key, value in request.headers.items() if key.startswith(("x-", "content-type"))}
            answer = await self.web.post("/webhooks/discourse", content=request.content, headers=headers)
            assert answer.status_code == 200, answer.text
            await self.work(patiently=patiently)
            self._hear(request)

    async def work(self, *, patiently: bool = False) -> None:
        """Do every job: those of one lock in their order, else in any; `patiently`, what fails is left for later."""
        failed: set[int] = set()
        while True:
            jobs = await rows(
                self.pool, "SELECT id, task_name, args, lock FROM procrastinate_jobs WHERE status = 'todo' ORDER BY id"
            )
            first: dict[str, tuple[Any, ...]] = {}
            for job in jobs:
                first.setdefault(job[3] or f"job {job[0]}", job)
            ready = [job for job in first.values() if job[0] not in failed]
            if not ready:
                return
            job_id, task, args, _ = self.chance.choice(ready)
            try:
                await self._do(task, args)
            except Transient:
                if not patiently:
                    raise
                failed.add(job_id)
            else:
                await rows(self.pool, "DELETE FROM procrastinate_jobs WHERE id = %s RETURNING id", job_id)

    async def reconcile(self, *, whole: bool) -> Report:
        now = self.people.clock()
        if whole:
            report = await reconcile_all(self.reconciler, now=now, progress=lambda *_: None)
        else:
            report = await reconcile_round(self.reconciler, steps=4, now=now)
        assert report is not None
        return report

    async def _do(self, task: str, args: Mapping[str, int]) -> None:
        match task:
            case "index_post":
                await index.index_post(InboxId(args["inbox_id"]), self.indexer)
            case "remove_post":
                await index.remove_post(InboxId(args["inbox_id"]), self.indexer)
            case "refresh_post":
                await index.refresh_post(PostId(args["post_id"]), self.indexer)
            case "refresh_topic":
                await index.refresh_topic(TopicId(args["topic_id"]), self.indexer)
            case "refresh_categories":
                await index.refresh_categories(self.indexer)
            case "hide_topic":
                await CorpusStore(self.pool).hide_topic(TopicId(args["topic_id"]))
            case "close_category":
                await CorpusStore(self.pool).close_category(CategoryId(args["category_id"]))
            case "answer_post":
                self.asked.append(args["inbox_id"])
            case _:
                raise AssertionError(task)

    def _hear(self, request: httpx.Request) -> None:
        """Remember what this delivery says to be private, if it still is."""
        [(kind, value)] = json.loads(request.content).items()
        match kind:
            case "post":
                private = value["deleted_at"] or value["hidden"] or value["user_deleted"]
            case "topic":
                listed = value["visible"] and value["archetype"] == "regular" and not value["deleted_at"]
                category = self.forum.categories.get(value["category_id"])
                private = not listed or category is None or category.read_restricted
            case "category":
                private = value["read_restricted"]
            case _:
                private = False
        if private and self._private(kind, value["id"]):
            self.told.add((kind, value["id"]))

    def _private(self, kind: str, number: int) -> bool:
        if kind == "post":
            return not may_be_found(self.forum, self.forum.posts[number])
        if kind == "topic":
            return not is_public(self.forum, self.forum.topics[number])
        return self.forum.categories[number].read_restricted


@asynccontextmanager
async def life(pool: Pool, folder: Path, *, seed: int) -> AsyncIterator[Life]:
    """A small forum, of which the index knows nothing yet."""
    chance = random.Random(seed)
    async with AsyncExitStack() as stack:
        socket = stack.enter_context(listen(ANY_PORT))
        base_url, clock, sent = address(socket), Clock(), Posted()
        forum = tiny_forum(folder, base_url=base_url)
        people = People(forum, clock, chance)
        people.fill(120)
        app = simulator(
            forum,
            clock,
            hook=Hook("http://service.test/webhooks/discourse", SECRET),
            hook_client=httpx.AsyncClient(transport=sent),
        )
        await stack.enter_async_context(serving(app, socket))
        webhooks = room_of(app).webhooks
        assert webhooks is not None
        stack.push_async_callback(webhooks.close)
        account: dict[str, Any] = {"api_key": KEY, "bot_username": "ariane", "timeout_seconds": 10.0, "attempts": 1}
        reader = await stack.enter_async_context(DiscourseClient(base_url, **account))
        budget = Budget(60, clock=count().__next__, sleep=asyncio.sleep)  # a second goes by whenever it looks
        slow = await stack.enter_async_context(RecentReader(base_url, **account, budget=budget))
        corpus, inbox, embedder = CorpusStore(pool), InboxStore(pool), HashEmbedder(PROFILE)
        receiving = Receiving((SECRET.encode(),), 1_000_000, "ariane", inbox, corpus.categories)
        service = FastAPI()
        service.include_router(webhook_router(receiving))
        transport = httpx.ASGITransport(service)
        web = await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url="http://service.test"))
        state = ReconcileStore(pool)
        reconciler = Reconciler(
            Indexer(corpus, slow, inbox, embedder, RULES),
            slow,
            state,
            MissedMentions(state, inbox, base_url),
            timedelta(days=1),
        )
        indexer = Indexer(corpus, reader, inbox, embedder, RULES)
        yield Life(people, pool, indexer, reconciler, sent, webhooks, web, chance)
