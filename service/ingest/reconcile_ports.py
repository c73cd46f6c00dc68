"""What reconciling needs from the outside, as Protocols; adapters match them structurally (proved in wiring)."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from service.domain import EmbeddingProfile, Post, PostId, Topic, TopicId


class Walk(StrEnum):
    """What the reconciler remembers its place in: ids of posts downwards, pages of topics, ids of notifications."""

    NEWEST_POSTS = "newest_posts"
    POSTS = "posts"
    TOPICS = "topics"
    NOTICES = "notices"


@dataclass(frozen=True, slots=True)
class StoredPost:
    """A post as the index has it: `terms` its postings, `digest` that of the embedded text, None without a vector."""

    post_id: PostId
    topic_id: TopicId | None
    post_number: int
    refusal: str | None
    body: str | None
    terms: Mapping[str, int]
    digest: bytes | None


class ReconcileState(Protocol):
    """What the index holds, for comparing, and how far the walks have come."""

    def alone(self, *, wait_seconds: float = 0.0) -> AbstractAsyncContextManager[bool]:
        """Whether nobody else reconciles, or no longer after so long; then nobody does until the end of the block."""
        ...

    async def position(self, walk: Walk) -> int:
        """Where the walk stands, 0 before its first step."""
        ...

    async def move(self, walk: Walk, position: int) -> None: ...
    async def highest_post(self) -> PostId: ...
    async def posts(
        self, profile: EmbeddingProfile, above: PostId, upto: PostId, also: Collection[PostId]
    ) -> dict[PostId, StoredPost]:
        """What is stored of the posts with ids in (above, upto], and of those named."""
        ...

    async def topics(self, topic_ids: Collection[TopicId]) -> dict[TopicId, Topic]: ...
    async def doubtful_topics(self, limit: int, *, stored_before: datetime) -> Sequence[TopicId]:
        """Topics that have no title though their category is public, or a title and no post with text; oldest first."""
        ...


class Mentions(Protocol):
    """Posts that address the bot, and whether we know of it."""

    async def unheard(self, post_id: PostId) -> bool:
        """Whether neither the ledger nor a trace knows this post."""
        ...

    async def ask(self, post: Post) -> bool:
        """Have the post answered as if its webhook had come; False when a webhook of this state came."""
        ...
