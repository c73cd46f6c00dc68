"""A forum, a ledger and models small enough to script: what the use case "answer" is tested against."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from service.answer.gate.compiled import build_gate
from service.answer.gate.rules import rule_files
from service.answer.pipeline import Stages
from service.answer.ports import AnsweringMode, Claim, CreatedReply, FixedReply, Flags, RecentAnswers
from service.answer.respond import Respond
from service.answer.trigger import Bot
from service.domain import (
    ENGLISH,
    FRENCH,
    Before,
    Candidate,
    CategoryId,
    Draft,
    EmbeddingProfile,
    Lang,
    Outcome,
    Post,
    Posted,
    PostId,
    PostType,
    Question,
    RerankerProfile,
    Result,
    Skipped,
    SkipReason,
    Source,
    Topic,
    TopicHit,
    TopicId,
    TopicScores,
    Trace,
    UserId,
    Vector,
    Zone,
)
from service.errors import ArianeError, Rejected, Unsure
from service.settings import LimitSettings, RetrievalSettings

GATE = build_gate(rule_files(""))
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
BASE_URL = "https://forum.example"
MENTION = '<a class="mention" href="/u/ariane">@ariane</a>'
ASKING_TOPIC = Topic(TopicId(500), "Balcony talk this autumn", "balcony-talk", CategoryId(2), "regular")


def candidate(number: int, *, topic: int | None = None, body: str = "", cosine: float | None = None) -> Candidate:
    """Post `number` of the index, by default alone in topic 100 + number."""
    topic_id = TopicId(100 + number if topic is None else topic)
    text = body or f"Water tomatoes in pots every morning, says post {number}."
    title, slug = f"Watering tomatoes, part {number}", f"watering-{number}"
    return Candidate(PostId(number), topic_id, number, title, slug, text, "zoe", NOW - timedelta(days=90), cosine)


def asking(html: str = f"<p>{MENTION} how often should I water tomatoes in pots?</p>", **changes: Any) -> Post:
    """A member's question, post 7 of ASKING_TOPIC."""
    post = Post(
        id=PostId(9007),
        topic_id=ASKING_TOPIC.id,
        post_number=7,
        post_type=PostType.REGULAR,
        user_id=UserId(12),
        username="maelle",
        cooked=html,
        created_at=NOW,
        updated_at=NOW,
        archetype="regular",
        category_id=CategoryId(2),
    )
    return replace(post, **changes)


@dataclass
class FakeEmbedder:
    down: ArianeError | None = None
    profile: EmbeddingProfile = field(
        default_factory=lambda: EmbeddingProfile("fake", 100, 1, 2, 256, cosine_floor=0.85)
    )

    async def embed_query(self, text: str) -> Vector:
        if self.down:
            raise self.down
        return np.array([1.0, 0.0], dtype=np.float32)


@dataclass
class FakeSearch:
    """Two fixed rankings of posts; leaves out what the question excludes. No topic is found but by its posts."""

    nearest: Sequence[Candidate] = ()
    worded: Sequence[Candidate] = ()

    async def nearest_posts(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, *, exclude_from: tuple[TopicId, int] | None = None
    ) -> list[Candidate]:
        return self._allowed(self.nearest, exclude_from)[:limit]

    async def keyword_posts(
        self, lexemes: Sequence[str], limit: int, *, exclude_from: tuple[TopicId, int] | None = None
    ) -> list[Candidate]:
        return self._allowed(self.worded, exclude_from)[:limit]

    async def asked_words(self, lexemes: Sequence[str], limit: int) -> list[str]:
        return list(lexemes)[:limit]

    async def keyword_topics(
        self,
        lexemes: Sequence[str],
        limit: int,
        *,
        exclude_from: tuple[TopicId, int] | None = None,
        exclude_post: tuple[TopicId, int] | None = None,
    ) -> list[TopicHit]:
        return []

    async def mean_topics(
        self,
        profile: EmbeddingProfile,
        vector: Vector,
        limit: int,
        *,
        exclude_from: tuple[TopicId, int] | None = None,
        exclude_post: tuple[TopicId, int] | None = None,
    ) -> list[TopicHit]:
        return []

    async def first_post_topics(
        self,
        profile: EmbeddingProfile,
        vector: Vector,
        limit: int,
        *,
        exclude_from: tuple[TopicId, int] | None = None,
        exclude_post: tuple[TopicId, int] | None = None,
    ) -> list[TopicHit]:
        return []

    async def best_posts(
        self,
        topics: Sequence[TopicId],
        profile: EmbeddingProfile,
        vector: Vector | None,
        lexemes: Sequence[str],
        *,
        exclude_from: tuple[TopicId, int] | None = None,
        exclude_post: tuple[TopicId, int] | None = None,
    ) -> list[Candidate]:
        """Of each topic the post that the rankings, the nearest first, have first, with both scores."""
        best: dict[TopicId, Candidate] = {}
        for one in self._allowed([*(self.nearest if vector is not None else ()), *self.worded], exclude_from):
            if (one.topic_id, one.post_number) == exclude_post:
                continue
            known = best.setdefault(one.topic_id, one)
            if known.post_id == one.post_id and known.bm25 is None:
                best[one.topic_id] = replace(known, bm25=one.bm25)
        return [
            replace(best[topic], topic=TopicScores(cosine=best[topic].cosine, bm25=best[topic].bm25))
            for topic in topics
            if topic in best
        ]

    @staticmethod
    def _allowed(ranking: Sequence[Candidate], exclude_from: tuple[TopicId, int] | None) -> list[Candidate]:
        topic, first = exclude_from or (None, 0)
        return [one for one in ranking if one.topic_id != topic or one.post_number < first]


