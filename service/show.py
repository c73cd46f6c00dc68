"""An answer drawn for a terminal: text, sources with their scores as bars, zone, and the time of each stage."""

from collections.abc import Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from service.answer.zones import zone_of
from service.domain import Mode, RerankerProfile, Source, Zone

BAR_CELLS = 8
LOGIT_SPAN = 8.0
"""Logits are drawn from -LOGIT_SPAN to +LOGIT_SPAN; what lies beyond fills or empties the bar."""
STAGES = ("retrieve", "rerank", "evidence", "generate", "sanitize")
"""The order in which a stored trace, which has none, is told."""
ZONE_STYLE = {Zone.NORMAL: "green", Zone.WEAK: "yellow", Zone.ABSTAIN: "red"}


LEAST_WIDTH = 150
"""Columns of a table of figures."""


def show_answer(
    console: Console,
    *,
    question: str,
    markdown: str,
    zone: Zone | None,
    mode: Mode | None,
    sources: Sequence[Source],
    cited: Sequence[int],
    profile: RerankerProfile,
    timings_ms: Mapping[str, float],
) -> None:
    """Print one question with its answer and how it came about."""
    parts: list[RenderableType] = [Markdown(markdown)]
    if sources:
        parts += [Text(), _sources(sources, cited, profile)]
    parts += [Text(), _how(zone, mode, profile), _times(timings_ms)]
    console.print(
        Panel(
            Group(*parts),
            title=Text(question, style="bold", overflow="ellipsis", no_wrap=True),
            title_align="left",
            padding=(1, 2),
        )
    )


def table_console() -> Console:
    """A console for tables of figures: wide also where no terminal shows it, since a cut figure is none."""
    return Console(highlight=False, width=max(LEAST_WIDTH, Console().width))


def bar(share: float) -> str:
    """A bar of BAR_CELLS characters of which `share` (cut to [0, 1]) is full, by eighths."""
    eighths = round(min(max(share, 0.0), 1.0) * BAR_CELLS * 8)
    full, part = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[part] if part else "")).ljust(BAR_CELLS)


def _sources(sources: Sequence[Source], cited: Sequence[int], profile: RerankerProfile) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="dim", expand=False)
    table.add_column("", no_wrap=True, min_width=3)
    table.add_column("source", overflow="ellipsis", no_wrap=True, max_width=34)
    table.add_column("cosine", no_wrap=True)
    table.add_column("logit", no_wrap=True)
    for source in sources:
        mark = Text(f"[{source.n}]", style="bold" if source.n in cited else "dim")
        title = Text(f"{source.title} #{source.post_number}", style="" if source.n in cited else "dim")
        table.add_row(mark, title, _cosine(source.cosine), _logit(source.logit, profile))
    return table


def _cosine(cosine: float | None) -> Text:
    if cosine is None:
        return Text("-", style="dim")
    return Text.assemble(f"{cosine:+.2f} ", (bar(cosine), "cyan"))


def _logit(logit: float | None, profile: RerankerProfile) -> Text:
    if logit is None:
        return Text("-", style="dim")
    share = (logit + LOGIT_SPAN) / (2 * LOGIT_SPAN)
    return Text.assemble(f"{logit:+.2f} ", (bar(share), ZONE_STYLE[zone_of(logit, profile)]))


def _how(zone: Zone | None, mode: Mode | None, profile: RerankerProfile) -> Text:
    provisional = " (provisional thresholds)" if profile.provisional else ""
    return Text.assemble(
        ("zone ", "dim"),
        (zone or "-", ZONE_STYLE[zone] if zone else ""),
        (f"   weak from {profile.weak:+.1f}, normal from {profile.normal:+.1f}{provisional}", "dim"),
        ("   mode ", "dim"),
        (mode or "-", ""),
    )


def _place(stage: str) -> int:
    return STAGES.index(stage) if stage in STAGES else len(STAGES)


def _times(timings_ms: Mapping[str, float]) -> Text:
    line = Text("time ", style="dim")
    for stage, ms in sorted(timings_ms.items(), key=lambda item: _place(item[0])):
        line.append(f"{stage} {ms:.0f} ms  ", style="dim")
    return line
