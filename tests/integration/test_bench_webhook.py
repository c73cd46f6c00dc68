"""The webhook's bench runs both systems for real and leaves nothing behind."""

import pytest

from service.bench.webhook import bench_webhook
from tests.integration.scratch import is_gone, named


async def test_both_systems_are_measured_in_one_run(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = named(monkeypatch)
    report = await bench_webhook(database_url, requests=40, connections=4)
    assert report["bench"] == "webhook"
    assert report["settings"]["requests"] == 40
    assert [row["system"] for row in report["rows"]] == ["ariane webhook", "bare FastAPI, one INSERT"]
    assert all(
        0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"] and row["requests_per_s"] > 0 for row in report["rows"]
    )
    assert report["ratio"] > 0
    assert is_gone(name, database_url)
