"""Search at scale: exact scan, both kinds of index at several depths, and numpy, side by side on the real SQL."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.bench import Say, percentiles_ms, report
from service.bench.scratch import scratch_database
from service.bench.search_data import PROFILE_ID, fill
from service.bench.search_systems import System, systems_of, take_turns, truth_of
from service.bench.vectors import Vectors
from service.domain import IndexKind
from service.store.pool import Connection, connection, open_pool
from service.store.profile_sql import create_index_statement, drop_index_statement
from service.store.profiles import MAINTENANCE_MEMORY

ENOUGH = 0.99
"""Recall from which an index may stand for the exact scan."""


@dataclass(frozen=True, slots=True)
class Build:
    """What the server may use to build an index."""

    maintenance_workers: int = 1
    maintenance_memory: str = MAINTENANCE_MEMORY


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
    numpy_row, exact = System("numpy, brute force"), System("exact scan", IndexKind.EXACT)
    exact_kept = System("exact scan, category", IndexKind.EXACT, filtered=True)
    say(f"{size:,} posts: without index")
    await take_turns(conn, [numpy_row, exact, exact_kept], vectors)
    truth, truth_kept = truth_of(vectors), truth_of(vectors, of_category)
    rows = [_row(one, size, truth_kept if one.filtered else truth) for one in (numpy_row, exact, exact_kept)]
    for row in rows:
        say(json.dumps(row))
    for kind in kinds:
        say(f"{size:,} posts: building {kind}")
        async with _index(conn, kind, dimensions, build) as built:
            say(f"{size:,} posts: {kind} built in {built['build_s']:,} s")
            again = System("exact scan", IndexKind.EXACT)  # beside each index, so that ratios are of one moment
            systems = systems_of(kind)
            await take_turns(conn, [again, *systems], vectors)
            beside = percentiles_ms(again.seconds)["p50_ms"]
            for one in systems:
                row = _row(one, size, truth_kept if one.filtered else truth) | built
                rows.append(row if one.filtered else row | {"exact_p50_ms": beside})
                say(json.dumps(rows[-1]))
    return rows


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


def _row(system: System, posts: int, truth: Sequence[set[int]]) -> dict[str, Any]:
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


async def _server_settings(conn: Connection) -> dict[str, Any]:
    names = ["server_version", "shared_buffers", "max_parallel_workers_per_gather"]
    cursor = await conn.execute("SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name", (names,))
    return dict(await cursor.fetchall())
