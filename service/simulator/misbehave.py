"""ASGI middleware that lets REST answers go wrong as the switches say."""

import asyncio
import json
from typing import Any

import httpx
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.simulator.switches import Body, Fault, Switch, Switches

GARBAGE = b"\x00\xff<!doctype {{ not json"
HTML = "<!DOCTYPE html><html><head><title>{status}</title></head><body><h1>Error {status}</h1></body></html>"


class Misbehave:
    """Wraps the forum; `/simulator/*` and the pages always behave."""

    def __init__(self, app: ASGIApp, switches: Switches, base_path: str) -> None:
        self.app = app
        self.switches = switches
        self.base_path = base_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "").removeprefix(self.base_path)
        if scope["type"] != "http" or not path.endswith(".json") or path.startswith("/simulator/"):
            await self.app(scope, receive, send)
            return

        def taken(fault: Fault) -> Switch | None:
            return self.switches.take(fault, method=scope["method"], path=path)

        whole = receive
        if slow := taken(Fault.SLOW):
            whole = await _read(receive)
            await asyncio.sleep(slow.seconds)
        if refused := taken(Fault.STATUS):
            await _refuse(refused, send)
        elif taken(Fault.GARBAGE):
            await _run(self.app, scope, whole)
            await _answer(send, 200, "application/json", GARBAGE)
        elif taken(Fault.TRUNCATED):
            start, body = await _run(self.app, scope, whole)
            await send(start)
            # a real connection breaks before Content-Length is reached; in-process clients only see less
            broken = _transport(receive) is not None
            await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": broken})
        elif taken(Fault.LOST):
            await _run(self.app, scope, whole)
            await _hang_up(receive)
        else:
            await self.app(scope, whole, send)


async def _read(receive: Receive) -> Receive:
    """The request read to its end: as on a real forum, it is carried out even when its sender has gone meanwhile."""
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())

    async def again() -> Message:
        return messages.pop(0) if messages else await receive()

    return again


async def _run(app: ASGIApp, scope: Scope, receive: Receive) -> tuple[Message, bytes]:
    """Carry the request out and keep its answer."""
    messages: list[Message] = []

    async def keep(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, keep)
    return messages[0], b"".join(m.get("body", b"") for m in messages[1:])


async def _answer(send: Send, status: int, kind: str, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    own = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": own})
    await send({"type": "http.response.body", "body": body})


async def _refuse(switch: Switch, send: Send) -> None:
    text = {
        Body.JSON: json.dumps({"errors": [f"The simulator was told to answer {switch.status}."]}),
        Body.HTML: HTML.format(status=switch.status),
        Body.TEXT: "Slow down, you're making too many requests.\n",
    }[switch.body]
    kind = {Body.JSON: "application/json", Body.HTML: "text/html", Body.TEXT: "text/plain"}[switch.body]
    after = switch.retry_after_seconds
    headers = [] if after is None else [(b"retry-after", str(after).encode())]
    await _answer(send, switch.status, f"{kind}; charset=utf-8", text.encode(), *headers)


def _transport(receive: Receive) -> Any:
    """The socket's transport: uvicorn's receive is a method of its request cycle, and ASGI has no way to hang up."""
    return getattr(getattr(receive, "__self__", None), "transport", None)


async def _hang_up(receive: Receive) -> None:
    """Close the connection without a byte; in-process clients get the error that a real one would see."""
    transport = _transport(receive)
    if transport is None:
        raise httpx.ReadError("the connection was closed")
    transport.abort()
    await asyncio.sleep(0.05)
