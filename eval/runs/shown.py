"""The stable JSON shape of a run's measures, which `--json` prints."""

from collections.abc import Sequence
from typing import Any

from eval.domain import Measured
from eval.measures import rows
from eval.runs import Run


def report(run: Run, measures: Sequence[Measured], **more: object) -> dict[str, Any]:
    """What was run on what, `more` of the command's own, and the rows."""
    record = run.record
    return {
        "command": record.command,
        "run": record.id,
        "dataset": record.dataset.model_dump(),
        "settings": {
            "fingerprint": record.settings,
            "models": record.models,
            "systems": record.systems,
            "seed": record.seed,
            **record.options,
        },
        **more,
        "rows": rows(measures),
    }
