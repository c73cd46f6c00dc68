"""The pods behind a service name: taken in turn, resting after a failure, looked up again."""

import asyncio
from collections.abc import Sequence

import pytest

from service.errors import Transient
from service.inference.pods import Pods, resolve_host


class Names:
    """A resolver whose answers a test sets; an exception is raised."""

    def __init__(self, *addresses: str) -> None:
        self.answer: Sequence[str] | OSError = addresses
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def pods(names: Names, clock: Clock, sizes: list[int] | None = None) -> Pods:
    resized = (lambda count: None) if sizes is None else sizes.append
    return Pods("tei.models", 80, resolve=names, resized=resized, refresh_seconds=15, rest_seconds=10, clock=clock)


async def picks(of: Pods, count: int) -> list[str]:
    return [await of.pick() for _ in range(count)]


async def test_each_pod_has_its_turn() -> None:
    names = Names("a", "b", "c")
    assert sorted(await picks(pods(names, Clock()), 6)) == ["a", "a", "b", "b", "c", "c"]
    assert names.asked == 1


async def test_a_failed_pod_rests_then_comes_back() -> None:
    clock = Clock()
    some = pods(Names("a", "b"), clock)
    await some.pick()
    some.failed("a")
    assert set(await picks(some, 4)) == {"b"}
    clock.now += 10
    assert set(await picks(some, 4)) == {"a", "b"}


async def test_when_all_failed_all_are_tried() -> None:
    some = pods(Names("a", "b"), Clock())
    await some.pick()
    some.failed("a")
    some.failed("b")
    assert set(await picks(some, 4)) == {"a", "b"}


async def test_pods_that_come_and_go_are_seen_after_a_while() -> None:
    clock, sizes, names = Clock(), list[int](), Names("a")
    some = pods(names, clock, sizes)
    await some.pick()
    names.answer = ("a", "b", "c")
    assert set(await picks(some, 3)) == {"a"}
    clock.now += 15
    assert set(await picks(some, 3)) == {"a", "b", "c"}
    assert sizes == [1, 3]
    assert some.count == 3


@pytest.mark.parametrize("answer", [OSError("no such name"), ()])
async def test_known_pods_outlive_a_failing_name_server(answer: OSError | tuple[str, ...]) -> None:
    clock, names = Clock(), Names("a")
    some = pods(names, clock)
    await some.pick()
    names.answer = answer
    clock.now += 15
    assert await some.pick() == "a"


@pytest.mark.parametrize("answer", [OSError("no such name"), ()])
async def test_an_unknown_name_is_transient(answer: OSError | tuple[str, ...]) -> None:
    names = Names()
    names.answer = answer
    with pytest.raises(Transient, match=r"tei\.models"):
        await pods(names, Clock()).pick()


async def test_addresses_resolve_to_themselves() -> None:
    assert await resolve_host("127.0.0.1", 80) == ["127.0.0.1"]
    assert await resolve_host("::1", 80) == ["::1"]


async def test_a_silent_name_server_costs_two_seconds_and_leaves_the_known_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("service.inference.pods.RESOLVE_SECONDS", 0.01)
    silent = False

    async def resolve(host: str, port: int) -> Sequence[str]:
        if silent:
            await asyncio.sleep(60)
        return ["a", "b"]

    clock = Clock()
    some = Pods("tei.models", 80, resolve=resolve, refresh_seconds=15, clock=clock)
    assert await some.pick() in "ab"
    silent, clock.now = True, clock.now + 15
    assert set(await picks(some, 4)) == {"a", "b"}
    with pytest.raises(Transient, match="no answer in"):
        await Pods("tei.models", 80, resolve=resolve).pick()


@pytest.mark.parametrize("host", ["a" * 70, "a..b", "\udcff"])
async def test_a_name_that_is_none_is_transient(host: str) -> None:
    with pytest.raises(Transient, match="can't be resolved"):
        await Pods(host, 80).pick()


async def test_pods_that_are_gone_are_forgotten() -> None:
    names, clock = Names("a"), Clock()
    some = pods(names, clock)
    for n in range(50):
        some.failed(await some.pick())
        names.answer, clock.now = [f"pod-{n}"], clock.now + 15
    await some.pick()
    assert len(some._resting) <= 1
