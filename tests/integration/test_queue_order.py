"""The queue on a real Postgres: order, locks, retries, giving up, and two workers at once."""

import asyncio
from time import monotonic

import pytest

from service.domain import InboxId
from service.errors import Misconfigured, Rejected, Transient
from service.jobs import NewJob, TaskName, defer_jobs
from service.store.pool import Pool, transaction
from tests.integration.queue_kit import FAST, RecordedWork, add, answer, index, statuses, until, working


def indexed(work: RecordedWork) -> list[int]:
    return [number for task, number in work.ended if task == "index_post"]


async def test_posts_of_a_topic_are_indexed_in_order_and_one_at_a_time(pool: Pool) -> None:
    running: set[int] = set()

    async def act(task: str, number: int) -> None:
        if task == "index_post":
            topic = number % 2
            assert topic not in running
            running.add(topic)
            await asyncio.sleep(0.01)
            running.discard(topic)

    work = RecordedWork(act)
    for number in range(1, 21):
        await add(pool, number, index(number % 2))
    async with working(pool, work), working(pool, work):
        await until(lambda: len(indexed(work)) == 20)
    for topic in (0, 1):
        mine = [number for number in indexed(work) if number % 2 == topic]
        assert mine == sorted(mine)
    assert await statuses(pool) == {}


async def test_a_failing_topic_blocks_neither_answers_nor_removals_nor_other_topics(pool: Pool) -> None:
    async def act(task: str, number: int) -> None:
        if (task, number) == ("index_post", 1):
            raise Transient("the model is busy", retry_after_seconds=60)

    work = RecordedWork(act)
    await add(pool, 1, index(1))
    await add(pool, 2, index(1), answer(2), NewJob(TaskName.REMOVE_POST))
    await add(pool, 3, index(3))
    async with working(pool, work):
        await until(lambda: {("answer_post", 2), ("remove_post", 2), ("index_post", 3)} <= set(work.ended))
        await asyncio.sleep(0.3)
    assert ("index_post", 2) not in work.began  # its topic's earlier post comes first
    assert await statuses(pool) == {"todo": 2}


async def test_slow_indexing_never_holds_up_a_question(pool: Pool) -> None:
    gate = asyncio.Event()

    async def act(task: str, _number: int) -> None:
        if task == "index_post":
            await gate.wait()

    work = RecordedWork(act)
    for number in range(1, 6):
        await add(pool, number, index(number))
    async with working(pool, work):
        await until(lambda: len([task for task, _ in work.began if task == "index_post"]) == FAST.index_concurrency)
        await add(pool, 9, answer(9))
        await until(lambda: ("answer_post", 9) in work.ended, seconds=3)
        gate.set()


async def test_removals_come_before_indexing(pool: Pool) -> None:
    work = RecordedWork()
    for number in range(1, 6):
        await add(pool, number, index(number))
    await add(pool, 9, NewJob(TaskName.REMOVE_POST))
    one_at_a_time = FAST.model_copy(update={"index_concurrency": 1})
    async with working(pool, work, one_at_a_time):
        await until(lambda: len(indexed(work)) == 5)
    order = [task for task, _ in work.ended if task in ("remove_post", "index_post")]
    assert order == ["remove_post"] + ["index_post"] * 5


@pytest.mark.parametrize(
    ("exception", "tries"),
    [(Transient("busy"), 3), (ZeroDivisionError(), 3), (Misconfigured("key"), 3), (Rejected("no"), 1)],
)
async def test_a_question_that_cannot_be_answered_is_given_up_once_and_recorded(
    pool: Pool, exception: Exception, tries: int
) -> None:
    async def act(task: str, _number: int) -> None:
        if task == "answer_post":
            raise exception

    work = RecordedWork(act)
    await add(pool, 5, answer(5))
    async with working(pool, work):
        await until(lambda: work.given_up == [5])
        await asyncio.sleep(0.3)
    assert work.began.count(("answer_post", 5)) == tries
    assert work.given_up == [5]
    assert await statuses(pool) == {"failed": 1}


async def test_a_servers_wish_is_waited_for(pool: Pool) -> None:
    at: list[float] = []

    async def act(task: str, _number: int) -> None:
        if task == "answer_post":
            at.append(monotonic())
            if len(at) == 1:
                raise Transient("429", retry_after_seconds=1.5)

    work = RecordedWork(act)
    await add(pool, 5, answer(5))
    async with working(pool, work):
        await until(lambda: ("answer_post", 5) in work.ended)
    assert 1.5 <= at[1] - at[0] < 4.5


async def test_embedding_goes_on_batch_by_batch(pool: Pool) -> None:
    class Backlog(RecordedWork):
        left = 4

        async def embed_pending(self) -> int:
            self.left -= 1
            return max(self.left, 0)

    work = Backlog()
    async with working(pool, work):
        await until(lambda: work.left <= 0)


async def test_a_rolled_back_transaction_leaves_no_job(pool: Pool) -> None:
    with pytest.raises(RuntimeError):
        async with transaction(pool) as conn:
            await defer_jobs(conn, [index(1), answer(1)], InboxId(1))
            raise RuntimeError
    assert await statuses(pool) == {}
