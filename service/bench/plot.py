"""Recall against time of a search bench, and its growth with the number of posts, drawn as one SVG."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from math import log10
from pathlib import Path
from typing import Any

from service.bench.search import ENOUGH
from service.errors import Rejected

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 460, 300, 62, 44, 48
COLOURS = {"hnsw_halfvec": "#1b6ca8", "hnsw_binary": "#c2571a", "exact scan": "#444444", "numpy": "#6b6b6b"}
"""Dark enough on white, and told apart by their dashes too."""
DASHES = {"hnsw_halfvec": "none", "hnsw_binary": "6 3", "exact scan": "2 3", "numpy": "1 4"}

Point = tuple[float, float]


def draw(result: dict[str, Any], path: Path) -> None:
    """Write the drawing of `ariane bench search --json`; raises Rejected when the file can't be written."""
    try:
        path.write_text(svg(result), encoding="utf-8")
    except OSError as exc:
        raise Rejected(f"--plot {path}: {exc.strerror}") from exc


def svg(result: dict[str, Any]) -> str:
    """Left: recall@25 by p95 at the largest size. Right, where there are several sizes: p95 by the number of posts."""
    rows = [row for row in result["rows"] if "category" not in row["system"]]
    sizes = sorted({row["posts"] for row in rows})
    largest = [row for row in rows if row["posts"] == sizes[-1]]
    panels = [_panel(0, f"{sizes[-1]:,} posts", "p95, ms", "recall@25", _by_kind(largest, "p95_ms", "recall"))]
    if len(sizes) > 1:
        best = [_at_recall([row for row in rows if row["posts"] == size]) for size in sizes]
        grown = _by_kind((row for of_size in best for row in of_size), "posts", "p95_ms")
        title = f"at recall@25 of {ENOUGH} or the best there is"
        panels.append(_panel(WIDTH, title, "posts", "p95, ms", grown, log_y=True))
    width = WIDTH * len(panels)
    caption = f"{result['settings']['vectors']}, {result['settings']['dimensions']} dimensions"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" font-family="sans-serif"'
        f' font-size="11" role="img"><title>{escape(caption)}</title><rect width="{width}" height="{HEIGHT}"'
        f' fill="white"/><text x="{LEFT}" y="16" font-size="13">{escape(caption)}</text>{"".join(panels)}</svg>\n'
    )


def _kind(row: dict[str, Any]) -> str:
    return next((kind for kind in COLOURS if row["system"].startswith(kind)), "numpy")


def _by_kind(rows: Iterable[dict[str, Any]], x: str, y: str) -> dict[str, list[Point]]:
    lines: dict[str, list[Point]] = defaultdict(list)
    for row in rows:
        lines[_kind(row)].append((float(row[x]), float(row[y])))
    return {kind: sorted(points) for kind, points in lines.items()}


def _at_recall(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each kind the fastest row with recall enough, or the one of highest recall."""
    kinds: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        kinds[_kind(row)].append(row)
    best = []
    for some in kinds.values():
        fit = [row for row in some if row["recall"] >= ENOUGH]
        best.append(min(fit, key=lambda row: row["p95_ms"]) if fit else max(some, key=lambda row: row["recall"]))
    return best


def _panel(
    left: int, title: str, x_name: str, y_name: str, lines: dict[str, list[Point]], *, log_y: bool = False
) -> str:
    points = [point for line in lines.values() for point in line]
    x_low, x_high = _range(x for x, _ in points)
    y_low, y_high = _range(y for _, y in points) if log_y else (min(y for _, y in points) * 0.95, 1.0)
    inner_width, inner_height = WIDTH - LEFT - 96, HEIGHT - TOP - BOTTOM

    def place(x: float, y: float) -> Point:
        along = (log10(x) - log10(x_low)) / (log10(x_high) - log10(x_low))
        up = (log10(y) - log10(y_low)) / (log10(y_high) - log10(y_low)) if log_y else (y - y_low) / (y_high - y_low)
        return left + LEFT + along * inner_width, TOP + (1 - up) * inner_height

    parts = [f'<text x="{left + LEFT + 12}" y="34" fill="#333333">{escape(title)}</text>']
    for tick in _ticks(x_low, x_high):
        x, y = place(tick, y_low)
        parts.append(_line((x, TOP), (x, y), "#dddddd") + _text(x, y + 14, f"{tick:,g}", "middle"))
    for tick in _ticks(y_low, y_high) if log_y else [y_low + (y_high - y_low) * n / 4 for n in range(5)]:
        x, y = place(x_low, tick)
        label = f"{tick:,g}" if log_y else f"{tick:.3f}"
        parts.append(_line((x, y), (x + inner_width, y), "#dddddd") + _text(x - 5, y + 4, label, "end"))
    parts.append(_text(left + LEFT + inner_width / 2, HEIGHT - 14, x_name, "middle"))
    parts.append(_text(left + LEFT - 5, 34, y_name, "end"))
    for number, (kind, line) in enumerate(lines.items()):
        placed = [place(*point) for point in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        style = f'stroke="{COLOURS[kind]}" stroke-dasharray="{DASHES[kind]}"'
        parts.append(f'<polyline points="{path}" fill="none" stroke-width="1.5" {style}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[kind]}"/>' for x, y in placed]
        parts.append(_text(left + WIDTH - 88, TOP + 10 + 16 * number, kind, "start", COLOURS[kind]))
    return "".join(parts)


def _range(values: Iterable[float]) -> Point:
    """The ends of a logarithmic axis, with some room on both sides."""
    some = list(values)
    return min(some) * 0.8, max(some) * 1.25


def _ticks(low: float, high: float) -> list[float]:
    return [step * 10.0**power for power in range(-3, 8) for step in (1, 2, 5) if low <= step * 10.0**power <= high]


def _line(begin: Point, end: Point, colour: str) -> str:
    return f'<line x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#333333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
