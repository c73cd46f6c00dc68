"""The metrics as the code has them, with every value a label may take; `python -m tests.deploy.metrics_table` writes
their tables into docs/metrics.md."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from service import telemetry
from service.answer.activation import State
from service.answer.gate.compiled import load_gate
from service.answer.gate.rules import GateKind
from service.answer.generate import Fault
from service.discourse.events import IGNORED_KINDS, CategoryEventName, MemberEventName, PostEventName, TopicEventName
from service.domain import Mode, Result, SkipReason, Zone
from service.ingest.compare import Drift
from service.ingest.ports import Refusal
from service.jobs import Queue, TaskName
from service.settings import GateSettings
from service.webhook.route import Result as Receipt
from service.wiring.gauges import IndexState
from service.worker.loop import UNKNOWN
from tests.deploy.tools import ROOT

PAGE = ROOT / "docs" / "metrics.md"
BEGIN, END = "<!-- the tables: python -m tests.deploy.metrics_table -->\n", "<!-- end of the tables -->\n"

Values = frozenset[str]
ERRORS = frozenset({"busy", "unsure", "transient", "rejected", "misconfigured"})


def _values(*sets: type[StrEnum] | Iterable[str]) -> Values:
    return frozenset(str(value) for one in sets for value in one)


def _of_the_gate() -> Values:
    return frozenset(rule.id for rule in load_gate(GateSettings()).rules)


LABELS: Mapping[str, Mapping[str, Values]] = {
    "ariane_webhook_deliveries": {
        "event": _values(
            PostEventName,
            TopicEventName,
            CategoryEventName,
            MemberEventName,
            IGNORED_KINDS,
            {"ping", "other", "unknown"},
        ),
        "result": _values(Receipt),
    },
    "ariane_outcomes": {
        "outcome": _values({"posted", "enqueued", "adopted", "shadowed", "skipped", "duplicate"}),
        "reason": _values(Result, SkipReason, {"none"}),
    },
    "ariane_answers": {
        "result": _values(Result),
        "zone": _values(Zone, {"none"}),
        "mode": _values(Mode, {"none"}),
    },
    "ariane_gated": {"kind": _values(GateKind), "rule": _of_the_gate()},
    "ariane_stage_seconds": {
        "stage": _values(
            {"gate", "condense", "retrieve", "rerank", "evidence", "generate", "check", "sanitize"},
        )
    },
    "ariane_indexed_posts": {"result": _values(Refusal, {"indexed", "stale", "topic_gone"})},
    "ariane_drift_found": {"kind": _values(Drift)},
    "ariane_drift_mended": {"kind": _values(Drift)},
    "ariane_index_posts": {"state": _values(IndexState)},
    "ariane_jobs": {
        "task": _values(TaskName, {UNKNOWN}),
        "result": _values({"succeeded", "retried", "failed", "stopped"}),
    },
    "ariane_queue_jobs": {"task": _values(TaskName), "status": _values({"todo", "doing", "failed"})},
    "ariane_queue_oldest_seconds": {"queue": _values(Queue)},
    "ariane_remote_seconds": {
        "server": _values(
            {"forum", "forum_as_bot", "chat", "ollama embedder", "ollama answerer", "tei embedder", "tei reranker"}
        ),
        "result": _values(ERRORS, {"ok", "cancelled"}),
    },
    "ariane_part_up": {"part": _values({"embedder", "reranker", "model", "forum", "database"})},
    "ariane_fallbacks": {
        "part": _values(
            {"embedder", "vectors", "search", "reranker", "answerer", "model", "categories", "check", "second_draft"}
        ),
        "error": _values(ERRORS, {"error"}),
    },
    "ariane_activation": {"state": _values(State)},
    "ariane_checks": {"result": _values({"passed", "failed", "not_made"})},
    "ariane_completions": {"result": _values(Fault, {"ok"})},
}
"""By metric and label; the rules of the gate are those that come with Ariane, an operator's own add to them."""

KINDS = {Counter: "counter", Gauge: "gauge", Histogram: "histogram"}


def metrics() -> list[MetricWrapperBase]:
    """Every metric of the code, in its order."""
    return [one for one in vars(telemetry).values() if isinstance(one, MetricWrapperBase)]


def name_of(metric: MetricWrapperBase) -> str:
    return str(metric._name)


def labels_of(metric: MetricWrapperBase) -> tuple[str, ...]:
    return tuple(metric._labelnames)


def exposed(metric: MetricWrapperBase) -> str:
    """The name under which a query finds it."""
    return f"{name_of(metric)}_total" if isinstance(metric, Counter) else name_of(metric)


def series(metric: MetricWrapperBase) -> set[str]:
    """Every name that it has on the page."""
    if isinstance(metric, Histogram):
        return {f"{name_of(metric)}_{part}" for part in ("bucket", "count", "sum")}
    return {exposed(metric)}


def tables() -> str:
    """The metrics, and the values of their labels, as Markdown."""
    return "\n".join([*_metrics(), "", *_labels(), ""])


def _metrics() -> Iterator[str]:
    yield "| metric | kind | labels | what |"
    yield "|---|---|---|---|"
    for one in metrics():
        labels = ", ".join(f"`{label}`" for label in labels_of(one))
        yield f"| `{exposed(one)}` | {KINDS[type(one)]} | {labels} | {one._documentation} |"


def _labels() -> Iterator[str]:
    yield "| metric | label | values |"
    yield "|---|---|---|"
    for one in metrics():
        for label in labels_of(one):
            values = LABELS[name_of(one)][label]
            shown = "the ids of the gate's rules" if label == "rule" else ", ".join(f"`{it}`" for it in sorted(values))
            yield f"| `{exposed(one)}` | `{label}` | {shown} |"


def with_tables(page: str) -> str:
    """The page with its tables as they are now."""
    before, found, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"{PAGE}: the marks of the tables are missing")
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
