"""The logger and every metric object: the only globals of the project."""

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

from service.errors import ArianeError, Misconfigured, kind_of

# Else every counter and histogram has a second series, which nobody reads.
disable_created_metrics()  # type: ignore[no-untyped-call]  # prometheus_client leaves it untyped

DELIVERIES = Counter("ariane_webhook_deliveries", "Webhook deliveries by event and result.", ["event", "result"])
WEBHOOK_SECONDS = Histogram(
    "ariane_webhook_seconds",
    "From the first byte of a delivery to its acknowledgement.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5),
)
OUTCOMES = Counter("ariane_outcomes", "What became of a mention.", ["outcome", "reason"])
WAITED_SECONDS = Histogram(
    "ariane_question_waited_seconds",
    "From a question to the moment that its answer was begun.",
    buckets=(1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 21600, 86400),
)
ANSWERS = Counter("ariane_answers", "Answers by result, zone and mode.", ["result", "zone", "mode"])
GATED = Counter("ariane_gated", "Messages that the input gate declined, by kind and rule.", ["kind", "rule"])
TOP_LOGIT = Histogram(
    "ariane_top_logit",
    "The best score that the reranker gave for a question: what the zones are cut from.",
    buckets=(-8, -6, -5, -4, -3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 6, 8),
)
STAGE_SECONDS = Histogram(
    "ariane_stage_seconds",
    "Time of each stage of the answer pipeline.",
    ["stage"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300),
)
INDEXED = Counter("ariane_indexed_posts", "Posts that passed indexing, by result.", ["result"])
EMBEDDED = Counter("ariane_embedded_passages", "Passages embedded.")
TRUNCATED = Counter(
    "ariane_truncated_passages", "Embedded passages of which the model's window took the beginning only."
)
UNEMBEDDABLE = Counter("ariane_unembeddable_passages", "Passages that the model fails on, left without a vector.")
DRIFT_FOUND = Counter("ariane_drift_found", "Differences between index and forum that were found, by kind.", ["kind"])
DRIFT_MENDED = Counter(
    "ariane_drift_mended", "Differences between index and forum that were mended, by kind.", ["kind"]
)
JOBS = Counter("ariane_jobs", "Jobs by task and result.", ["task", "result"])
RESCUED = Counter("ariane_rescued_jobs", "Jobs taken back from workers that stopped beating.")
WORKER_RESTARTS = Counter("ariane_worker_restarts", "Times the job loop was started again after a fault.")
# A series that begins with its first event has not grown, as Prometheus reckons: what alerts wait for begins with 0.
OUTCOMES.labels("skipped", "given_up")
for _refusal in ("bad_signature", "malformed", "too_large", "too_slow"):
    DELIVERIES.labels("unknown", _refusal)
DELIVERIES.labels("post_created", "unavailable")
BEAT = Gauge(
    "ariane_worker_beat_timestamp_seconds", "When this worker last said that it lives; 0 on the web process's page."
)
REMOTE_SECONDS = Histogram(
    "ariane_remote_seconds",
    "Calls to other servers, by what came of them.",
    ["server", "result"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300),
)
QUEUE_DEPTH = Gauge("ariane_queue_jobs", "Jobs in the queue, by task and status.", ["task", "status"])
QUEUE_AGE = Gauge(
    "ariane_queue_oldest_seconds",
    "How long the job of a queue that is due longest has been due; 0 when none is.",
    ["queue"],
)
INDEX_POSTS = Gauge(
    "ariane_index_posts",
    "Posts known of the forum: with a vector, waiting for one, left out by the model, or not for the index.",
    ["state"],
)
INDEX_TOPICS = Gauge("ariane_index_topics", "Topics known of the forum.")
NEWEST_DELIVERY = Gauge(
    "ariane_newest_delivery_timestamp_seconds", "When the last verified delivery came; 0 when none is kept."
)
PART_UP = Gauge("ariane_part_up", "1 while a part answers and is the one it is taken for, else 0.", ["part"])
FALLBACKS = Counter("ariane_fallbacks", "Questions that went on without a part, by part and error.", ["part", "error"])
ACTIVATION = Gauge(
    "ariane_activation",
    "1 for how the configuration in use stands to the one that was tested and switched on, else 0.",
    ["state"],
)
CHECKS = Counter("ariane_checks", "Checks of a draft by the language model: passed, failed, or not made.", ["result"])
COMPLETIONS = Counter("ariane_completions", "Drafts of the language model by what became of them.", ["result"])


class Logger:
    """structlog's logger, imported with the first line: that takes 0.1 s, and a short command has none to log."""

    def __init__(self) -> None:
        self._wanted: tuple[str, bool] | None = None

    def configure(self, *, level: str, json: bool) -> None:
        """Send structured logs to stderr: one JSON object a line, or text for people, coloured on a terminal."""
        self._wanted = (level, json)
        logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")

    def __getattr__(self, method: str) -> Any:
        import structlog

        if self._wanted:
            _configure(*self._wanted)
            self._wanted = None
        return getattr(structlog.get_logger("ariane"), method)


def _configure(level: str, json: bool) -> None:
    import structlog

    renderer = (
        structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


log = Logger()


def went_without(part: str, exc: ArianeError) -> str:
    """Count and log (as an error when a person must act) that a question goes on without `part`; returns the note."""
    FALLBACKS.labels(part, kind_of(exc)).inc()
    tell = log.error if isinstance(exc, Misconfigured) else log.warning
    note = f"{part}_down"
    tell(note, error=str(exc))
    return note


def fault(exc: BaseException) -> dict[str, str]:
    """What may be logged of an exception: its first line (Postgres quotes the row, so the text, below it) and place."""
    frames = traceback.extract_tb(exc.__traceback__)
    at = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return {"error": f"{type(exc).__name__}: {str(exc).partition(chr(10))[0][:300]}", "at": at}


@contextmanager
def timed(stage: str, timings_ms: dict[str, float]) -> Iterator[None]:
    """Measure a stage into the trace (milliseconds) and into the histogram (seconds)."""
    start = perf_counter()
    try:
        yield
    finally:
        seconds = perf_counter() - start
        timings_ms[stage] = timings_ms.get(stage, 0.0) + seconds * 1000
        STAGE_SECONDS.labels(stage).observe(seconds)
