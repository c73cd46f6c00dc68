"""What answering remembers: which posts have been answered."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from service.domain import CategoryId, Outcome, Post, PostId, Result, SkipReason, TopicId, Trace, UserId


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
    in_category: int = 0


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

    async def record_skip(
        self, post: Post, reason: SkipReason, *, now: datetime, waited_seconds: float | None = None
    ) -> None:
        """Store a trace that says why this post got no answer (without its text), and how long a question waited."""
        ...

    async def place(self, post_id: PostId, category_id: CategoryId) -> None:
        """Note the category that a claimed post stands in, which its topic tells."""
        ...

    async def recent(
        self,
        *,
        user_id: UserId | None,
        topic_id: TopicId,
        category_id: CategoryId | None = None,
        since: datetime,
    ) -> RecentAnswers: ...
    async def help_given(self, topic_id: TopicId) -> bool: ...
    async def is_own_reply(self, topic_id: TopicId, post_number: int) -> bool: ...
