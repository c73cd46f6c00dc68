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
from service.ingest import index
from service.ingest.eligibility import IndexRules
from service.ingest.index import Indexer
from service.ingest.mend import Reconciler, Report
from service.ingest.ports import TopicPost
from service.ingest.reconcile import reconcile_all, reconcile_round
from service.ingest.text import DISCOURSE, digest, embedded_text
from service.lexer import query_lexemes, term_counts
from service.simulator.forum import STUB, Forum
from service.simulator.webhooks import Hook, Webhooks
from service.store.corpus import CorpusStore
from service.store.inbox import InboxStore
from service.store.pool import Pool
from service.store.reconcile import ReconcileStore
from service.store.search import SearchStore
from service.webhook.route import Hook as Receiving
from service.webhook.route import webhook_router
from service.wiring.reconcile import MissedMentions
from tests.changing_forum import BOTS, EVERYWHERE, People, Seen, is_public, may_be_found, seen_of
from tests.e2e.loop import ANY_PORT, SECRET, address, serving
from tests.fakes.embedder import HashEmbedder
from tests.integration.store_data import frequencies_are_exact, rows, unit
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

    async def deliver(self, *, leave: int = 0) -> None:
        """Deliver in any order until only so many wait, and do their jobs after each."""
        waiting = self.sent.waiting
        while len(waiting) > leave:
            request = waiting.pop(self.chance.randrange(len(waiting)))
            headers = {key: value for key, value in request.headers.items() if key.startswith(("x-", "content-type"))}
            answer = await self.web.post("/webhooks/discourse", content=request.content, headers=headers)
            assert answer.status_code == 200, answer.text
            await self.work()
            self._hear(request)

    async def work(self) -> None:
        """Do every job: those of one lock in their order, else in any."""
        while True:
            jobs = await rows(
                self.pool,
                "SELECT id, task_name, args, lock FROM procrastinate_jobs WHERE status = 'todo' ORDER BY id",
            )
            if not jobs:
                return
            first: dict[str, tuple[Any, ...]] = {}
            for job in jobs:
                first.setdefault(job[3] or f"job {job[0]}", job)
            job_id, task, args, _ = self.chance.choice(list(first.values()))
            await self._do(task, args)
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


async def found(pool: Pool) -> dict[int, tuple[int, int]]:
    """What search gives, by words and by vectors: each post's topic, and that topic's category, as stored."""
    search, lexemes = SearchStore(pool), query_lexemes(f"{EVERYWHERE} {STUB}")
    worded = await search.keyword_posts(lexemes, ENOUGH)
    near = await search.nearest_posts(PROFILE, unit(1, 1, 1, 1), ENOUGH)
    topics = dict(await rows(pool, "SELECT topic_id, category_id FROM topics"))
    return {one.post_id: (one.topic_id, topics[one.topic_id]) for one in [*worded, *near]}


async def check_nothing_told_is_found(at: Life) -> None:
    """What an event said to be private is not found while it is."""
    told = {kind: {number for one, number in at.told if one == kind} for kind in ("post", "topic", "category")}
    for post_id, (topic_id, category_id) in (await found(at.pool)).items():
        assert post_id not in told["post"], f"post {post_id}"
        assert topic_id not in told["topic"], f"post {post_id} of topic {topic_id}"
        assert category_id not in told["category"], f"post {post_id} of category {category_id}"


async def check_agreement(at: Life) -> None:
    """The index holds what the public sees of the forum, each post under its title, and not a word more."""
    pool, seen = at.pool, seen_of(at.forum)
    stored = {
        post_id: Seen(topic, number, text, title, category, tuple(tags))
        for post_id, topic, number, text, title, category, tags in await rows(
            pool,
            "SELECT post_id, topic_id, post_number, body, title, category_id, tags"
            " FROM public_posts JOIN topics USING (topic_id, title)",
        )
    }
    assert stored.keys() ^ seen.keys() == set()
    assert stored == seen
    assert await rows(pool, "SELECT count(*) FROM posts WHERE body IS NOT NULL") == [(len(seen),)]
    titles = dict(await rows(pool, "SELECT topic_id, title FROM topics WHERE title <> ''"))
    topics = at.forum.topics
    assert {one: topics[one].title for one in titles if is_public(at.forum, topics[one])} == titles
    terms = {post_id: term_counts(f"{one.title}\n{one.text}") for post_id, one in seen.items()}
    postings = await rows(pool, "SELECT post_id, topic_id, lexeme, tf, length FROM postings")
    assert sorted(postings) == sorted(
        (post_id, seen[post_id].topic_id, lexeme, tf, length)
        for post_id, (counts, length) in terms.items()
        for lexeme, tf in counts.items()
    )
    assert await frequencies_are_exact(pool)
    names = {one.id: one.name for one in at.forum.categories.values()}
    texts = {
        post_id: TopicPost(PostId(post_id), one.title, names[one.category_id], one.tags, one.text)
        for post_id, one in seen.items()
    }
    made_of = {
        post_id: digest(at.indexer.embedder.truncate(embedded_text(text, DISCOURSE))) for post_id, text in texts.items()
    }
    assert dict(await rows(pool, "SELECT post_id, digest FROM embeddings")) == made_of
