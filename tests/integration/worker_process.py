"""A real worker process for the tests: its work takes the given time and is written to the table `work_log`."""

import asyncio
import os
import sys

from service.settings import Settings
from service.stop import stop_on_signals
from service.store.pool import Pool, open_pool
from service.worker import run_worker
from tests.integration.queue_kit import FAST, RecordedWork


def logged_work(pool: Pool, seconds: float) -> RecordedWork:
    async def note(phase: str, task: str, number: int) -> None:
        async with pool.connection() as conn:
            await conn.execute("INSERT INTO work_log VALUES (%s, %s, %s, %s)", (phase, task, number, os.getpid()))

    async def act(task: str, number: int) -> None:
        if task == "answer_post":
            await note("began", task, number)
            await asyncio.sleep(seconds)
            await note("ended", task, number)

    return RecordedWork(act)


async def main(url: str, seconds: float) -> None:
    with stop_on_signals(FAST.shutdown_grace_seconds) as stop:
        async with open_pool(url) as pool:
            await run_worker(Settings(worker=FAST), pool, logged_work(pool, seconds), stop=stop)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
