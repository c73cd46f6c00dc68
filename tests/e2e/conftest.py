"""The whole loop, which most of these tests ask something."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.loop import Loop, whole_loop


@pytest.fixture
async def loop(database_url: str, tmp_path: Path) -> AsyncIterator[Loop]:
    """A forum, the service and its index, answering switched on; a test lets a worker run when it likes."""
    async with whole_loop(database_url, tmp_path) as running:
        yield running
