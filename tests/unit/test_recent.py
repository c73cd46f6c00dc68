"""What the forum told the bot of: mentions and replies are read, everything else is left out, and nothing breaks it."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.discourse.recent_shapes import Notice, notice_from_json
from tests.unit.test_listings import ANYTHING

ROW: dict[str, Any] = {
    "id": 7,
    "notification_type": 1,
    "created_at": "2026-03-01T12:00:00.000Z",
    "data": {"original_post_id": 12, "original_username": "alice"},
}
NOTICE = Notice(7, 12, datetime(2026, 3, 1, 12, tzinfo=UTC))  # type: ignore[arg-type]  # an id


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ({}, NOTICE),
        ({"notification_type": 2}, NOTICE),
        ({"created_at": "2026-03-01T12:00:00"}, NOTICE),
        ({"notification_type": 3}, None),
        ({"notification_type": "mentioned"}, None),
        ({"notification_type": None}, None),
        ({"data": {}}, None),
        ({"data": "{}"}, None),
        ({"data": {"original_post_id": "12"}}, None),
        ({"created_at": "yesterday"}, None),
        ({"id": 0}, None),
    ],
)
def test_a_row_is_read_or_left_out(changes: dict[str, Any], read: Notice | None) -> None:
    assert notice_from_json(ROW | changes) == read


@given(ANYTHING | st.fixed_dictionaries({key: st.just(value) | ANYTHING for key, value in ROW.items()}))
def test_nothing_breaks_it(row: object) -> None:
    read = notice_from_json(row)
    assert read is None or (read.id > 0 and read.created_at.tzinfo is not None)
