"""The whole loop, which most of these tests ask something, and what is logged meanwhile."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service import telemetry
from tests.e2e.fallback_kit import Log
from tests.e2e.loop import Loop, whole_loop


@pytest.fixture
async def loop(database_url: str, tmp_path: Path) -> AsyncIterator[Loop]:
    """A forum, the service and its index, answering switched on; a test lets a worker run when it likes."""
    async with whole_loop(database_url, tmp_path) as running:
        yield running


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Hears what this process logs, instead of the logger."""
    log = Log()
    for level in ("info", "warning", "error"):
        monkeypatch.setitem(vars(telemetry.log), level, log.info)
    return log
