"""What indexing needs from the outside, as Protocols; adapters match them structurally (proved in wiring.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from service.domain import (
    Category,
    CategoryId,
    Embedded,
    EmbeddingProfile,
    InboxId,
    Post,
    PostId,
    Thread,
    Topic,
    TopicId,
    Vector,
)


class Refusal(StrEnum):
    """Why a post is not in the index; the same words in metrics and summaries."""

    DELETED = "deleted"
    HIDDEN = "hidden"
    USER_DELETED = "user_deleted"
    POST_TYPE = "post_type"
    ARCHETYPE = "archetype"
    TOPIC_DELETED = "topic_deleted"
    TOPIC_UNLISTED = "topic_unlisted"
    CATEGORY_PRIVATE = "category_private"
    CATEGORY_UNKNOWN = "category_unknown"
    BOT_AUTHOR = "bot_author"
    OPTED_OUT = "opted_out"


@dataclass(frozen=True, slots=True)
class IndexedPost:
    """A post ready to be stored: its state, and when eligible (`refusal` None) its clean text and its term counts."""

    post: Post
    refusal: Refusal | None
    body: str | None
    terms: Mapping[str, int]
    length: int


@dataclass(frozen=True, slots=True)
class EmbeddedPassage:
    """One vector: passage ordinal (from 0), SHA-1 digest of the text that was embedded, shape (dimensions,)."""

    post_id: PostId
    passage: int
    digest: bytes
    vector: Vector


@dataclass(frozen=True, slots=True)
class KeptPassage:
    """A passage whose text didn't change: the vector that is stored of this digest stays, at this ordinal."""

    post_id: PostId
    passage: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class TopicPost:
    """What embedding needs of a stored eligible post; `tags` and `category` are its topic's."""

    post_id: PostId
    title: str
    category: str
    tags: tuple[str, ...]
    body: str


@dataclass(frozen=True, slots=True)
class EmbeddingFailure:
    """A post that the model fails on, the SHA-1 digest of the text that it was given, and the server's words."""

    post: TopicPost
    digest: bytes
    error: str


