"""Search at scale: exact scan, both kinds of index at several depths, and numpy, side by side on the real SQL."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import AsyncConnection

from service.bench import percentiles_ms, report
from service.bench.scratch import scratch_database
from service.bench.search_data import KEPT_CATEGORY, PROFILE_ID, fill
from service.bench.vectors import Vectors
from service.domain import IndexKind
from service.store.kept import PAGE_COST
from service.store.pool import Connection, connection, open_pool
from service.store.profile_sql import create_index_statement, drop_index_statement, nearest_statement
from service.store.profiles import MAINTENANCE_MEMORY

LIMIT = 25
"""What a question takes, and what recall is of."""

WINDOW = 4 * LIMIT
"""The passages that a search looks at first."""

ENOUGH = 0.99
"""Recall from which an index may stand for the exact scan."""

EF_SEARCH = (100, 200, 400, 600, 800, 1000)
RESCORED = (200, 400, 800, 1000)
"""hnsw.ef_search ends at 1000, and with it the candidates of a Hamming scan that isn't made to go on."""

TURN = 10
"""Questions that a system answers before the next takes its turn: a slow moment of the machine hits all."""

WARM_UP = 5

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Build:
    """What the server may use to build an index."""

    maintenance_workers: int = 1
    maintenance_memory: str = MAINTENANCE_MEMORY


@dataclass(slots=True)
class _System:
    """A way to search, and what it gave: seconds and post ids of each question."""

    name: str
    kind: IndexKind | None = None
    ef_search: int = 0
    rescored: int = 0
    filtered: bool = False
    seconds: list[float] = field(default_factory=list)
    found: list[list[int]] = field(default_factory=list)


async def bench_search(
    database_url: str,
    vectors: Vectors,
    *,
    sizes: Sequence[int],
    kinds: Sequence[IndexKind],
    category_percent: float,
    build: Build,
    about: dict[str, Any],
    say: Say,
) -> dict[str, Any]:
    """Measure each size in a database of its own; `about` tells where the vectors are from.

    The row that is `chosen` is the fastest index with recall@25 of at least 0.99 at the largest size; `ratio` is how
    many times as long the exact scan takes there, in medians.
    """
    rows: list[dict[str, Any]] = []
    settings: dict[str, Any] = {}
    for size in sorted(sizes):
        async with (
            scratch_database(database_url) as url,
            open_pool(url, application_name="ariane-bench") as pool,
            connection(pool) as conn,
        ):
            await conn.execute("SELECT set_config('statement_timeout', '0', false)")
            say(f"{size:,} posts: storing")
            part = vectors.first(size)
            of_category = await fill(conn, part, category_percent)
            settings = await _server_settings(conn)
            rows += await _measure(conn, part, of_category, kinds, build, say)
    chosen, ratio = _choose([row for row in rows if row["posts"] == max(sizes)])
    if chosen is not None:
        chosen["chosen"] = True
    used = about | settings | {
        "dimensions": vectors.stored.shape[1],
        "questions": len(vectors.questions),
        "category_percent": category_percent,
        "maintenance_workers": build.maintenance_workers,
        "maintenance_work_mem": build.maintenance_memory,
    }  # fmt: skip
    return report("search", settings=used, rows=rows, ratio=ratio)


async def _measure(
    conn: Connection,
    vectors: Vectors,
    of_category: NDArray[np.bool_],
    kinds: Sequence[IndexKind],
    build: Build,
    say: Say,
) -> list[dict[str, Any]]:
    size, dimensions = vectors.stored.shape
    numpy_row, exact = _System("numpy, brute force"), _System("exact scan", IndexKind.EXACT)
    exact_kept = _System("exact scan, category", IndexKind.EXACT, filtered=True)
    say(f"{size:,} posts: without index")
    await _take_turns(conn, [numpy_row, exact, exact_kept], vectors)
    truth, truth_kept = _truth(vectors), _truth(vectors, of_category)
    rows = [_row(one, size, truth_kept if one.filtered else truth) for one in (numpy_row, exact, exact_kept)]
    for row in rows:
        say(json.dumps(row))
    for kind in kinds:
        say(f"{size:,} posts: building {kind}")
        async with _index(conn, kind, dimensions, build) as built:
            say(f"{size:,} posts: {kind} built in {built['build_s']:,} s")
            again = _System("exact scan", IndexKind.EXACT)  # beside each index, so that ratios are of one moment
            systems = _of_kind(kind)
            await _take_turns(conn, [again, *systems], vectors)
            beside = percentiles_ms(again.seconds)["p50_ms"]
            for one in systems:
                row = _row(one, size, truth_kept if one.filtered else truth) | built
                rows.append(row if one.filtered else row | {"exact_p50_ms": beside})
                say(json.dumps(rows[-1]))
    return rows


def _of_kind(kind: IndexKind) -> list[_System]:
    if kind is IndexKind.HNSW_HALFVEC:
        plain = [_System(f"{kind}, ef_search {ef}", kind, ef_search=ef) for ef in EF_SEARCH]
        return [*plain, _System(f"{kind}, ef_search 400, category", kind, ef_search=400, filtered=True)]
    return [_System(f"{kind}, {n} rescored", kind, ef_search=n, rescored=n) for n in RESCORED]


