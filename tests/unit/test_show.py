"""An answer drawn for a terminal: its sources' scores as bars, each in the colour of the zone that it would give."""

import re
from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console

from service.domain import Mode, PostId, RerankerProfile, Source, TopicId, Zone
from service.show import BAR_CELLS, bar, show_answer

PROFILE = RerankerProfile("fake", weak=-4.0, normal=0.0, provisional=True)


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(-1, ""), (0, ""), (0.5, "████"), (1 / 64, "▏"), (0.99, "███████▉"), (1, "█" * 8), (7, "█" * 8)],
)
def test_a_bar_is_full_by_eighths(share: float, drawn: str) -> None:
    assert bar(share) == drawn.ljust(BAR_CELLS)


def source(n: int, cosine: float | None, logit: float | None) -> Source:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return Source(n, PostId(n), TopicId(n), n, f"Topic {n}", "topic", "text", "zoe", when, cosine, logit)


def test_scores_zone_and_stages_are_told() -> None:
    out = StringIO()
    show_answer(
        Console(file=out, width=120, color_system="standard", force_terminal=True),
        question="Why does it gurgle?",
        markdown="Air.",
        zone=Zone.WEAK,
        mode=Mode.RERANKED,
        sources=[source(1, 0.5, 0.0), source(2, None, -4.5), source(3, 0.25, None)],
        cited=[1],
        profile=PROFILE,
        timings_ms={"generate": 7.4, "retrieve": 3.2, "own": 1.0},
    )
    said = out.getvalue()
    assert "+0.50 \x1b[36m████" in said
    assert "+0.00 \x1b[32m████" in said  # from `normal` on
    assert "-4.50 \x1b[31m█▊" in said  # below `weak`
    assert "weak from -4.0, normal from +0.0 (provisional thresholds)" in said
    assert re.search(r"retrieve 3 ms.*generate 7 ms.*own 1 ms", said)
