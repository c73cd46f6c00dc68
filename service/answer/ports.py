"""What answering needs from the outside, as Protocols; adapters match them structurally (proved in wiring.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from service.domain import (
    Candidate,
    ChatMessage,
    Completion,
    Draft,
    EmbeddingProfile,
    Lang,
    Outcome,
    Post,
    PostId,
    Question,
    RerankerProfile,
    Result,
    SkipReason,
    Source,
    Topic,
    TopicHit,
    TopicId,
    Trace,
    UserId,
    Vector,
    Zone,
)


class QueryEmbedder(Protocol):
    """Turns a question into a vector of its profile; raises Transient when the model can't be reached."""

    @property
    def profile(self) -> EmbeddingProfile: ...
    async def embed_query(self, text: str) -> Vector: ...


class Reranker(Protocol):
    """Scores (question, candidate) pairs: one finite logit a candidate, in the order given; raises Transient."""

    @property
    def profile(self) -> RerankerProfile: ...
    async def rerank(self, question: str, candidates: Sequence[Candidate]) -> list[float]: ...


class ChatModel(Protocol):
    """A language model: the one that rewrites, drafts and checks."""

    @property
    def window_tokens(self) -> int:
        """What prompt and completion may have together."""
        ...

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int,
        temperature: float,
        timeout_seconds: float,
        schema: Mapping[str, object] | None = None,
        urgent: bool = True,
    ) -> Completion:
        """One completion, as JSON of `schema` when given; calls that aren't urgent let a member's question go first.

        The timeout counts the wait for a free turn. An empty text is returned as it is. Raises Transient (slow, busy,
        gone), Rejected with status 413 when the prompt doesn't fit or the server cut it, or Misconfigured.
        """
        ...


class SentenceEmbedder(Protocol):
    """Vectors of a few sentences, soon: for an answer in the making; raises Transient or Rejected."""

    async def embed_sentences(self, texts: Sequence[str]) -> list[Vector]: ...


class Answerer(Protocol):
    """Writes a draft from numbered evidence, citing `[[n]]`; raises Transient when it can't be reached."""

    async def draft(self, question: Question, sources: Sequence[Source], zone: Zone) -> Draft: ...


Excluded = tuple[TopicId, int] | None
"""The posts of this topic from this number on, the question and what came after, don't answer: they are left out."""


class Search(Protocol):
    """The index, seen as a question sees it: eligible posts only, best first."""

    async def nearest_posts(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, *, exclude_from: Excluded = None
    ) -> list[Candidate]:
        """The `limit` posts of highest cosine under this profile."""
        ...

    async def keyword_posts(
        self, lexemes: Sequence[str], limit: int, *, exclude_from: Excluded = None
    ) -> list[Candidate]:
        """The `limit` posts of highest BM25 over these lexemes (service.lexer), repeats counting."""
        ...

    async def respelled(self, lexemes: Sequence[str]) -> list[str]:
        """The lexemes, those that no post has replaced by ones that resemble them."""
        ...

    async def keyword_topics(
        self, lexemes: Sequence[str], limit: int, *, exclude_from: Excluded = None
    ) -> list[TopicHit]:
        """The `limit` topics of highest BM25 of their whole text; what is excluded is no part of its topic."""
        ...

    async def mean_topics(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, *, exclude_from: Excluded = None
    ) -> list[TopicHit]:
        """The `limit` topics whose posts' mean vector has the highest cosine; exclusion as above."""
        ...

    async def first_post_topics(
        self, profile: EmbeddingProfile, vector: Vector, limit: int, *, exclude_from: Excluded = None
    ) -> list[TopicHit]:
        """The `limit` topics whose first post has the highest cosine."""
        ...

    async def best_posts(
        self,
        topics: Sequence[TopicId],
        profile: EmbeddingProfile,
        vector: Vector | None,
        lexemes: Sequence[str],
        *,
        rrf_k: int,
        exclude_from: Excluded = None,
    ) -> list[Candidate]:
        """The best post of each of these topics, by cosine (if there is a vector) and BM25 fused, in no order.

        Each has its topic's scores, but for the BM25 of the whole text.
        """
        ...


@dataclass(frozen=True, slots=True)
class TopicMatch:
    """A topic that holds words of a question, and its best post for them, whose `bm25` is the whole topic's.

    `weights` are the inverse document frequencies of the words it holds, `asked` the sum over all the words.
    """

    candidate: Candidate
    weights: Mapping[str, float]
    asked: float


