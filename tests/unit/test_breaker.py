"""The breaker, the turns and the way to a server that joins them."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import Busy, Misconfigured, Rejected, Transient
from service.inference.access import Access
from service.inference.batching import BatchRefused
from service.inference.breaker import Breaker, BreakerState
from service.inference.turns import Turns


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def breaker(clock: Clock, failures: int = 3) -> Breaker:
    return Breaker("tei", failures=failures, open_seconds=30.0, clock=clock)


def fail(one: Breaker, exc: Exception) -> None:
    with pytest.raises(type(exc)), one.watch():
        raise exc


def state(one: Breaker) -> BreakerState:
    return one.state


def succeed(one: Breaker) -> None:
    with one.watch():
        pass


def test_it_opens_after_failures_in_a_row_and_closes_after_a_probe() -> None:
    clock = Clock()
    one = breaker(clock)
    fail(one, Transient("gone"))
    fail(one, Transient("gone"))
    succeed(one)
    for _ in range(3):
        assert state(one) is BreakerState.CLOSED
        fail(one, Transient("gone"))
    assert state(one) is BreakerState.OPEN
    clock.now += 10
    with pytest.raises(Transient, match="left alone") as refused, one.watch():
        raise AssertionError("no call is made")
    assert refused.value.retry_after_seconds == 20
    clock.now += 20
    assert state(one) is BreakerState.HALF_OPEN
    succeed(one)
    assert state(one) is BreakerState.CLOSED


def test_a_failed_probe_opens_it_again_for_as_long() -> None:
    clock = Clock()
    one = breaker(clock, failures=1)
    fail(one, Transient("gone"))
    clock.now += 30
    fail(one, Transient("still gone"))
    assert state(one) is BreakerState.OPEN
    clock.now += 29
    assert state(one) is BreakerState.OPEN


def test_one_probe_at_a_time() -> None:
    clock = Clock()
    one = breaker(clock, failures=1)
    fail(one, Transient("gone"))
    clock.now += 30
    with one.watch(), pytest.raises(Transient):
        one.check()
    one.check()


@pytest.mark.parametrize("exc", [Rejected("no", status=422), Misconfigured("no such model")])
def test_an_answer_that_refuses_proves_that_the_server_works(exc: Exception) -> None:
    one = breaker(Clock(), failures=2)
    fail(one, Transient("gone"))
    fail(one, exc)
    fail(one, Transient("gone"))
    assert state(one) is BreakerState.CLOSED


def test_a_server_that_a_person_must_mend_does_not_work_though_it_answers() -> None:
    one = breaker(Clock())
    fail(one, Misconfigured("no such model"))
    assert (state(one), works(one)) == (BreakerState.CLOSED, False)
    succeed(one)
    assert works(one)
    fail(one, Rejected("too long", status=413))
    assert works(one)


def test_a_server_that_fails_by_turns_is_asked_each_time() -> None:
    """What a flapping server costs is bounded by its timeout for every other question; it answers the rest."""
    one = breaker(Clock())
    for _ in range(20):
        fail(one, Transient("gone"))
        succeed(one)
    assert state(one) is BreakerState.CLOSED


def test_calls_that_were_under_way_when_it_opened_do_not_keep_it_open() -> None:
    clock = Clock()
    one = breaker(clock, failures=1)
    late, later = one.watch(), one.watch()
    late.__enter__()
    later.__enter__()
    fail(one, Transient("gone"))
    clock.now += 20
    late.__exit__(Transient, Transient("gone too"), None)
    clock.now += 10
    assert state(one) is BreakerState.HALF_OPEN
    succeed(one)
    assert later.__exit__(Transient, Transient("the last of them"), None) is not True
    assert works(one) is False


def works(one: Breaker) -> bool:
    return one.works


@pytest.mark.parametrize("exc", [Busy("full"), BatchRefused("500", status=500), asyncio.CancelledError()])
def test_what_proves_nothing_changes_nothing(exc: BaseException) -> None:
    clock = Clock()
    one = breaker(clock, failures=2)
    fail(one, Transient("gone"))
    with pytest.raises(type(exc)), one.watch():
        raise exc
    fail(one, Transient("gone"))
    assert state(one) is BreakerState.OPEN
    clock.now += 30
    with pytest.raises(type(exc)), one.watch():
        raise exc
    assert state(one) is BreakerState.HALF_OPEN, "the next call may probe"
    succeed(one)


async def test_the_urgent_go_first_then_the_others_by_arrival() -> None:
    turns = Turns(1)
    order: list[str] = []

    async def work(name: str, *, urgent: bool) -> None:
        await turns.acquire(urgent=urgent)
        order.append(name)
        await asyncio.sleep(0)
        turns.release()

    async with asyncio.TaskGroup() as group:
        for name, urgent in (("a", False), ("b", False), ("c", False), ("q1", True), ("q2", True)):
            group.create_task(work(name, urgent=urgent))
    assert order == ["a", "q1", "q2", "b", "c"]
    assert (turns.taken, turns.waiting) == (0, 0)


async def test_more_capacity_lets_waiting_calls_in_at_once() -> None:
    turns = Turns(1)
    await turns.acquire(urgent=False)
    waiting = [asyncio.create_task(turns.acquire(urgent=False)) for _ in range(3)]
    await asyncio.sleep(0)
    turns.resize(3)
    await asyncio.sleep(0)
    assert [task.done() for task in waiting] == [True, True, False]
    turns.resize(1)
    for _ in range(3):
        turns.release()
    await waiting[2]
    assert turns.taken == 1


@given(st.lists(st.sampled_from(["call", "urgent", "cancel", "end", "grow", "shrink"]), max_size=40))
async def test_no_turn_is_lost_or_given_twice(steps: list[str]) -> None:
    turns = Turns(2)
    release = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []
    capacity = most = 2

    async def work(urgent: bool) -> None:
        await turns.acquire(urgent=urgent)
        try:
            assert turns.taken <= most
            await release.wait()
        finally:
            turns.release()

    for step in steps:
        match step:
            case "call" | "urgent":
                tasks.append(asyncio.create_task(work(step == "urgent")))
            case "cancel" if tasks:
                tasks.pop(len(tasks) // 2).cancel()
            case "end":
                release.set()
                await asyncio.sleep(0)
                release.clear()
            case "grow" | "shrink":
                capacity = max(1, capacity + (1 if step == "grow" else -1))
                most = max(most, capacity)
                turns.resize(capacity)
        await asyncio.sleep(0)
    release.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)
    assert (turns.taken, turns.waiting) == (0, 0)


def access(capacity: int = 1, failures: int = 2) -> Access:
    return Access(Turns(capacity), Breaker("model", failures=failures, open_seconds=30))


async def test_a_call_past_its_deadline_is_transient_and_counted() -> None:
    way = access()
    for _ in range(2):
        with pytest.raises(Transient, match="no answer in"):
            async with way.call(urgent=True, timeout_seconds=0.01):
                await asyncio.sleep(5)
    assert state(way.breaker) is BreakerState.OPEN
    with pytest.raises(Transient, match="left alone"):
        async with way.call(urgent=True, timeout_seconds=0.01):
            raise AssertionError("no call is made")
    assert way.turns.taken == 0


async def test_waiting_for_a_turn_counts_into_the_deadline_and_opens_nothing() -> None:
    way = access(failures=1)
    async with way.call(urgent=True, timeout_seconds=5):
        with pytest.raises(Busy, match="no free turn"):
            async with way.call(urgent=True, timeout_seconds=0.01):
                raise AssertionError("no turn is free")
    assert state(way.breaker) is BreakerState.CLOSED
    assert way.turns.taken == 0


async def test_a_call_whose_turn_came_late_blames_the_queue_and_opens_nothing() -> None:
    way = access(failures=1)
    gone = asyncio.Event()

    async def hold(seconds: float) -> None:
        async with way.call(urgent=True, timeout_seconds=5):
            await asyncio.sleep(seconds)

    async def wait_and_take_too_long() -> None:
        with pytest.raises(Busy, match="that the wait for a turn left"):
            async with way.call(urgent=True, timeout_seconds=0.2):
                await gone.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(hold(0.15))
        group.create_task(wait_and_take_too_long())
    assert state(way.breaker) is BreakerState.CLOSED
    assert way.breaker.works
    assert way.turns.taken == 0


async def test_questions_that_are_cancelled_or_late_leave_every_turn_free() -> None:
    way = Access(Turns(3), Breaker("model", failures=10_000))
    random = Random(3)

    async def call(seconds: float, timeout_seconds: float) -> None:
        async with way.call(urgent=seconds > 0.002, timeout_seconds=timeout_seconds):
            await asyncio.sleep(seconds)

    calls = [asyncio.create_task(call(random.uniform(0, 0.004), random.uniform(0, 0.03))) for _ in range(200)]
    for one in random.sample(calls, 80):
        await asyncio.sleep(random.choice([0, 0, 0.001]))
        one.cancel()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(one) for one in ended} <= {type(None), Transient, Busy, asyncio.CancelledError}
    assert (way.turns.taken, way.turns.waiting) == (0, 0)
    async with way.call(urgent=False, timeout_seconds=1):
        assert way.turns.taken == 1


@pytest.mark.parametrize("error", [Transient("gone"), ValueError("a bug"), asyncio.CancelledError()])
async def test_the_turn_comes_back_whatever_happens(error: BaseException) -> None:
    way = access(failures=10)

    async def call() -> None:
        async with way.call(urgent=False, timeout_seconds=1):
            raise error

    await expect(call, type(error))
    assert way.turns.taken == 0


async def expect(call: Callable[[], Awaitable[None]], kind: type[BaseException]) -> None:
    with pytest.raises(kind):
        await call()
