"""Webhook throughput: our endpoint beside a bare FastAPI endpoint that does one INSERT, both real servers."""

import asyncio
import itertools
import json
import os
import secrets
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from time import perf_counter
from typing import Any

from fastapi import FastAPI, Request
from psycopg import AsyncConnection

from service.app import create_app, listen, serve
from service.bench import percentiles_ms, report
from service.bench.scratch import scratch_database
from service.discourse.signature import sign
from service.errors import Misconfigured, Transient
from service.settings import Settings, WebhookSettings, WebSettings
from service.stop import stop_on_signals
from service.store.pool import Pool, open_pool, translated

ROUNDS = 4
"""How often the two systems take turns, so that a slow moment of the machine hits both."""

WARM_UP = 100
START_SECONDS = 30.0
SYSTEMS = ("ariane webhook", "bare FastAPI, one INSERT")


async def bench_webhook(database_url: str, *, requests: int = 2000, connections: int = 8) -> dict[str, Any]:
    """Drive both systems in turns with `requests` signed deliveries each, all different, in a closed loop.

    Everything happens in a database of its own on the same server, dropped afterwards. Raises Misconfigured when that
    may not be made, Transient when a server doesn't start.
    """
    secret = secrets.token_hex(16)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(scratch_database(database_url))
        with translated():
            async with await AsyncConnection.connect(url, autocommit=True) as conn:
                await conn.execute("INSERT INTO categories VALUES (1, 'Bench', 'bench', NULL, false)")
                await conn.execute("CREATE TABLE bare (id bigserial PRIMARY KEY, body text NOT NULL)")
        ports = [await stack.enter_async_context(_server(system, url, secret)) for system in ("ours", "bare")]
        each = max(requests // ROUNDS, connections)
        seconds: list[list[float]] = [[], []]
        elapsed = [0.0, 0.0]
        ids = itertools.count(1)
        for turn in range(-1, ROUNDS):
            count = each if turn >= 0 else WARM_UP
            for system, port in enumerate(ports):
                deliveries = [_delivery(next(ids), secret) for _ in range(count)]
                start = perf_counter()
                latencies = await _drive(port, deliveries, connections)
                if turn >= 0:
                    elapsed[system] += perf_counter() - start
                    seconds[system] += latencies
    rates = [len(latencies) / taken for latencies, taken in zip(seconds, elapsed, strict=True)]
    rows = [
        {"system": name, "requests_per_s": round(rate, 1), **percentiles_ms(latencies)}
        for name, rate, latencies in zip(SYSTEMS, rates, seconds, strict=True)
    ]
    used = {"requests": len(seconds[0]), "connections": connections, "rounds": ROUNDS}
    return report("webhook", settings=used, rows=rows, ratio=round(rates[0] / rates[1], 3))


@asynccontextmanager
async def _server(system: str, url: str, secret: str) -> AsyncIterator[int]:
    """The port of a web process of its own; its address and secret go by the environment, which others can't read."""
    environment = {**os.environ, "BENCH_DATABASE_URL": url, "BENCH_SECRET": secret}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "service.bench.webhook", system, env=environment, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None  # noqa: S101 - PIPE was asked for
        line = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
        if not line:
            raise Misconfigured(f"the bench's {system} server ended before it listened")
        yield int(line)
    except TimeoutError as exc:
        raise Transient(f"the bench's {system} server did not listen within {START_SECONDS:g} s") from exc
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _delivery(number: int, secret: str) -> bytes:
    """A request as Discourse sends it: a post of some 2 kB, signed."""
    post = {
        "id": number,
        "topic_id": number // 10 + 1,
        "post_number": number % 10 + 1,
        "post_type": 1,
        "user_id": 5,
        "username": "lea",
        "cooked": f"<p>Post {number}: " + "the radiator gurgles when the heating starts in the morning. " * 30 + "</p>",
        "created_at": "2024-05-01T10:00:00.000Z",
        "updated_at": "2024-05-01T10:00:00.000Z",
        "topic_archetype": "regular",
        "topic_title": "Radiators",
        "topic_slug": "radiators",
        "category_id": 1,
    }
    body = json.dumps({"post": post}).encode()
    head = (
        "POST /webhooks/discourse HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nX-Discourse-Instance: https://forum.example\r\n"
        f"X-Discourse-Event-Id: {number}\r\nX-Discourse-Event-Type: post\r\nX-Discourse-Event: post_created\r\n"
        f"X-Discourse-Event-Signature: {sign(secret.encode(), body)}\r\n\r\n"
    )
    return head.encode() + body


async def _drive(port: int, requests: Sequence[bytes], connections: int) -> list[float]:
    """Send each request once over some keep-alive connections; the latencies in seconds."""
    left = iter(requests)
    latencies: list[float] = []

    async def one_connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in left:
            start = perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            await reader.readexactly(length)
            latencies.append(perf_counter() - start)
            if not head.startswith(b"HTTP/1.1 200 "):
                raise Transient(f"the bench's server answered {head.partition(b' ')[2][:40]!r}")
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(one_connection() for _ in range(connections)))
    return latencies


def _bare_app(pool: Pool) -> FastAPI:
    app = FastAPI()

    @app.post("/webhooks/discourse")
    async def store(request: Request) -> dict[str, str]:
        body = await request.body()
        async with pool.connection() as conn:
            await conn.execute("INSERT INTO bare (body) VALUES (%s)", [body.decode()])
        return {"status": "stored"}

    return app


async def _serve(system: str) -> None:
    webhook = WebhookSettings.model_validate({"secrets": [os.environ["BENCH_SECRET"]]})
    settings = Settings(web=WebSettings.model_validate({"port": 0}), webhook=webhook)
    with stop_on_signals(10) as stop:
        async with open_pool(os.environ["BENCH_DATABASE_URL"], settings.database) as pool:
            app = create_app(settings, pool) if system == "ours" else _bare_app(pool)
            socket = listen(settings.web)
            print(socket.getsockname()[1], flush=True)
            await serve(app, socket, stop=stop)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
