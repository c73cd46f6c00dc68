"""How a long-running process is told to stop, and made to."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

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
