"""The words of the moderators' pages: the same keys and fields in every language, and all that templates name."""

import re
from datetime import UTC, datetime
from pathlib import Path
from string import Formatter

import pytest

import service.moderation
from service.domain import ENGLISH, FRENCH, Lang
from service.moderation.wording import Words, texts

FOLDER = Path(service.moderation.__file__).parent
NAMED = re.compile(r"""\b(?:t|words|title|Refusal)(?:\.count)?\s*(?:\(|=)\s*["']([a-z_]+\.[a-z0-9_]+)["']\s*(~)?""")


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("lang", [lang for lang in texts() if lang != ENGLISH])
def test_every_language_has_the_same_keys_and_fields(lang: Lang) -> None:
    english, other = texts()[ENGLISH], texts()[lang]
    assert set(english) == set(other)
    for key, text in english.items():
        assert fields(text) == fields(other[key]), key
        assert other[key].strip(), key


def test_every_text_that_a_page_names_is_there() -> None:
    known = texts()[ENGLISH]
    sources = [*FOLDER.rglob("*.html"), *FOLDER.rglob("*.py")]
    named = [(path.name, found) for path in sources for found in NAMED.finditer(path.read_text(encoding="utf-8"))]
    assert len(named) > 20
    for name, found in named:
        key, built = found.group(1), found.group(2)
        there = any(one.startswith(key) for one in known) if built or ".count" in found.group(0) else key in known
        assert there, f"{name} names {key}"


def test_numbers_and_times_are_written_as_a_language_does() -> None:
    at = datetime(2026, 3, 1, 12, 5, tzinfo=UTC)
    assert (Words(ENGLISH).number(12345.678, 1), Words(ENGLISH).when(at)) == ("12,345.7", "2026-03-01 12:05 UTC")
    assert (Words(FRENCH).number(-12345.678, 1), Words(FRENCH).when(at)) == ("−12\u202f345,7", "01/03/2026 12:05 UTC")
    assert Words(ENGLISH).number(None) == "–"


def test_an_unknown_language_reads_english() -> None:
    assert Words(Lang("xx")).lang == ENGLISH