class TopicSearch(Protocol):
    """The index by whole topics: what the legacy path searches."""

    async def keyword_topics(
        self,
        lexemes: Sequence[str],
        limit: int,
        *,
        words: int,
        exclude_from: tuple[TopicId, int] | None = None,
    ) -> list[TopicMatch]:
        """The `limit` topics of highest BM25 of their whole text over the `words` rarest of these lexemes.

        `exclude_from` as for Search: a topic is then what stood in it before.
        """
        ...


class AnsweringMode(StrEnum):
    OFF = "off"
    SHADOW = "shadow"
    ON = "on"


@dataclass(frozen=True, slots=True)
class Flags:
    """The switches moderators turn at run time, read at the moment of use.

    `signature` is of the configuration that posts_pipeline was switched on under: empty when off, or not known.
    """

    answering: AnsweringMode = AnsweringMode.OFF
    posts_pipeline: bool = False
    input_gate: bool = False
    signature: str = ""


class FlagReader(Protocol):
    async def read(self) -> Flags: ...


@dataclass(frozen=True, slots=True)
class FixedReply:
    """The final text of a reply, what it came to and the posts it cites: every attempt posts those bytes."""

    raw: str
    result: Result
    cited: tuple[PostId, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """The ledger's row for one asking post.

    `fresh` tells that this call made the claim; otherwise an earlier attempt did, and when it had fixed its `reply`
    it may have posted it.
    """

    post_id: PostId
    fresh: bool
    finished: bool
    reply: FixedReply | None


@dataclass(frozen=True, slots=True)
class RecentAnswers:
    """How many posts were answered (or are being answered) since a moment."""

    by_member: int
    in_topic: int
    overall: int


class Ledger(Protocol):
    """Which posts have been answered: the one place that makes a reply happen once."""

    async def claim(self, post: Post, *, now: datetime) -> Claim:
        """Claim this post for an answer, or find the claim that is already there."""
        ...

    async def fix_reply(self, post_id: PostId, reply: FixedReply, trace: Trace) -> FixedReply:
        """Store the reply and its trace with the claim unless one is stored already; returns the reply that counts."""
        ...

    async def finish(
        self,
        post_id: PostId,
        outcome: Outcome,
        trace: Trace | None,
        *,
        reply_post_number: int | None = None,
        now: datetime,
    ) -> None:
        """Close the claim and store the trace with its outcome, in one transaction.

        Without a trace, the one that was stored with the reply counts: a later attempt only posts.
        """
        ...

    async def release(self, post_id: PostId) -> None:
        """Give an unfinished claim without text back, so that a later event may answer."""
        ...

    async def record_skip(self, post: Post, reason: SkipReason, *, now: datetime) -> None:
        """Store a trace that says why this post got no answer (without its text)."""
        ...

    async def recent(self, *, user_id: UserId | None, topic_id: TopicId, since: datetime) -> RecentAnswers: ...
    async def help_given(self, topic_id: TopicId) -> bool: ...
    async def is_own_reply(self, topic_id: TopicId, post_number: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class CreatedReply:
    """What the forum said to our post: its id and number, or neither when it waits for approval."""

    post_id: PostId | None
    post_number: int | None
    enqueued: bool = False


class Forum(Protocol):
    """The forum's REST API as answering uses it.

    Every call raises Transient (slow, 429, 5xx, gone), Rejected with the forum's status (403, 404, 409, 422) or
    Misconfigured (the key is refused).
    """

    async def public_post(self, post_id: PostId) -> Post | None:
        """The post as an anonymous reader sees it now, or None when he doesn't."""
        ...

    async def public_topic(self, topic_id: TopicId) -> Topic | None:
        """The topic as an anonymous reader sees it now, or None when he doesn't."""
        ...

    async def our_reply_to(self, post_id: PostId) -> CreatedReply | None:
        """Our earlier reply to this post, if the forum has one."""
        ...

    async def is_staged(self, username: str) -> bool: ...

    async def reply(self, *, topic_id: TopicId, post_number: int, raw: str) -> CreatedReply:
        """Post `raw` as a reply to that post. Raises Unsure when the forum may have stored it."""
        ...


class DetectLanguage(Protocol):
    def __call__(self, text: str, *, fallback: Lang) -> Lang: ...
