"""The gauges that are counted in the database: how long jobs have been due, and what the index holds."""

from pathlib import Path

from prometheus_client import REGISTRY

from service.domain import PostId
from service.jobs import NewJob, TaskName, defer_jobs
from service.store.pool import Pool, transaction
from service.store.queue import longest_due
from service.wiring.gauges import INDEX_SECONDS, IndexState, index_gauges
from tests.e2e.loop import whole_loop


async def test_the_job_that_is_due_longest_tells_its_queues_age(pool: Pool) -> None:
    async with transaction(pool) as conn:
        assert await longest_due(conn) == {}
        await defer_jobs(
            conn, [NewJob(TaskName.REFRESH_POST, None, {"post_id": PostId(number)}) for number in (1, 2, 3)]
        )
        await conn.execute(
            "UPDATE procrastinate_jobs SET scheduled_at = now() + interval '1 hour' - 2 * interval '1 hour'"
            " * (args->>'post_id' = '2')::int"
        )
        await conn.execute("UPDATE procrastinate_jobs SET scheduled_at = NULL WHERE args->>'post_id' = '3'")
        due = await longest_due(conn)
    assert list(due) == ["index"]
    assert 3600 <= due["index"] < 3700  # the second was due an hour ago, the first will be in an hour


def posts(state: IndexState) -> float | None:
    return REGISTRY.get_sample_value("ariane_index_posts", {"state": state})


async def test_the_index_is_counted_now_and_then(database_url: str, tmp_path: Path) -> None:
    now = 0.0
    async with whole_loop(database_url, tmp_path) as loop:
        measure = index_gauges(loop.services, clock=lambda: now)
        await measure()
        census = await loop.services.corpus.census(loop.services.embedder.profile)
        assert census.indexed > 0
        assert posts(IndexState.EMBEDDED) == census.indexed
        assert posts(IndexState.WAITING) == 0
        assert posts(IndexState.NOT_INDEXED) == sum(census.refused.values())
        assert REGISTRY.get_sample_value("ariane_index_topics") == census.topics
        async with loop.services.pool.connection() as conn:
            await conn.execute("DELETE FROM embeddings")
        await measure()
        assert posts(IndexState.WAITING) == 0
        now += INDEX_SECONDS
        await measure()
        assert (posts(IndexState.EMBEDDED), posts(IndexState.WAITING)) == (0, census.indexed)
