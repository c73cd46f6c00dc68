"""What a trace shows of how an answer came about, for `templates/parts/trace.html`."""

from collections.abc import Collection
from typing import Any

from service.answer.markup.links import post_url
from service.domain import Trace
from service.moderation.charts import cosine_bar, logit_bars, timing_bars


def traced(trace: Trace, base_url: str, cited: Collection[int]) -> dict[str, Any]:
    """The values that the template names; `cited` are the numbers of the sources that the reply cites."""
    bars = logit_bars([one.logit for one in trace.candidates])
    return {
        "trace": trace,
        "candidates": [
            (one, post_url(one, base_url), cosine_bar(one.cosine), bar)
            for one, bar in zip(trace.candidates, bars, strict=True)
        ],
        "sources": [(one, post_url(one, base_url), one.n in cited) for one in trace.sources],
        "stages": timing_bars(trace.timings_ms),
        "total_ms": sum(trace.timings_ms.values()),
        "checks": [_parts(one) for one in trace.checks],
    }


def _parts(check: str) -> tuple[str, list[str]]:
    """What a check came to, and its reasons."""
    came_to, _, why = check.partition(": ")
    return came_to, [one for one in why.split(", ") if one]
