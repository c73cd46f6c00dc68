"""What the tests of the queue share: work that is recorded, and a worker that runs until it is idle."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from time import monotonic

from service.domain import CategoryId, InboxId, PostId, TopicId, UserId
from service.jobs import NewJob, TaskName, defer_jobs
from service.settings import Settings, WorkerSettings
from service.store.pool import Pool, transaction
from service.worker import run_worker

FAST = WorkerSettings(
    metrics_port=0,
    heartbeat_seconds=0.3,
    stalled_after_seconds=1.0,
    sweep_seconds=0.2,
    shutdown_grace_seconds=5.0,
    max_attempts=3,
    retry_base_seconds=0.05,
    retry_max_seconds=0.2,
)

Act = Callable[[str, int], Awaitable[None]]


async def nothing(_task: str, _id: int) -> None:
    """Work that succeeds at once."""


class RecordedWork:
    """Records what the tasks ask for as (task, id); `act` may wait or raise."""

    def __init__(self, act: Act = nothing) -> None:
        self.began: list[tuple[str, int]] = []
        self.ended: list[tuple[str, int]] = []
        self.given_up: list[int] = []
        self._act = act

    async def _do(self, task: str, number: int) -> None:
        self.began.append((task, number))
        await self._act(task, number)
        self.ended.append((task, number))

    async def index_post(self, inbox_id: InboxId) -> None:
        await self._do("index_post", inbox_id)

    async def answer_post(self, inbox_id: InboxId) -> None:
        await self._do("answer_post", inbox_id)

    async def remove_post(self, inbox_id: InboxId) -> None:
        await self._do("remove_post", inbox_id)

    async def hide_topic(self, topic_id: TopicId) -> None:
        await self._do("hide_topic", topic_id)

    async def close_category(self, category_id: CategoryId) -> None:
        await self._do("close_category", category_id)

    async def refresh_post(self, post_id: PostId) -> None:
        await self._do("refresh_post", post_id)

    async def refresh_topic(self, topic_id: TopicId) -> None:
        await self._do("refresh_topic", topic_id)

    async def refresh_categories(self) -> None:
        await self._do("refresh_categories", 0)

    async def embed_pending(self) -> int:
        await self._do("embed_pending", 0)
        return 0

    async def reconcile(self) -> None:
        await self._do("reconcile", 0)

    async def erase_member(self, user_id: UserId) -> None:
        await self._do("erase_member", user_id)

    async def carry_out(self, deed_id: int, *, last_try: bool) -> None:
        await self._do("carry_out", deed_id)

    async def try_question(self, trial_id: int) -> None:
        await self._do("try_question", trial_id)

    async def group_unanswered(self) -> None:
        await self._do("group_unanswered", 0)

    async def expire(self) -> None:
        await self._do("expire", 0)

    async def give_up(self, inbox_id: InboxId) -> None:
        self.given_up.append(inbox_id)


async def add(pool: Pool, inbox_id: int, *jobs: NewJob) -> None:
    """Defer the jobs as a delivery of that id would."""
    async with transaction(pool) as conn:
        await defer_jobs(conn, jobs, InboxId(inbox_id))


def index(topic: int) -> NewJob:
    return NewJob(TaskName.INDEX_POST, f"index:{topic}")


def answer(post: int) -> NewJob:
    return NewJob(TaskName.ANSWER_POST, f"answer:{post}")


async def until(condition: Callable[[], bool], *, seconds: float = 15.0) -> None:
    """Wait for the condition, and fail when it doesn't come true in time."""
    deadline = monotonic() + seconds
    while not condition():
        assert monotonic() < deadline, "it never came true"
        await asyncio.sleep(0.02)


async def statuses(pool: Pool, tasks: Sequence[str] = ("index_post", "answer_post", "remove_post")) -> dict[str, int]:
    """How many jobs of these tasks there are by status (those that succeeded are deleted)."""
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT status::text, count(*) FROM procrastinate_jobs WHERE task_name = ANY(%s) GROUP BY 1", [list(tasks)]
        )
        return {str(status): int(count) for status, count in await cursor.fetchall()}


@asynccontextmanager
async def working(pool: Pool, work: RecordedWork, settings: WorkerSettings = FAST) -> AsyncIterator[asyncio.Event]:
    """A worker in this process for the length of the block, then stopped gracefully."""
    stop = asyncio.Event()
    worker = asyncio.create_task(run_worker(Settings(worker=settings), pool, work, stop=stop))
    try:
        yield stop
    finally:
        stop.set()
        await asyncio.wait_for(worker, 20)
