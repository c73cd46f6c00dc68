"""Prints docs/fallbacks.md: `python -m service.fallbacks > docs/fallbacks.md`."""

import sys
from collections.abc import Iterator

from service.fallbacks import FALLBACKS
from service.fallbacks.row import Fallback, Part
from service.settings import Settings

HEAD = """# What happens when a part fails

Made from `service/fallbacks` by `python -m service.fallbacks > docs/fallbacks.md`; `tests/e2e/test_fallbacks.py`
and `test_database_faults.py` ask real questions under each of these faults and hold Ariane to every row.

- No question is lost: it is answered in spite of the fault, or stays in the queue and is answered after its end. One
  that waited more than `limits.late_minutes` (10 by default) gets the list of its sources, for which no language model
  is asked; where somebody else has written in its topic since, nothing (`skipped: answered_by_people`). An answer that
  was ready in time stays what it is, and what the gate declines and help are said all the same.
- None is answered twice, whatever was said or not said of the first time.
- None is answered with more confidence than with every part at work: without the reranker the zone is weak at best.
- No answer is kept for a later question, so a poor one is never taken for a good one.
- A model server that failed `models.breaker_failed_calls` times in a row is left alone for
  `models.breaker_open_seconds`; then one call tries it. A full one (429) lives: it is asked each time.
- However slow the reranker is, a worker has answered n questions within 2 × `models.reranker.timeout_seconds` + n /
  `worker.answer_concurrency` × (that timeout + 1 s for the other stages), where the language model is fast: 20
  questions in 130 s by default. Measured with TEI taking 10 s a call: 52 s, all without it; with 9 s: 111 s, all
  reranked.
- `ariane_part_up` on the worker's metrics page shows embedder, reranker, model, forum and database: 1 while a part
  answers and proves to be what it is taken for. `/readyz` is about what the web process itself needs, the database and
  its schema: 503 without them.
"""

TITLES = {
    Part.EMBEDDER: "The embedder",
    Part.RERANKER: "The reranker",
    Part.MODEL: "The language model",
    Part.FORUM: "The forum's REST API",
    Part.DATABASE: "The database",
}


def document() -> str:
    """The table in Markdown, with the bounds of the default settings."""
    return "\n".join((HEAD, *(line for part in Part for line in _section(part))))


def _section(part: Part) -> Iterator[str]:
    rows = [row for row in FALLBACKS if row.part is part]
    yield f"## {TITLES[part]}\n"
    for alike in dict.fromkeys(map(_said, rows)):
        same = [row for row in rows if _said(row) == alike]
        faults = ", ".join(row.fault for row in same)
        when = same[0].when_down
        yield f"### It {faults}" + (f" (`models.answerer.when_down: {when}`)" if when else "") + "\n"
        for name, text in alike:
            yield f"- **{name}**: {text}"
        yield ""


def _said(row: Fallback) -> tuple[tuple[str, str], ...]:
    seconds = row.within.seconds(Settings.model_construct())
    late = "answered at most" if row.waits else "later by at most"
    return (
        ("the member sees", row.member),
        ("posted", row.posted),
        ("tried again", row.retried),
        ("recorded", row.recorded),
        ("counted", ", ".join(map(str, row.counted))),
        ("shown", f'`ariane_part_up{{part="{row.part}"}}` {int(row.up)}'),
        ("time", f"{late} {seconds:g} s by default ({row.within.made_of})"),
    )


if __name__ == "__main__":
    sys.stdout.write(document())
