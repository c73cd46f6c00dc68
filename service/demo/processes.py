"""The demo's child processes: started in order, watched, and stopped by their id in the opposite order."""

import asyncio
import contextlib
import ctypes
import signal
import socket
import sys
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from service.errors import Misconfigured

T = TypeVar("T")

STOP_SECONDS = 15.0
PR_SET_PDEATHSIG = 1
LOG_TAIL_LINES = 15


@dataclass(frozen=True, slots=True)
class Child:
    name: str
    process: asyncio.subprocess.Process
    log: Path

    def fault(self) -> Misconfigured:
        """What to say when this child ended by itself: its last words."""
        tail = self.log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        return Misconfigured(
            f"{self.name} stopped with status {self.process.returncode} ({self.log}): {' / '.join(tail)}"
        )


class Children:
    """Child processes with a common end: leaving the context stops them all."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._children: list[Child] = []

    async def __aenter__(self) -> Self:
        self._logs.mkdir(parents=True, exist_ok=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in reversed(self._children):
            await _stop(child.process)

    async def start(self, name: str, *arguments: str, env: Mapping[str, str]) -> Child:
        """Start `python -m <arguments>`, its output in the log folder."""
        log = self._logs / f"{name}.log"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                *arguments,
                env=dict(env),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
        child = Child(name, process, log)
        self._children.append(child)
        return child

    async def first_to_end(self) -> Child:
        """Wait until any child ends by itself."""
        waits = {asyncio.create_task(child.process.wait()): child for child in self._children}
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            return waits[done.pop()]
        finally:
            for task in waits:
                task.cancel()

    async def while_all_live(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives; raises Misconfigured with a child's last words when it ends before that."""
        working = asyncio.create_task(work)
        ending = asyncio.create_task(self.first_to_end())
        try:
            await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise ending.result().fault()
            return working.result()
        finally:
            working.cancel()
            ending.cancel()


async def until_answering(child: Child, url: str, *, seconds: float) -> None:
    """Wait until `url` answers with 2xx; raises Misconfigured with the child's last words if it doesn't."""
    deadline = asyncio.get_running_loop().time() + seconds
    async with httpx.AsyncClient(timeout=2.0) as client:
        while child.process.returncode is None and asyncio.get_running_loop().time() < deadline:
            with contextlib.suppress(httpx.TransportError):
                if (await client.get(url)).is_success:
                    return
            await asyncio.sleep(0.1)
    raise child.fault()


def free_ports(host: str, *wanted: int) -> list[int]:
    """Each wanted port if nothing listens there, else one that the system picks; all different."""
    with contextlib.ExitStack() as held:
        return [_free_port(host, port, held) for port in wanted]


def _free_port(host: str, wanted: int, held: contextlib.ExitStack) -> int:
    for port in (wanted, 0):
        probe = held.enter_context(socket.socket())
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind((host, port))
            probe.listen()  # two bound sockets may share a port, two listening ones never
            return int(probe.getsockname()[1])
    raise Misconfigured(f"no port can be opened on {host}: is the loopback interface up?")


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


def _die_with_parent() -> None:
    """Linux: a killed demo takes its children along, so that nothing is left listening."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
