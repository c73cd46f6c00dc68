"""Writes what moderators made test questions of into a dataset's questions.yml, after what it has."""

from collections.abc import Iterable
from pathlib import Path

import yaml

from service.store.checked_questions import CheckedQuestion

FILE = "questions.yml"
HEAD = "# Corrections of moderators, written by `python -m eval corrections`: change them on the moderators' pages.\n"


def write_corrections(folder: Path, questions: Iterable[CheckedQuestion]) -> int:
    """Put these questions in place of the corrections that the file has; how many. What is before them stays."""
    items = [_item(one) for one in questions]
    path = folder / FILE
    own = path.read_text(encoding="utf-8").partition(HEAD)[0] if path.exists() else ""
    if not items and not path.exists():
        return 0
    if own and not own.endswith("\n"):
        own += "\n"
    written = yaml.safe_dump(items, allow_unicode=True, sort_keys=False, width=120) if items else ""
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(own + (HEAD + written if items else ""), encoding="utf-8")
    return len(items)


def _item(one: CheckedQuestion) -> dict[str, object]:
    return {
        "id": f"corrected-{one.post_id}",
        "slice": one.slice,
        "lang": one.lang,
        "question": one.question,
        "golden": [{"topic": topic, "posts": list(posts), "grade": 2} for topic, posts in one.golden],
        "note": one.note,
    }
