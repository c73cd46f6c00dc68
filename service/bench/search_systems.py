"""The ways to search that a bench compares, asked in turns, and what they should have found."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from service.bench.search_data import KEPT_CATEGORY, PROFILE_ID
from service.bench.vectors import Vectors
from service.domain import IndexKind
from service.store.kept import PAGE_COST
from service.store.pool import Connection
from service.store.profile_sql import nearest_statement

LIMIT = 25
"""What a question takes, and what recall is of."""

WINDOW = 4 * LIMIT
"""The passages that a search looks at first."""

EF_SEARCH = (100, 200, 400, 600, 800, 1000)
RESCORED = (200, 400, 800, 1000)
"""hnsw.ef_search ends at 1000, and with it the candidates of a Hamming scan that isn't made to go on."""

TURN = 10
"""Questions that a system answers before the next takes its turn: a slow moment of the machine hits all."""

WARM_UP = 5


@dataclass(slots=True)
class System:
    """A way to search, and what it gave: seconds and post ids of each question."""

    name: str
    kind: IndexKind | None = None
    ef_search: int = 0
    rescored: int = 0
    filtered: bool = False
    seconds: list[float] = field(default_factory=list)
    found: list[list[int]] = field(default_factory=list)


def systems_of(kind: IndexKind) -> list[System]:
    if kind is IndexKind.HNSW_HALFVEC:
        plain = [System(f"{kind}, ef_search {ef}", kind, ef_search=ef) for ef in EF_SEARCH]
        return [*plain, System(f"{kind}, ef_search 400, category", kind, ef_search=400, filtered=True)]
    return [System(f"{kind}, {n} rescored", kind, ef_search=n, rescored=n) for n in RESCORED]


async def take_turns(conn: Connection, systems: Sequence[System], vectors: Vectors) -> None:
    for one in systems:
        await _ask(conn, one, vectors, vectors.questions[:WARM_UP])
        one.seconds.clear()
        one.found.clear()
    for start in range(0, len(vectors.questions), TURN):
        for one in systems:
            await _ask(conn, one, vectors, vectors.questions[start : start + TURN])


async def _ask(conn: Connection, system: System, vectors: Vectors, questions: NDArray[np.float32]) -> None:
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


def truth_of(vectors: Vectors, kept: NDArray[np.bool_] | None = None) -> list[set[int]]:
    """The nearest posts of each question, in single precision."""
    if kept is None:
        return [set(_nearest(vectors.stored, vectors.lengths, one).tolist()) for one in vectors.questions]
    places = np.flatnonzero(kept)
    if not len(places):
        return [set() for _ in vectors.questions]
    stored, lengths = vectors.stored[places], vectors.lengths[places]
    return [set(places[_nearest(stored, lengths, one)].tolist()) for one in vectors.questions]
