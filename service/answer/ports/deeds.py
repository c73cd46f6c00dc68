"""What moderators decide about answers, as carrying it out needs it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from service.answer.ports.ledger import FixedReply
from service.domain import Posted, PostId, TopicId, UserId


class DeedKind(StrEnum):
    """What can be decided: the worker carries out the first four, and the first three once; the others are done by
    being said."""

    POST = "post"
    HIDE = "hide"
    EDIT = "edit"
    READ = "read"
    WRONG = "wrong"
    TEST_QUESTION = "test_question"


@dataclass(frozen=True, slots=True)
class Deed:
    """A decision on the answer to a post; without an outcome it waits.

    `raw` is the new text of an edit, and what our post said when it was read.
    """

    deed_id: int
    post_id: PostId
    kind: str
    reason: str
    raw: str | None
    by: str
    by_user_id: UserId | None
    asked_at: datetime
    outcome: str | None
    done_at: datetime | None


@dataclass(frozen=True, slots=True)
class AnsweredPost:
    """The answer to a post as the ledger has it: its topic, what became of it, its text, and our post.

    `private`: it was asked in a private message.
    """

    topic_id: TopicId
    outcome: str | None
    reply: FixedReply
    reply_post_id: PostId | None
    private: bool = False


class Deeds(Protocol):
    """The kept decisions: each is closed once, with what came of it."""

    async def waiting(self, deed_id: int) -> Deed | None:
        """The decision, while it has not been carried out."""
        ...

    async def answered(self, post_id: PostId) -> AnsweredPost | None:
        """The answer that the ledger has for this post; None without a text, and of one that was hidden."""
        ...

    async def posted(self, deed: Deed, outcome: Posted, number: int | None, *, now: datetime) -> None:
        """The answer is on the forum now: the ledger says so, and the deed is done, in one transaction."""
        ...

    async def edited(self, deed: Deed, raw: str, *, now: datetime) -> None: ...
    async def read(self, deed: Deed, raw: str, *, now: datetime) -> None: ...
    async def hidden(self, deed: Deed, *, now: datetime) -> None: ...

    async def refused(self, deed: Deed, why: str, *, now: datetime) -> None:
        """It could not be carried out; it may be asked for again."""
        ...


class OwnPosts(Protocol):
    """What the bot may do to its own posts. Raises what `Forum` does; each call may be made again."""

    async def edit_own(self, post_id: PostId, raw: str, *, why: str) -> None:
        """Let our post say this."""
        ...

    async def delete_own(self, post_id: PostId) -> None: ...

    async def own_text(self, post_id: PostId) -> str | None:
        """What our post says now, as it was written; None where the forum doesn't show it, or has it taken back."""
        ...
