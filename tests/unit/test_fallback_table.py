"""The fallback table: complete, and the same as its page."""

from pathlib import Path

from service.fallbacks import FALLBACKS
from service.fallbacks.__main__ import document
from service.fallbacks.row import Fault, Part
from service.settings import Settings
from service.settings.models import WhenDown

PAGE = Path(__file__).parents[2] / "docs" / "fallbacks.md"


def test_the_page_is_made_of_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == document(), "run: python -m service.fallbacks > docs/fallbacks.md"


def test_every_part_has_one_row_for_every_fault() -> None:
    servers, databases = list(Fault)[:7], [Fault.REFUSES, *list(Fault)[7:]]
    expected: list[tuple[Part, Fault]] = [
        (part, fault) for part in Part if part is not Part.DATABASE for fault in servers
    ]
    expected += [(Part.DATABASE, fault) for fault in databases]
    expected += [(Part.MODEL, fault) for fault in servers]  # one for each way to go without it
    assert sorted((row.part, row.fault) for row in FALLBACKS) == sorted(expected)
    ways = {(row.fault, row.when_down) for row in FALLBACKS if row.part is Part.MODEL}
    assert ways == {(fault, when) for fault in servers for when in WhenDown}


def test_every_bound_follows_the_settings() -> None:
    slow = Settings.model_validate(
        {
            "models": {
                "embedder": {"timeout_seconds": 1000},
                "reranker": {"timeout_seconds": 1000},
                "answerer": {"deadline_seconds": 1000},
            },
            "worker": {"retry_max_seconds": 1000},
            "database": {"search_timeout_seconds": 1000},
        }
    )
    for row in FALLBACKS:
        assert row.within.seconds(slow) >= 1000 > row.within.seconds(Settings.model_construct())
