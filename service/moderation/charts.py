"""Where the bars of a drawing stand: widths and places in a viewBox, from numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH = 1000
"""Of every viewBox; a page stretches it."""

STAGES = ("gate", "condense", "retrieve", "rerank", "evidence", "generate", "check", "sanitize", "discarded")
"""The stages of an answer in the order they come in, which a stored trace doesn't keep."""

COLOURS = 8


@dataclass(frozen=True, slots=True)
class Bar:
    """From `x` on, `width` wide; of what, how much, and which of the colours."""

    x: float
    width: float
    label: str = ""
    value: float = 0.0
    colour: int = 0


def cosine_bar(cosine: float | None) -> Bar | None:
    """A cosine from 0 to 1 over the whole width; what is below 0 has no bar."""
    return None if cosine is None else Bar(0, round(WIDTH * min(max(cosine, 0.0), 1.0), 1))


def logit_bars(logits: Sequence[float | None]) -> list[Bar | None]:
    """Logits left and right of the middle, all to the scale of the furthest of them."""
    furthest = max((abs(one) for one in logits if one is not None), default=0.0) or 1.0
    return [None if one is None else _from_middle(one / furthest) for one in logits]


def _from_middle(share: float) -> Bar:
    half = WIDTH / 2
    return Bar(round(half + min(share, 0.0) * half, 1), round(abs(share) * half, 1))


def timing_bars(timings_ms: Mapping[str, float]) -> list[Bar]:
    """The stages one after the other, each as wide as its share of the time."""
    total = sum(max(ms, 0.0) for ms in timings_ms.values()) or 1.0
    order = {stage: place for place, stage in enumerate(STAGES)}
    bars, x = [], 0.0
    for stage, ms in sorted(timings_ms.items(), key=lambda one: (order.get(one[0], len(order)), one[0])):
        width = WIDTH * max(ms, 0.0) / total
        bars.append(Bar(round(x, 1), round(width, 1), stage, ms, order.get(stage, len(order)) % COLOURS))
        x += width
    return bars
