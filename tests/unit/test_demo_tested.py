"""The verdict that comes with the program is about the demo's configuration as it is now."""

import os

import pytest

from service.answer.signature import differences
from service.demo.tested import shipped_run
from service.domain import RunKind
from service.settings import Settings
from service.wiring.configuration import configuration


def test_the_shipped_verdict_is_on_the_demos_present_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ARIANE_")]:
        monkeypatch.delenv(name)
    shipped, present = shipped_run(), configuration(Settings())
    changed = ", ".join(differences(shipped.signature, present))
    assert shipped.signature.sha256 == present.sha256, f"run `make tested`: the demo was tested before {changed}"


def test_the_shipped_verdict_says_on_what_and_how_well() -> None:
    shipped = shipped_run()
    assert (shipped.kind, shipped.passed, shipped.dataset) == (RunKind.EVAL, True, "demo")
    assert len(shipped.dataset_sha256) == 64
    assert shipped.figures.keys() == shipped.limits.keys() != set()
