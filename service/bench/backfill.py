"""Writing alone, without reading or embedding: posts and vectors a second in bulk, and with each kind of index live."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import numpy as np

from service.bench import Say, percentiles_ms, report
from service.bench.scratch import scratch_database
from service.bench.vectors import LIKE, SEED, Vectors, synthetic
from service.domain import Category, CategoryId, EmbeddingProfile, IndexKind, Post, PostId, Topic, TopicId, UserId
from service.ingest.ports import EmbeddedPassage, IndexedPost
from service.ingest.text import digest
from service.store.corpus import CorpusStore
from service.store.pool import open_pool
from service.store.profiles import ProfileStore

WORDS = 60
"""Words of a post, of which about 45 are different: a post of a forum has 50 on average."""

VOCABULARY = 50_000
LIVE_BATCH = 16
"""Posts that are written at a time once the index is live, as many as are embedded at a time."""

Write = Callable[[range], Awaitable[None]]

_NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


async def bench_backfill(
    database_url: str, *, posts: int, live_posts: int, live_writers: int, dimensions: int, batch: int, say: Say
) -> dict[str, Any]:
    """Write `posts` in batches into an empty index, build each kind, and write `live_posts` more beside it.

    In bulk one writer, as a backfill is; live as many at once as a worker has index jobs.

    In a database of its own on the same server. A row's `posts_per_s` is of whole posts (state, text, postings) or of
    their vectors alone; `ratio` is bulk by live, of vectors beside hnsw_halfvec.
    """
    kinds = [kind for kind in IndexKind if kind is not IndexKind.EXACT]
    count = posts + live_posts * len(kinds)
    within, between = LIKE["e5"]
    made = _by_topic(synthetic(count, dimensions, 1, within=within, between=between))
    whole = _posts(made)
    profile = EmbeddingProfile("bench", 100, 1, dimensions, 512)
    rows: list[dict[str, Any]] = []
    async with scratch_database(database_url) as url, open_pool(url, application_name="ariane-bench") as pool:
        corpus, profiles = CorpusStore(pool), ProfileStore(pool)
        await corpus.put_categories([Category(CategoryId(1), "Bench", "bench", None, read_restricted=False)])
        await corpus.put_topics(
            [Topic(TopicId(n), f"Topic {n}", f"topic-{n}", CategoryId(1), "regular") for n in set(made.topics.tolist())]
        )

        async def put_vectors(some: range) -> None:
            await corpus.put_passages(
                profile,
                [EmbeddedPassage(PostId(n + 1), 0, digest(whole[n].body or ""), made.stored[n]) for n in some],
            )

        async def put_posts(some: range) -> None:
            await corpus.put_posts([whole[n] for n in some])

        async def measure(what: str, write: Write, some: range, size: int, writers: int) -> None:
            say(f"{what}: {len(some):,} posts")
            rows.append({"system": what, **await _timed(write, some, size, writers)})

        await measure("posts, bulk", put_posts, range(posts), batch, 1)
        await measure("vectors, bulk", put_vectors, range(posts), batch, 1)
        rows.append(_both("posts and vectors, bulk", rows[-2:]))
        await corpus.settle()
        for turn, kind in enumerate(kinds):
            profile = replace(profile, index_kind=kind)
            await profiles.ensure_profile(profile)
            start = perf_counter()
            await profiles.activate(profile.name)
            build_s = round(perf_counter() - start, 1)
            some = range(posts + turn * live_posts, posts + (turn + 1) * live_posts)
            await measure(f"posts, {kind} live", put_posts, some, LIVE_BATCH, live_writers)
            await measure(f"vectors, {kind} live", put_vectors, some, LIVE_BATCH, live_writers)
            rows.append(_both(f"posts and vectors, {kind} live", rows[-2:]) | {"build_s": build_s})
    rates = {row["system"]: row["posts_per_s"] for row in rows}
    used = {
        "posts": posts,
        "live_posts": live_posts,
        "batch": batch,
        "live_batch": LIVE_BATCH,
        "live_writers": live_writers,
        "dimensions": dimensions,
    }
    ratio = rates["vectors, bulk"] / rates[f"vectors, {IndexKind.HNSW_HALFVEC} live"]
    return report("backfill", settings=used, rows=rows, ratio=round(ratio, 2))


def _by_topic(made: Vectors) -> Vectors:
    """As a backfill reads them: a topic's posts one after the other."""
    order = np.argsort(made.topics, kind="stable")
    return replace(made, stored=made.stored[order], lengths=made.lengths[order], topics=made.topics[order])


async def _timed(write: Write, some: range, size: int, writers: int) -> dict[str, float]:
    waiting = iter(range(0, len(some), size))
    seconds: list[float] = []

    async def write_in_turn() -> None:
        for start in waiting:
            begin = perf_counter()
            await write(some[start : start + size])
            seconds.append(perf_counter() - begin)

    begin = perf_counter()
    await asyncio.gather(*(write_in_turn() for _ in range(writers)))
    return {"posts_per_s": round(len(some) / (perf_counter() - begin), 1), **percentiles_ms(seconds)}


def _both(system: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One after the other: the times of a post, and of a batch, added up."""
    rate = 1 / sum(1 / row["posts_per_s"] for row in rows)
    times = {name: round(sum(row[name] for row in rows), 3) for name in ("p50_ms", "p95_ms", "p99_ms")}
    return {"system": system, "posts_per_s": round(rate, 1), **times}


def _posts(made: Vectors) -> list[IndexedPost]:
    """Posts of words as frequent as words are (Zipf)."""
    drawn = np.random.default_rng(SEED).zipf(1.3, size=(len(made.topics), WORDS)) % VOCABULARY
    numbers: Counter[int] = Counter()
    posts = []
    for n, (topic, words) in enumerate(zip(made.topics.tolist(), drawn.tolist(), strict=True), start=1):
        numbers[topic] += 1
        lexemes = [f"w{word}" for word in words]
        post = Post(
            PostId(n), TopicId(topic), numbers[topic], 1, UserId(1), "member", "", _NOON, _NOON,
            archetype="regular", category_id=CategoryId(1), topic_title=f"Topic {topic}", topic_slug=f"topic-{topic}",
        )  # fmt: skip
        posts.append(IndexedPost(post, None, " ".join(lexemes), Counter(lexemes), WORDS))
    return posts
