"""When a failed job is tried again."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from procrastinate import BaseRetryStrategy, RetryDecision
from procrastinate.jobs import Job

from service.errors import Rejected, Transient
from service.settings import WorkerSettings

MAX_RETRY_AFTER_SECONDS = 3600.0
"""Longest wait a server can ask for: a job holds its lock while it waits."""

BUG_FACTOR = 8.0
"""How much slower a bug or a wrong setting is tried again than a busy server: a person must act first."""


@dataclass(frozen=True)
class RetryPolicy(BaseRetryStrategy):
    """When a failed job is tried again: doubling waits with jitter, capped, at most `max_attempts` tries."""

    settings: WorkerSettings
    random: Callable[[], float]

    def wait_seconds(self, exception: BaseException, attempts: int) -> float | None:
        """Seconds to wait after this failure of a job that was tried `attempts` times before; None gives it up."""
        if not isinstance(exception, Exception):  # cancelled by a stop, not failed
            return 0.0
        if isinstance(exception, Rejected) or attempts + 1 >= self.settings.max_attempts:
            return None
        factor = 1.0 if isinstance(exception, Transient) else BUG_FACTOR
        doubled = math.ldexp(self.settings.retry_base_seconds * factor, min(attempts, 30))
        ours = min(doubled, self.settings.retry_max_seconds) * (1 + self.random()) / 2
        asked = (exception.retry_after_seconds or 0.0) if isinstance(exception, Transient) else 0.0
        return max(ours, min(asked, MAX_RETRY_AFTER_SECONDS) * (1 + self.random() / 10))

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        wait = self.wait_seconds(exception, job.attempts)
        return None if wait is None else RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=wait))