@asynccontextmanager
async def _index(conn: Connection, kind: IndexKind, dimensions: int, build: Build) -> AsyncIterator[dict[str, float]]:
    """The index while it is asked; its build time and size."""
    await conn.execute(
        "SELECT set_config('maintenance_work_mem', %s, false),"
        " set_config('max_parallel_maintenance_workers', %s, false)",
        (build.maintenance_memory, str(build.maintenance_workers)),
    )
    start = perf_counter()
    await conn.execute(create_index_statement(PROFILE_ID, kind, dimensions))
    seconds = perf_counter() - start
    name = f"embeddings_{PROFILE_ID}_{kind}"
    cursor = await conn.execute("SELECT pg_relation_size(%s::regclass), pg_prewarm(%s::regclass)", (name, name))
    row = await cursor.fetchone()
    try:
        yield {"build_s": round(seconds, 1), "index_mb": round(int(row[0]) / 2**20, 1) if row else 0.0}
    finally:
        await conn.execute(drop_index_statement(PROFILE_ID, kind))


async def _take_turns(conn: Connection, systems: Sequence[_System], vectors: Vectors) -> None:
    for one in systems:
        await _ask(conn, one, vectors, vectors.questions[:WARM_UP])
        one.seconds.clear()
        one.found.clear()
    for start in range(0, len(vectors.questions), TURN):
        for one in systems:
            await _ask(conn, one, vectors, vectors.questions[start : start + TURN])


async def _ask(conn: Connection, system: _System, vectors: Vectors, questions: NDArray[np.float32]) -> None:
    if system.kind is None:
        for question in questions:
            begin = perf_counter()
            system.found.append(_nearest(vectors.stored, vectors.lengths, question).tolist())
            system.seconds.append(perf_counter() - begin)
        return
    await conn.execute(
        "SELECT set_config('hnsw.ef_search', %s, false), set_config('hnsw.iterative_scan', 'strict_order', false),"
        " set_config('random_page_cost', coalesce(%s, reset_val), false)"
        " FROM pg_settings WHERE name = 'random_page_cost'",
        (str(max(system.ef_search, 1)), PAGE_COST if system.filtered else None),
    )
    statement = nearest_statement(PROFILE_ID, system.kind, vectors.stored.shape[1], filtered=system.filtered)
    given = {"limit": LIMIT, "window": WINDOW, "rescored": system.rescored, "asking_topic": 0, "from_number": 0}
    kept = {"categories": [KEPT_CATEGORY], "since": None} if system.filtered else {}
    for question in questions:
        begin = perf_counter()
        cursor = await conn.execute(statement, given | kept | {"vector": HalfVector(question)}, prepare=False)
        found = await cursor.fetchall()
        system.seconds.append(perf_counter() - begin)
        system.found.append([row[0] - 1 for row in found])


def _nearest(
    stored: NDArray[np.float32], lengths: NDArray[np.float32], question: NDArray[np.float32]
) -> NDArray[np.int64]:
    cosines = (stored @ question) / lengths
    best = np.argpartition(-cosines, min(LIMIT, len(cosines) - 1))[:LIMIT]
    return best[np.argsort(-cosines[best])].astype(np.int64)


def _truth(vectors: Vectors, kept: NDArray[np.bool_] | None = None) -> list[set[int]]:
    """The nearest posts of each question, in single precision."""
    if kept is None:
        return [set(_nearest(vectors.stored, vectors.lengths, one).tolist()) for one in vectors.questions]
    places = np.flatnonzero(kept)
    if not len(places):
        return [set() for _ in vectors.questions]
    stored, lengths = vectors.stored[places], vectors.lengths[places]
    return [set(places[_nearest(stored, lengths, one)].tolist()) for one in vectors.questions]


def _row(system: _System, posts: int, truth: Sequence[set[int]]) -> dict[str, Any]:
    shares = [len(right & set(found)) / len(right) for found, right in zip(system.found, truth, strict=True) if right]
    return {
        "system": system.name,
        "posts": posts,
        **percentiles_ms(system.seconds),
        "recall": round(float(np.mean(shares)), 4) if shares else 1.0,
        "least_found": min(map(len, system.found)),
    }


def _choose(rows: Sequence[dict[str, Any]]) -> tuple[dict[str, Any] | None, float | None]:
    fit = [row for row in rows if "exact_p50_ms" in row and row["recall"] >= ENOUGH]
    if not fit:
        return None, None
    best = min(fit, key=lambda row: float(row["p95_ms"]))
    return best, round(best["exact_p50_ms"] / best["p50_ms"], 2)


async def _server_settings(conn: AsyncConnection[Any]) -> dict[str, Any]:
    names = ("server_version", "shared_buffers", "max_parallel_workers_per_gather")
    cursor = await conn.execute("SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name", (list(names),))
    return dict(await cursor.fetchall())
