"""A report written out: one HTML page that needs nothing else, and the same in Markdown."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from eval.calibrate.risk import COVERAGES
from eval.measures.answers import OUTCOMES
from eval.report.changes import told_differences
from eval.report.content import LESS_IS_BETTER, Report, Trace
from eval.report.plots import reliability_plot, risk_plot
from eval.report.tables import Kind, sections
from eval.report.wording import Numbers, Wording, wordings
from eval.runs.finding import FOLDER
from service.answer.markup.invisible import strip_invisible
from service.answer.markup.write import escaped

_TICKS = re.compile("`+")

HEADS = {
    Kind.MEASURES: "col_system",
    Kind.SLICES: "col_system",
    Kind.MEASURE_ROWS: "col_measure",
    Kind.SLICE_ROWS: "col_slice",
}
"""The text over the names of a table's rows."""


def html(report: Report, lang: str) -> str:
    """The page; whatever came from a forum, a dataset or a model is text in it, never mark-up, and never a link."""
    style = Markup(_environment(autoescape=True).get_template("page.css").render())  # noqa: S704 - our own file
    return _environment(autoescape=True).get_template("page.html").render(style=style, **_values(report, lang))


def markdown(report: Report, lang: str) -> str:
    """The same in Markdown: foreign text only in code, where nothing is read into it."""
    text = _environment(autoescape=False).get_template("page.md").render(**_values(report, lang))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _values(report: Report, lang: str) -> dict[str, Any]:
    words = wordings()[lang]
    made = sections(report)
    return {
        "lang": lang,
        "report": report,
        "record": report.record,
        "t": words.text,
        "name": words.name,
        "measure": words.measure,
        "legend": [one for one in words.legend if not one.of or report.record.command in one.of],
        "num": Numbers(lang),
        "sections": made,
        "is_times": any(one.stages for one in made),
        "differences": told_differences(report),
        "outcomes": OUTCOMES,
        "risk_rows": lambda scores: list(zip(COVERAGES, scores.risk.wrong, strict=True)),
        "why": partial(_why, words),
        "Kind": Kind,
        "heads": HEADS,
        "row_name": partial(_row_name, words),
        "plots": [(one, risk_plot(one), reliability_plot(one)) for one in report.scores],
        "less_is_better": LESS_IS_BETTER,
        "options": {
            name: value for name, value in report.record.options.items() if value is not None and name != FOLDER
        },
    }


def _row_name(words: Wording, kind: Kind, row: str) -> str:
    match kind:
        case Kind.MEASURE_ROWS:
            return words.measure(row).name
        case Kind.SLICE_ROWS:
            return words.name("slices", row)
        case Kind.MEASURES | Kind.SLICES:
            return words.name("systems", row)


def _why(words: Wording, trace: Trace) -> str:
    other = words.name("systems", str(trace.values.get("other", "")))
    return words.text(trace.why, **trace.values | {"other": other})


def _environment(*, autoescape: bool) -> Environment:
    environment = Environment(
        loader=PackageLoader("eval.report", "templates"),
        autoescape=autoescape,  # noqa: S701 - Markdown has no HTML: its template puts foreign text in code
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"seen": seen, "line": line, "plain": plain, "code": code, "block": block}
    return environment


def seen(text: str) -> str:
    """Foreign text without what can't be seen or turns the direction of what follows."""
    return strip_invisible(text)[0]


def line(text: str) -> str:
    """The same in one line."""
    return " ".join(seen(text).split())


def plain(text: object) -> str:
    """Text of one line in Markdown, its marks escaped."""
    return escaped(line(str(text)))


def code(text: object) -> str:
    """Text as a code span of Markdown, which a table may hold; the fence is longer than any run of ticks within."""
    shown = line(str(text)).replace("|", "¦") or " "
    fence = "`" * (1 + max((len(run) for run in _TICKS.findall(shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def block(text: str) -> str:
    """Text as a fenced block of Markdown."""
    shown = seen(text)
    fence = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(shown)), default=0))
    return f"{fence}text\n{shown}\n{fence}"


Written = Callable[[Report, str], str]
PAGES: dict[str, Written] = {"report.html": html, "report.md": markdown}
"""The files of a report."""
