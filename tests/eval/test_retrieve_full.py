"""`python -m eval retrieve` on the real forum and the French help desk: some minutes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.shared import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = yaml.safe_load((Path(__file__).parent / "expected_full.yml").read_text(encoding="utf-8"))

pytestmark = [
    needs_shared,
    pytest.mark.heavy,
    pytest.mark.timeout(3600),
]


def retrieve(dataset: str, home: Path, server_url: str) -> dict[tuple[str, str, str], float]:
    """Values by label file, system and measure, over all cases."""
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "ARIANE_HOME": str(home),
        "ARIANE_DATABASE__URL": server_url,
    }
    command = [sys.executable, "-m", "eval", "retrieve", "--dataset", str(SHARED / "data" / dataset), "--json"]
    ran = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    return {
        (row["labels"], row["system"], row["measure"]): row["value"] for row in report["rows"] if row["slice"] == "all"
    }


@pytest.mark.parametrize("dataset", sorted(EXPECTED["datasets"]))
def test_the_figures_are_what_they_were(dataset: str, tmp_path: Path, server_url: str) -> None:
    found = retrieve(dataset, tmp_path, server_url)
    wrong = [
        f"{labels} {system} {measure}: {found[labels, system, measure]:.3f}, expected {value}"
        for labels, systems in EXPECTED["datasets"][dataset].items()
        for system, measures in systems.items()
        for measure, value in measures.items()
        if abs(found[labels, system, measure] - value) > EXPECTED["tolerance"]
    ]
    assert wrong == []
