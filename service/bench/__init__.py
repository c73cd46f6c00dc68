"""Measurements anyone can run: each compares two systems in one run on one machine and prints one JSON shape."""

import os
import platform
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Say = Callable[[str], None]
"""Tells who waits how far a bench has come."""


def report(
    bench: str, *, settings: dict[str, Any], rows: Sequence[dict[str, Any]], ratio: float | None
) -> dict[str, Any]:
    """The shape of every `ariane bench ... --json`."""
    machine = {
        "system": f"{platform.system()} {platform.release()}",
        "processor": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
    }
    return {"bench": bench, "machine": machine, "settings": settings, "rows": list(rows), "ratio": ratio}


def percentiles_ms(seconds: Sequence[float]) -> dict[str, float]:
    """Median, 95th and 99th percentile of some durations, in milliseconds."""
    values = np.percentile(np.asarray(seconds) * 1000, (50, 95, 99))
    return {name: round(float(value), 3) for name, value in zip(("p50_ms", "p95_ms", "p99_ms"), values, strict=True)}
