"""The jobs there are: what each does, its queue and its place in it; and adding them in a transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from service.domain import CategoryId, InboxId, PostId, TopicId, UserId
from service.store.pool import Connection
from service.store.queue import JobRow, add_jobs


class Work(Protocol):
    """What the tasks do. Every call may be made again after a crash in its middle, and may raise any ArianeError."""

    async def index_post(self, inbox_id: InboxId) -> None: ...
    async def answer_post(self, inbox_id: InboxId) -> None: ...
    async def remove_post(self, inbox_id: InboxId) -> None: ...
    async def hide_topic(self, topic_id: TopicId) -> None: ...
    async def close_category(self, category_id: CategoryId) -> None: ...
    async def refresh_post(self, post_id: PostId) -> None: ...
    async def refresh_topic(self, topic_id: TopicId) -> None: ...
    async def refresh_categories(self) -> None: ...
    async def erase_member(self, user_id: UserId) -> None: ...
    async def expire(self) -> None: ...
    async def reconcile(self) -> None: ...
    async def embed_pending(self) -> int:
        """Embed one bounded batch of posts that have no vector; how many were embedded (0: none is left)."""
        ...

    async def try_question(self, trial_id: int) -> None: ...
    async def group_unanswered(self) -> None:
        """Keep the questions that stayed without an answer, the same ones together."""
        ...

    async def carry_out(self, deed_id: int, *, last_try: bool) -> None:
        """Do what a moderator decided about an answer; on the `last_try` it is closed in any case."""
        ...

    async def give_up(self, inbox_id: InboxId) -> None:
        """Record that this question stays without an answer (skipped: given_up), so that its loss is seen."""
        ...


class Queue(StrEnum):
    """One worker loop each: a kind of work that is slow or stuck never holds up another."""

    ANSWER = "answer"
    INDEX = "index"
    UPKEEP = "upkeep"
    RECONCILE = "reconcile"


class TaskName(StrEnum):
    INDEX_POST = "index_post"
    ANSWER_POST = "answer_post"
    REMOVE_POST = "remove_post"
    HIDE_TOPIC = "hide_topic"
    CLOSE_CATEGORY = "close_category"
    REFRESH_POST = "refresh_post"
    REFRESH_TOPIC = "refresh_topic"
    REFRESH_CATEGORIES = "refresh_categories"
    CARRY_OUT = "carry_out"
    ERASE_MEMBER = "erase_member"
    TRY_QUESTION = "try_question"
    EMBED_PENDING = "embed_pending"
    GROUP_UNANSWERED = "group_unanswered"
    EXPIRE = "expire"
    RECONCILE = "reconcile"


CATEGORIES = "categories"
"""Lock of the jobs that read the category list again."""

READS_INBOX = frozenset({TaskName.INDEX_POST, TaskName.ANSWER_POST, TaskName.REMOVE_POST})
"""Tasks that work from the stored delivery; its text is dropped once each of them is done."""

# Jobs that may share a lock have the same priority: procrastinate orders a lock by priority first, and two of
# different priority can be fetched at once (the second fetch then fails on its unique index).
PLACES: Mapping[TaskName, tuple[Queue, int]] = {
    TaskName.ANSWER_POST: (Queue.ANSWER, 100),
    TaskName.TRY_QUESTION: (Queue.ANSWER, 50),
    TaskName.REMOVE_POST: (Queue.INDEX, 50),
    TaskName.HIDE_TOPIC: (Queue.INDEX, 50),
    TaskName.CLOSE_CATEGORY: (Queue.INDEX, 50),
    TaskName.INDEX_POST: (Queue.INDEX, 0),
    TaskName.REFRESH_POST: (Queue.INDEX, 0),
    TaskName.REFRESH_TOPIC: (Queue.INDEX, 0),
    TaskName.EMBED_PENDING: (Queue.INDEX, -100),
    TaskName.CARRY_OUT: (Queue.UPKEEP, 100),
    TaskName.ERASE_MEMBER: (Queue.UPKEEP, 50),
    TaskName.REFRESH_CATEGORIES: (Queue.UPKEEP, 50),
    TaskName.GROUP_UNANSWERED: (Queue.UPKEEP, -50),
    TaskName.EXPIRE: (Queue.UPKEEP, -100),
    TaskName.RECONCILE: (Queue.RECONCILE, 0),
}
"""The queue of each task, and its priority in it."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be added; `args` are ids only, and empty for the tasks that read the inbox: they get its row's id."""

    task: TaskName
    lock: str | None = None
    args: Mapping[str, int] = field(default_factory=dict)


def waiting(jobs: Sequence[NewJob]) -> tuple[TaskName, ...]:
    """The tasks among these that must be done before the delivery's text may go."""
    return tuple(job.task for job in jobs if job.task in READS_INBOX)


async def defer_jobs(connection: Connection, jobs: Sequence[NewJob], inbox_id: InboxId | None = None) -> None:
    """Add the jobs in the connection's transaction, in one round trip; they exist if it commits."""
    await add_jobs(connection, [_row(job, inbox_id) for job in jobs])


def _row(new: NewJob, inbox_id: InboxId | None) -> JobRow:
    queue, priority = PLACES[new.task]
    if new.task not in READS_INBOX:
        return JobRow(queue, new.task, priority, new.lock, new.args)
    if inbox_id is None:
        raise ValueError(f"{new.task} works from a stored delivery")
    return JobRow(queue, new.task, priority, new.lock, {"inbox_id": inbox_id})