@dataclass
class FakeReranker:
    """Gives each post the logit it is told, else 1; weak from -4, normal from 0."""

    logits: dict[int, float] = field(default_factory=dict)
    down: ArianeError | None = None
    profile: RerankerProfile = field(default_factory=lambda: RerankerProfile("fake", -4.0, 0.0, provisional=True))
    asked: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)

    async def rerank(self, question: str, candidates: Sequence[Candidate]) -> list[float]:
        if self.down:
            raise self.down
        self.asked.append(question)
        self.read.extend(one.body for one in candidates)
        return [self.logits.get(one.post_id, 1.0) for one in candidates]


@dataclass
class FakeAnswerer:
    text: str = "Every morning, and twice when it is hot [[1]]."
    in_language: bool = False
    down: ArianeError | None = None
    calls: int = 0

    async def draft(self, question: Question, sources: Sequence[Source], zone: Zone) -> Draft:
        self.calls += 1
        if self.down:
            raise self.down
        return Draft(self.text, "fake", lang=question.lang if self.in_language else None)


def detect_language(text: str, *, fallback: Lang) -> Lang:
    """French where it has an accent, English where it has a "the" or "how", else the fallback."""
    if any(c in "éèêàç" for c in text):
        return FRENCH
    return ENGLISH if {"the", "how"} & set(text.lower().split()) else fallback


@dataclass
class FakeFlags:
    flags: Flags = field(default_factory=lambda: Flags(AnsweringMode.ON, posts_pipeline=True))
    later: Flags | None = None
    """What the second and later reads see: a moderator turned a switch meanwhile."""

    async def read(self) -> Flags:
        now, self.flags = self.flags, self.later or self.flags
        return now


@dataclass
class FakeTurns:
    """What the member wrote before in this topic."""

    texts: tuple[str, ...] = ()

    async def before(self, post: Post, limit: int) -> tuple[str, ...]:
        return self.texts[-limit:]


@dataclass
class FakeThreads:
    """What was said before in this topic."""

    said: Before = field(default_factory=Before)

    async def before(self, post: Post, humans: int) -> Before:
        return self.said


@dataclass
class Row:
    post: Post
    claimed_at: datetime
    reply: FixedReply | None = None
    trace: Trace | None = None
    outcome: Outcome | None = None
    reply_number: int | None = None
    category_id: CategoryId | None = None


