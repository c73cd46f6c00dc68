"""The rerank bench measures both ways and gives the shape of every bench."""

from service.bench.rerank import bench_rerank


async def test_a_short_run_measures_both_ways() -> None:
    made = await bench_rerank(count=5, runs=3)
    assert made["bench"] == "rerank" and made["settings"] == {"pairs": 5, "runs": 3}
    bare, adapter = made["rows"]
    assert bare["p50_ms"] > 0 and adapter["added_ms"] < 1000
