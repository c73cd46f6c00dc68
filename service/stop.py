"""How a long-running process is told to stop, and made to."""

import asyncio
import os
import signal
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

WATCHDOG_MARGIN_SECONDS = 15.0
"""What a stop may take beyond the grace, before the process is ended without ceremony."""

EXIT_HUNG = 75
"""Status of a process that had to be ended (EX_TEMPFAIL of sysexits.h)."""


@contextmanager
def stop_on_signals(grace_seconds: float) -> Iterator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set; the process is ended when it still lives well after the grace.

    Enter it before everything that must be closed in order: a broken connection can hang any of those closings.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if not stop.is_set():
            watchdog = threading.Timer(grace_seconds + WATCHDOG_MARGIN_SECONDS, os._exit, [EXIT_HUNG])
            watchdog.daemon = True
            watchdog.start()
        stop.set()

    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, on_signal)
    try:
        yield stop
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


async def until_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, object]) -> None:
    """Do `work` unless `stop` is set before it ends: it is then cancelled where it waits, and what it raised is raised.

    For slow work that loses nothing by it: the rest is done the next time.
    """
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.wait({working, stopping})
    if not working.cancelled():
        working.result()
