"""The evaluation run that comes with the program: what the demo's configuration was found to be worth."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from service.domain import EvaluationRun, Part, RunKind, Signature

FILE = "tested.json"


def shipped_run() -> EvaluationRun:
    """The passed run of the demo's dataset under the default settings, as it was shipped."""
    stored: dict[str, Any] = json.loads((files("service.demo") / FILE).read_text(encoding="utf-8"))
    parts = {name: Part(part["values"], part["sha256"]) for name, part in stored["configuration"].items()}
    return EvaluationRun(
        Signature(stored["signature"], parts),
        RunKind.EVAL,
        passed=True,
        by="Ariane's developers",
        reason=stored["reason"],
        dataset=stored["dataset"],
        dataset_sha256=stored["dataset_sha256"],
        limits=stored["limits"],
        figures=stored["figures"],
    )


def ship(run: EvaluationRun, folder: Path | None = None) -> Path:
    """Write a passed run as the one that comes with the program, into this checkout; gives the file."""
    path = (folder or Path(__file__).parent) / FILE
    stored = {
        "dataset": run.dataset,
        "dataset_sha256": run.dataset_sha256,
        "reason": run.reason,
        "limits": dict(run.limits),
        "figures": dict(run.figures),
        "signature": run.signature.sha256,
        "configuration": {
            name: {"sha256": part.sha256, "values": dict(part.values)} for name, part in run.signature.parts.items()
        },
    }
    path.write_text(json.dumps(stored, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path
