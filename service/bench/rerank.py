"""Measures what our rerank adapter costs over a bare HTTP call of the same request, in the same run."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from threading import Thread
from time import perf_counter
from typing import Any

import httpx
import uvicorn
from starlette.types import Receive, Scope, Send

from service.bench import percentiles_ms, report
from service.domain import Candidate, PostId, RerankerProfile, TopicId
from service.inference.pairs import PairOptions, pairs
from service.inference.tei import TeiOptions, TeiServer
from service.inference.tei_reranker import TeiReranker

QUESTION = "Why does the heating loop lose pressure every night, and what should I look at first? " * 4


async def bench_rerank(*, count: int = 25, runs: int = 200) -> dict[str, Any]:
    """Score `count` pairs `runs` times each way, in turn, on a server of this process that answers at once.

    The adapter's row says how many milliseconds its median is over the bare call's.
    """
    found = [_candidate(n) for n in range(count)]
    options = PairOptions()
    query, texts = pairs(QUESTION, found, options)
    body = {"query": query, "texts": texts, "raw_scores": True, "truncate": True, "return_text": False}
    seconds: tuple[list[float], list[float]] = ([], [])
    async with _instant_tei(count) as url, httpx.AsyncClient(base_url=url) as client:
        server = TeiServer("tei", TeiOptions(url))
        reranker = TeiReranker(server, RerankerProfile("bench", weak=-4.0, normal=0.0, provisional=True), options)

        async def bare() -> None:
            (await client.post("/rerank", json=body)).json()

        async def adapter() -> None:
            await reranker.rerank(QUESTION, found)

        await bare()
        await adapter()
        for _ in range(runs):
            for taken, call in zip(seconds, (bare, adapter), strict=True):
                start = perf_counter()
                await call()
                taken.append(perf_counter() - start)
        await server.aclose()
    rows: list[dict[str, Any]] = [
        {"system": name, **percentiles_ms(taken)}
        for name, taken in zip(("bare httpx call", "rerank adapter"), seconds, strict=True)
    ]
    rows[1]["added_ms"] = round(rows[1]["p50_ms"] - rows[0]["p50_ms"], 3)
    used = {"pairs": count, "runs": runs}
    return report("rerank", settings=used, rows=rows, ratio=round(rows[1]["p50_ms"] / rows[0]["p50_ms"], 3))


def _candidate(n: int) -> Candidate:
    body = f"Post {n}: check the expansion vessel first, then each valve of the loop, by night and by day. " * 4
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return Candidate(PostId(n), TopicId(n), 1, f"The loop loses pressure, part {n}", "loop", body, "zoe", when)


@asynccontextmanager
async def _instant_tei(count: int) -> AsyncIterator[str]:
    """A server with TEI's answers, ready beforehand, in a thread of its own."""
    ranks = json.dumps([{"index": n, "score": 1.5 - n} for n in range(count)]).encode()
    info = json.dumps({"model_id": "instant", "version": "1.9.3", "max_client_batch_size": 32}).encode()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        content = info if scope["path"] == "/info" else ranks
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": content})

    # with the protocol named, asyncio turns Nagle's algorithm off: else an answer in two writes waits 40 ms
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="critical", ws="none"))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started and thread.is_alive():  # noqa: ASYNC110 - another thread starts it
            await asyncio.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await asyncio.to_thread(thread.join, 5)
