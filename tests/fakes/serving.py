"""Serves an ASGI app on a real socket of this machine, in a thread of its own, for the tests of our HTTP clients."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send


class Stage:
    """An app that hands each request to whatever app is `on` it: one server, a fresh fake for every test."""

    def __init__(self) -> None:
        self.on: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.on is not None, "no fake is on the stage"
        await self.on(scope, receive, send)


@contextmanager
def served(app: ASGIApp, *, port: int = 0) -> Iterator[str]:
    """The address of the running app, at any port unless one is given; open connections are cut at the end."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        config = uvicorn.Config(app, lifespan="off", log_level="critical", ws="none", timeout_graceful_shutdown=0)
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(5)


def refusing_address() -> str:
    """An address where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"