@dataclass
class MemoryLedger:
    """The ledger's contract in a dict."""

    rows: dict[PostId, Row] = field(default_factory=dict)
    skips: list[tuple[PostId, SkipReason]] = field(default_factory=list)
    waits: list[float | None] = field(default_factory=list)
    """How long each of the skipped posts had waited, where that was recorded."""

    async def claim(self, post: Post, *, now: datetime) -> Claim:
        fresh = post.id not in self.rows
        row = self.rows.setdefault(post.id, Row(post, now))
        return Claim(post.id, fresh=fresh, finished=row.outcome is not None, reply=row.reply)

    async def fix_reply(self, post_id: PostId, reply: FixedReply, trace: Trace) -> FixedReply:
        row = self.rows[post_id]
        if row.reply is not None:
            return row.reply
        row.reply, row.trace = reply, trace
        return reply

    async def finish(
        self,
        post_id: PostId,
        outcome: Outcome,
        trace: Trace | None,
        *,
        reply_post_number: int | None = None,
        now: datetime,
    ) -> None:
        row = self.rows[post_id]
        if row.outcome is None:
            row.outcome, row.reply_number, row.trace = outcome, reply_post_number, trace or row.trace

    async def release(self, post_id: PostId) -> None:
        if post_id in self.rows and self.rows[post_id].reply is None:
            del self.rows[post_id]

    async def record_skip(
        self, post: Post, reason: SkipReason, *, now: datetime, waited_seconds: float | None = None
    ) -> None:
        self.skips.append((post.id, reason))
        self.waits.append(waited_seconds)

    async def place(self, post_id: PostId, category_id: CategoryId) -> None:
        self.rows[post_id].category_id = category_id

    async def recent(
        self,
        *,
        user_id: UserId | None,
        topic_id: TopicId,
        category_id: CategoryId | None = None,
        since: datetime,
    ) -> RecentAnswers:
        rows = [row for row in self.rows.values() if row.claimed_at >= since]
        return RecentAnswers(
            by_member=sum(row.post.user_id == user_id for row in rows),
            in_topic=sum(row.post.topic_id == topic_id for row in rows),
            overall=len(rows),
            in_category=sum(row.category_id == category_id for row in rows),
        )

    async def help_given(self, topic_id: TopicId) -> bool:
        return any(
            row.reply is not None
            and row.reply.result is Result.HELPED
            and row.post.topic_id == topic_id
            and not isinstance(row.outcome, Skipped)
            for row in self.rows.values()
        )

    async def is_own_reply(self, topic_id: TopicId, post_number: int) -> bool:
        return any(
            row.reply_number == post_number and row.post.topic_id == topic_id and isinstance(row.outcome, Posted)
            for row in self.rows.values()
        )


@dataclass
class FakeForum:
    """Posts and topics that everyone reads, our replies, and what the next calls of `reply` meet."""

    posts: dict[PostId, Post]
    topics: dict[TopicId, Topic]
    own_posts: dict[PostId, Post] = field(default_factory=dict)
    own_topics: dict[TopicId, Topic] = field(default_factory=dict)
    """What only our own account sees."""
    staged: frozenset[str] = frozenset()
    groups: dict[str, frozenset[str]] = field(default_factory=dict)
    meets: list[ArianeError] = field(default_factory=list)
    """Raised by the next calls of `reply`, in turn; an Unsure after the reply was stored."""
    remembers: bool = True
    """Refuses what we have said before, as Discourse does for five minutes; False: it was longer ago."""
    enqueues: bool = False
    replies: list[tuple[PostId, str]] = field(default_factory=list)
    queued: list[str] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    unread: ArianeError | None = None
    """Raised where what came after a post is asked for."""

    async def public_post(self, post_id: PostId) -> Post | None:
        return self.posts.get(post_id)

    async def public_topic(self, topic_id: TopicId) -> Topic | None:
        return self.topics.get(topic_id)

    async def own_post(self, post_id: PostId) -> Post | None:
        return self.own_posts.get(post_id) or self.posts.get(post_id)

    async def own_topic(self, topic_id: TopicId) -> Topic | None:
        return self.own_topics.get(topic_id) or self.topics.get(topic_id)

    async def public_posts_after(self, post: Post) -> list[Post]:
        return self._after(post, self.posts)

    async def own_posts_after(self, post: Post) -> list[Post]:
        return self._after(post, {**self.posts, **self.own_posts})

    def _after(self, post: Post, seen: dict[PostId, Post]) -> list[Post]:
        if self.unread:
            raise self.unread
        return [other for other in seen.values() if other.topic_id == post.topic_id and other.id > post.id]

    async def is_staged(self, username: str) -> bool:
        return username in self.staged

    async def groups_of(self, username: str) -> frozenset[str]:
        return self.groups.get(username, frozenset())

    async def our_reply_to(self, post_id: PostId) -> CreatedReply | None:
        found = [n for n, (asked, _) in enumerate(self.replies) if asked == post_id]
        return CreatedReply(PostId(70_000 + found[0]), 70 + found[0]) if found else None

    async def reply(self, *, topic_id: TopicId, post_number: int, raw: str) -> CreatedReply:
        self.attempts.append(raw)
        met = self.meets.pop(0) if self.meets else None
        if met and not isinstance(met, Unsure):
            raise met
        if self.remembers and any(raw == said for _, said in self.replies):
            raise Rejected("you said that a moment ago", status=422)
        if self.enqueues:
            self.queued.append(raw)
            return CreatedReply(None, None, enqueued=True)
        seen = [*self.posts.values(), *self.own_posts.values()]
        asked = next(p for p in seen if (p.topic_id, p.post_number) == (topic_id, post_number))
        self.replies.append((asked.id, raw))
        if met:
            raise met
        return CreatedReply(PostId(70_000 + len(self.replies) - 1), 70 + len(self.replies) - 1)