class PassageEmbedder(Protocol):
    """Turns texts into unit vectors of its profile; raises Transient, or Misconfigured when it is another model."""

    @property
    def profile(self) -> EmbeddingProfile: ...
    def truncate(self, text: str) -> str:
        """The text cut as far as can be told without the server, so that what is digested is what is embedded."""
        ...

    def tokens(self, text: str) -> float:
        """How many tokens the model makes of a text with its prefix and marks, which alone are those of "".

        An estimate, rather too many, where only the model's server could tell.
        """
        ...

    async def embed_passages(self, texts: Sequence[str]) -> Sequence[Embedded]:
        """What became of each text, in order: a text that fails alone costs its neighbours nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Census:
    """What the index holds: posts by refusal reason, and eligible posts without a vector of the profile asked about.

    `unembeddable` are those that its model fails on; they are not among the `left_to_embed`.
    """

    topics: int
    posts: int
    indexed: int
    refused: Mapping[str, int]
    left_to_embed: int
    unembeddable: int = 0


class Corpus(Protocol):
    """The stored index. Every write is one transaction; an older snapshot never overwrites a newer state."""

    async def categories(self) -> dict[CategoryId, Category]: ...
    async def put_categories(self, categories: Sequence[Category], *, read_at: datetime | None = None) -> bool:
        """Replace the category table by this list: what is missing from it becomes private.

        Nothing is done, False, where a later reading than that of `read_at` is stored, or a category was closed since.
        """
        ...

    async def add_categories(self, categories: Sequence[Category]) -> None:
        """Store those that are not known; of one that is known, nothing changes."""
        ...

    async def now(self) -> datetime:
        """The time by which readings and writings are ordered: what the forum is read for is as of before the read."""
        ...

    async def topic(self, topic_id: TopicId) -> Topic | None: ...
    async def put_topics(self, topics: Sequence[Topic], *, read_at: datetime | None = None) -> int:
        """Store the topics' state, but not over one that was stored after `read_at`; how many were stored.

        Without `read_at` they are snapshots of some time, which bring back no topic that was removed.
        """
        ...

    async def put_posts(self, indexed: Sequence[IndexedPost], *, read_at: datetime | None = None) -> int:
        """Store state, text and postings of posts whose topics are stored, one transaction; how many were not stale.

        Without `read_at` they are snapshots: one that is older than the stored state, or whose post was removed, is
        stale, and at the same `updated_at` one that stands against a reading (Discourse deletes, recovers and moves a
        post without touching its updated_at). A reading that began at `read_at` brings back what was removed before it.
        """
        ...

    async def remove_post(self, post_id: PostId, *, updated_at: datetime) -> bool:
        """Mark the post deleted and drop its text, postings and vectors, unless a newer state is there."""
        ...

    async def withdraw_posts(self, post_ids: Sequence[PostId], *, read_at: datetime) -> int:
        """Drop all that is kept of posts that a reading which began at `read_at` didn't show; how many were there.

        What was read or removed since stays.
        """
        ...

    async def eligible_posts(self, topic_id: TopicId) -> set[PostId]:
        """The posts of the topic that have text."""
        ...

    async def remove_topic(self, topic_id: TopicId, *, read_at: datetime | None = None) -> int:
        """Drop the text of every post of a topic that the public no longer sees; how many were dropped.

        Nothing is done where the topic was stored after `read_at`, when the reading that missed it began.
        """
        ...

    async def withdraw_private(self) -> int:
        """Drop the text of every post whose topic the public doesn't see by the stored state; how many were dropped."""
        ...

    async def pending(self, profile: EmbeddingProfile, limit: int) -> list[TopicPost]:
        """Eligible posts that have no vector under this profile, save those that its model failed on as they are."""
        ...

    async def census(self, profile: EmbeddingProfile) -> Census: ...
    async def digests(self, profile: EmbeddingProfile, post_ids: Sequence[PostId]) -> dict[PostId, tuple[bytes, ...]]:
        """The digests of the passages of each of these posts, in order, or the one that the model failed on."""
        ...

    async def put_passages(
        self,
        profile: EmbeddingProfile,
        passages: Sequence[EmbeddedPassage],
        kept: Sequence[KeptPassage] = (),
        *,
        read: Sequence[TopicPost] = (),
    ) -> None:
        """Replace all passages of these posts that still are what was `read`; Transient where a kept one is gone."""
        ...

    async def put_failures(self, profile: EmbeddingProfile, failures: Sequence[EmbeddingFailure]) -> None:
        """Quarantine these posts: not pending until they change; a vector of an older text goes."""
        ...


class ForumReader(Protocol):
    """The forum as an anonymous reader sees it; raises Transient or Misconfigured, and gives None for 403/404."""

    async def public_post(self, post_id: PostId) -> Post | None: ...
    async def public_thread(self, topic_id: TopicId) -> Thread | None:
        """The topic with every post of it; one that can't be read is left out of the posts, not of the ids."""
        ...

    async def public_categories(self) -> list[Category]: ...


@dataclass(frozen=True, slots=True)
class Delivery:
    """A stored post delivery; `has_text` is False when the text was private at receipt or has been used and dropped."""

    event: str
    post: Post
    has_text: bool


class Inbox(Protocol):
    async def delivery(self, inbox_id: InboxId) -> Delivery | None:
        """The delivery, or None when its row has expired."""
        ...

    async def done(self, inbox_id: InboxId, task: str) -> None:
        """This task has used the delivery; the text is dropped once every waiting task has."""
        ...


class Backfills(Protocol):
    """How many topics of each source have been read, so that an interrupted backfill goes on where it stopped."""

    async def topics_read(self, source: str) -> int: ...
    async def mark_read(self, source: str, topics: int) -> None: ...
    async def settle(self) -> None:
        """Let the database take note of how much there is now, so that searches are planned well at once."""
        ...
