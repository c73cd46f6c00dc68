"""The forum's limits, with Discourse's defaults, and the windows that count them."""

from collections import defaultdict, deque
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Limits:
    """Discourse's defaults (docs/discourse, section 5); None or 0 turns one off."""

    admin_api_per_minute: int | None = 60
    anonymous_per_minute: int | None = 200
    anonymous_per_10_seconds: int | None = 50
    post_interval_seconds: float = 5
    consecutive_replies: int | None = 3
    unique_post_minutes: float = 5
    memo_seconds: float = 120
    min_post_chars: int = 20
    max_post_chars: int = 32_000
    min_title_chars: int = 15
    max_title_chars: int = 255
    new_member_links: int = 2
    mentions: int = 10


NO_RATES = Limits(
    admin_api_per_minute=None,
    anonymous_per_minute=None,
    anonymous_per_10_seconds=None,
    post_interval_seconds=0,
    consecutive_replies=None,
)
"""The limits on content alone: for tests that post faster than people do."""


class Rates:
    """Sliding windows by key: what was refused isn't counted."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[datetime]] = defaultdict(deque)

    def wait_seconds(self, key: str, limit: int | None, window_seconds: float, now: datetime) -> float:
        """How long until one more is allowed; 0 means now."""
        if limit is None or window_seconds <= 0:
            return 0.0
        seen = self._seen[key]
        while seen and seen[0] <= now - timedelta(seconds=window_seconds):
            seen.popleft()
        return (seen[0] + timedelta(seconds=window_seconds) - now).total_seconds() if len(seen) >= limit else 0.0

    def count(self, key: str, now: datetime) -> None:
        self._seen[key].append(now)