class Crash(BaseException):
    """The process was killed."""


@dataclass
class Crashing:
    """Stands before a port and kills the process before or after the n-th call made through any of them."""

    at: int
    after: bool
    calls: int = 0

    def guard(self, port: Any) -> Any:
        return _Guard(self, port)

    async def call(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        here = self.calls == self.at
        if here and not self.after:
            raise Crash
        result = await method(*args, **kwargs)
        if here:
            raise Crash
        return result


class _Guard:
    def __init__(self, crashing: Crashing, port: Any) -> None:
        self._crashing, self._port = crashing, port

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def called(*args: Any, **kwargs: Any) -> Any:
            return await self._crashing.call(found, *args, **kwargs)

        return called


@dataclass
class World:
    """Everything a test of responding scripts, wired together by `deps`."""

    asked: Post = field(default_factory=asking)
    candidates: Sequence[Candidate] = field(default_factory=lambda: [candidate(1), candidate(2), candidate(3)])
    embedder: FakeEmbedder = field(default_factory=FakeEmbedder)
    reranker: FakeReranker = field(default_factory=lambda: FakeReranker({1: 3.0, 2: 2.0, 3: 1.0}))
    answerer: FakeAnswerer = field(default_factory=FakeAnswerer)
    flags: FakeFlags = field(default_factory=FakeFlags)
    ledger: Any = field(default_factory=MemoryLedger)
    turns: FakeTurns = field(default_factory=FakeTurns)
    threads: FakeThreads = field(default_factory=FakeThreads)
    limits: LimitSettings = field(default_factory=LimitSettings)
    settings: RetrievalSettings = field(default_factory=RetrievalSettings)
    forum: FakeForum = field(init=False)

    def __post_init__(self) -> None:
        sources = [
            asking("<p>source</p>", id=one.post_id, topic_id=one.topic_id, post_number=one.post_number)
            for one in self.candidates
        ]
        topics = [Topic(one.topic_id, one.title, one.slug, CategoryId(2), "regular") for one in self.candidates]
        self.forum = FakeForum(
            {post.id: post for post in (self.asked, *sources)},
            {topic.id: topic for topic in (ASKING_TOPIC, *topics)},
        )

    @property
    def stages(self) -> Stages:
        search = FakeSearch(self.candidates, self.candidates)
        return Stages(self.embedder, search, self.reranker, self.answerer, detect_language, self.settings, BASE_URL)

    def deps(self, crashing: Crashing | None = None) -> Respond:
        """What `respond` gets; through `crashing`, any call of a port may be the last."""
        guard = crashing.guard if crashing else lambda port: port
        stages = self.stages
        return Respond(
            stages=replace(
                stages,
                embedder=guard(stages.embedder),
                search=guard(stages.search),
                reranker=guard(stages.reranker),
                answerer=guard(stages.answerer),
            ),
            flags=guard(self.flags),
            ledger=guard(self.ledger),
            forum=guard(self.forum),
            bot=Bot("ariane", frozenset({"system", "recapbot"}), UserId(77)),
            limits=self.limits,
            default_lang=ENGLISH,
            gate=GATE,
            turns=guard(self.turns),
            threads=guard(self.threads),
        )

    def skipped(self) -> list[SkipReason]:
        """Why posts were skipped, from the recorded skips and the finished claims."""
        finished = [row.outcome.reason for row in self.ledger.rows.values() if isinstance(row.outcome, Skipped)]
        return [reason for _, reason in self.ledger.skips] + finished
