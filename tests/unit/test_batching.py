"""Batches: bounded, in order, and one bad item costs its neighbours nothing."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain import TextFailure
from service.errors import Transient
from service.inference.batching import BatchRefused, in_batches


class Model:
    """Doubles numbers; refuses a batch with a bad one, or with more than `capacity`; NaN ones fail in the answer."""

    def __init__(self, *, bad: Sequence[int] = (), nan: Sequence[int] = (), capacity: int = 100, works: bool = True):
        self.bad, self.nan, self.capacity, self.works = set(bad), set(nan), capacity, works
        self.calls: list[int] = []
        self.probes = 0

    async def call(self, batch: Sequence[int]) -> list[int | TextFailure]:
        self.calls.append(len(batch))
        if len(batch) > self.capacity:
            raise BatchRefused("too many", status=422)
        if not self.works or self.bad & set(batch):
            raise BatchRefused("bad", status=424)
        return [TextFailure("nan") if item in self.nan else item * 2 for item in batch]

    async def probe(self) -> None:
        self.probes += 1
        if not self.works:
            raise Transient("the server fails on everything")

    async def run(self, items: Sequence[int], limit: int) -> list[int | TextFailure]:
        return await in_batches(items, self.call, limit=limit, probe=self.probe)


async def test_slices_keep_the_order_and_the_limit() -> None:
    model = Model()
    assert await model.run(range(10), limit=4) == [item * 2 for item in range(10)]
    assert model.calls == [4, 4, 2]
    assert model.probes == 0


async def test_no_items_ask_nothing() -> None:
    model = Model()
    assert await model.run([], limit=4) == []
    assert model.calls == []


async def test_a_batch_that_is_too_large_is_halved() -> None:
    model = Model(capacity=3)
    assert await model.run(range(8), limit=32) == [item * 2 for item in range(8)]
    assert model.calls == [8, 4, 2, 2, 4, 2, 2]


async def test_one_bad_item_is_found_within_the_bound() -> None:
    model = Model(bad=[5])
    made = await model.run(range(16), limit=16)
    assert made == [TextFailure("bad") if item == 5 else item * 2 for item in range(16)]
    assert len(model.calls) + model.probes <= 2 * math.log2(16) + 4


async def test_a_server_that_fails_for_a_while_condemns_no_item() -> None:
    model = Model(works=False)

    async def mended() -> None:
        model.works = True

    model.probe = mended  # type: ignore[method-assign] # the server is mended between the refusal and the probe
    assert await model.run(range(4), limit=4) == [0, 2, 4, 6]


async def test_a_server_that_fails_after_it_worked_condemns_no_item() -> None:
    model = Model()
    served = model.call

    async def dies(batch: Sequence[int]) -> list[int | TextFailure]:
        model.works = not model.calls
        return await served(batch)

    model.call = dies  # type: ignore[method-assign] # right once, then an error for everything
    with pytest.raises(Transient):
        await model.run(range(8), limit=4)


async def test_a_broken_server_quarantines_nothing_and_is_given_up_soon() -> None:
    model = Model(works=False)
    with pytest.raises(Transient):
        await model.run(range(16), limit=16)
    assert len(model.calls) + model.probes <= math.log2(16) + 2


async def test_a_server_that_gives_nan_for_everything_quarantines_nothing() -> None:
    model = Model(nan=range(16))
    model.probe = lambda: (_ for _ in ()).throw(Transient("nan for the probe too"))  # type: ignore[method-assign] # a stand-in
    with pytest.raises(Transient):
        await model.run(range(16), limit=16)


async def test_an_item_alone_is_quarantined_once_the_probe_passes() -> None:
    model = Model(bad=[0])
    assert await model.run([0], limit=16) == [TextFailure("bad")]
    assert model.probes == 1


@given(
    count=st.integers(0, 40),
    bad=st.sets(st.integers(0, 39)),
    nan=st.sets(st.integers(0, 39)),
    limit=st.integers(1, 40),
    capacity=st.integers(1, 40),
)
async def test_each_item_gets_its_own_result(
    count: int, bad: set[int], nan: set[int], limit: int, capacity: int
) -> None:
    model = Model(bad=list(bad), nan=list(nan), capacity=capacity)
    made = await model.run(range(count), limit=limit)
    assert len(made) == count
    for item, one in enumerate(made):
        assert isinstance(one, TextFailure) == (item in bad | nan)
        assert isinstance(one, TextFailure) or one == item * 2
    assert max(model.calls, default=0) <= limit
    assert model.probes <= len(bad) + 1
