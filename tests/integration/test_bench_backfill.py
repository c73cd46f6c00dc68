"""The bench of writing: in bulk and beside each kind of index, with nothing left behind."""

import pytest

from service.bench.backfill import bench_backfill
from tests.integration.scratch import is_gone, named


async def test_writing_is_measured_in_bulk_and_beside_each_index(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, name = list[str](), named(monkeypatch)
    result = await bench_backfill(
        database_url, posts=120, live_posts=20, live_writers=2, dimensions=16, batch=50, say=said.append
    )
    assert result["bench"] == "backfill"
    assert result["settings"] == {
        "posts": 120, "live_posts": 20, "batch": 50, "live_batch": 16, "live_writers": 2, "dimensions": 16
    }  # fmt: skip
    rows = {row["system"]: row for row in result["rows"]}
    assert list(rows) == [
        f"{what}, {how}"
        for how in ("bulk", "hnsw_halfvec live", "hnsw_binary live")
        for what in ("posts", "vectors", "posts and vectors")
    ]
    assert all(row["posts_per_s"] > 0 and 0 < row["p50_ms"] <= row["p95_ms"] for row in rows.values())
    both, posts, vectors = (rows[f"{what}, bulk"]["posts_per_s"] for what in ("posts and vectors", "posts", "vectors"))
    assert 1 / both == pytest.approx(1 / posts + 1 / vectors, rel=0.01)
    assert result["ratio"] == pytest.approx(vectors / rows["vectors, hnsw_halfvec live"]["posts_per_s"], abs=0.01)
    assert len(said) == 6
    assert is_gone(name, database_url)
