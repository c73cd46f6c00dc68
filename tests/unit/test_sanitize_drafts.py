"""Every hostile draft, the project's own and the shared ones, against the facts that its file demands."""

from pathlib import Path
from typing import Any

import pytest

from tests.shared import SHARED, needs_shared
from tests.unit.drafts_format import faults, load

OWN = load(Path(__file__).parents[1] / "data" / "drafts.yml")
SHARED_FILE = SHARED / "data" / "safety" / "drafts.yml"
GIVEN = load(SHARED_FILE) if SHARED_FILE.is_file() else []


@pytest.mark.parametrize("draft", OWN, ids=[draft["id"] for draft in OWN])
def test_own_draft(draft: dict[str, Any]) -> None:
    assert faults(draft) == []


@needs_shared
def test_shared_drafts() -> None:
    failed = {draft["id"]: found for draft in GIVEN if (found := faults(draft))}
    assert len(GIVEN) == 106
    assert failed == {}
