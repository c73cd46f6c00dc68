"""Slow work is ended where it waits, once the process is told to stop."""

import asyncio

import pytest

from service.errors import Transient
from service.stop import until_stopped


async def test_work_ends_by_itself_or_with_the_process() -> None:
    stop, done = asyncio.Event(), []

    async def quick() -> None:
        done.append("quick")

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            done.append("ended")

    await until_stopped(stop, quick())
    assert not stop.is_set()
    waiting = asyncio.create_task(until_stopped(stop, slow()))
    await asyncio.sleep(0.01)
    assert done == ["quick"]
    stop.set()
    await waiting
    assert done == ["quick", "ended"]


async def test_its_error_is_raised_and_who_is_cancelled_leaves_none_behind() -> None:
    async def failing() -> None:
        raise Transient("busy")

    with pytest.raises(Transient, match="busy"):
        await until_stopped(asyncio.Event(), failing())
    ended = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.create_task(until_stopped(asyncio.Event(), slow()))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()
