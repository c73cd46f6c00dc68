"""A TCP port that leads to a server: shut it, and connections are refused; or let it cut one at a chosen moment."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HOST = "127.0.0.1"


class Door:
    """Forwards bytes both ways while it is open; its port stays the same."""

    def __init__(self, enter: Callable[[], Awaitable[Streams]]) -> None:
        """`enter` connects to the server behind it."""
        self.port = 0
        self.cut_after: tuple[bytes, ...] = ()
        """A client that has sent these, in this order, loses its connection instead of the last one's answer, once."""
        self._enter = enter
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._deaf: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shut()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._through, HOST, self.port, reuse_address=True)
        self.port = self._server.sockets[0].getsockname()[1]

    async def shut(self) -> None:
        """Refuse connections, and cut those there are."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._tasks)

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        inner_writer = None
        try:
            inner_reader, inner_writer = await self._enter()
            self._writers.add(inner_writer)
            there = asyncio.create_task(self._there(reader, writer, inner_reader, inner_writer))
            await self._back(inner_reader, writer)
            there.cancel()
            await asyncio.gather(there, return_exceptions=True)
        except OSError:
            pass  # either side is gone: so is the other, below
        finally:
            for one in (writer, inner_writer):
                if one is not None:
                    self._writers.discard(one)
                    one.transport.abort()
            self._tasks.discard(task)

    async def _there(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        inner_reader: asyncio.StreamReader,
        inner_writer: asyncio.StreamWriter,
    ) -> None:
        met = 0
        with suppress(OSError):
            while sent := await reader.read(65536):
                if not self.cut_after:
                    met = 0
                elif self.cut_after[met] in sent:
                    met += 1
                if met and met == len(self.cut_after):
                    self.cut_after = ()
                    self._deaf.add(writer)
                    inner_writer.write(sent)
                    await asyncio.sleep(0.3)  # the server has done it by then
                    break
                inner_writer.write(sent)
                await inner_writer.drain()
        inner_writer.transport.abort()
        writer.transport.abort()

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while got := await reader.read(65536):
                if writer not in self._deaf:
                    writer.write(got)
                    await writer.drain()
        self._deaf.discard(writer)
