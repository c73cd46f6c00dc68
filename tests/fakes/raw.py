"""A server that answers every request with the bytes it was given, HTTP or not."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

HOST = "127.0.0.1"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass
class RawServer:
    """`said` is the next answer to whatever is asked, but for `info` at /info; then the connection stays or is cut."""

    url: str = ""
    said: bytes = b""
    info: bytes = b""
    cuts: bool = True
    requests: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if length := _LENGTH.search(head):
                    await reader.readexactly(int(length[1]))
                self.requests += 1
                asked_info = b" /info " in head.partition(b"\r\n")[0]
                writer.write(self.info if asked_info else self.said)
                await writer.drain()
                if self.cuts and not asked_info:
                    return
        except (asyncio.IncompleteReadError, OSError):
            return  # the client went away
        finally:
            writer.close()


def http(content: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """An answer with these headers and its length."""
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(content)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + content


@asynccontextmanager
async def raw_server() -> AsyncIterator[RawServer]:
    """The server at its address, in this event loop."""
    server = RawServer()
    listening = await asyncio.start_server(server.serve, HOST, 0)
    server.url = f"http://{HOST}:{listening.sockets[0].getsockname()[1]}"
    async with listening:
        yield server
