"""Opens the run that a command records into: a new one, or one that was interrupted and is the same."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from eval.datasets import Dataset
from eval.runs import DatasetUsed, Run, models_of, new_run, open_run, runs_folder, settings_fingerprint
from service.errors import Rejected
from service.settings import Settings
from service.wiring.configuration import configuration

SEED = 1
"""Of the bootstrap: the same answers give the same intervals."""


def recording(
    settings: Settings,
    dataset: Dataset,
    *,
    command: str,
    labels: str,
    systems: Mapping[str, Mapping[str, Any]],
    options: Mapping[str, Any],
    resume: Path | None,
    now: datetime,
) -> Run:
    """The run to go on with, or a new one; raises Rejected where `resume` was made of something else.

    A run is named by its folder, or by its id. Its `systems` are those that it began with.
    """
    used = DatasetUsed(name=dataset.name, checksum=dataset.checksum)
    kept = {"dataset": str(dataset.folder.resolve()), **options}
    if resume is None:
        return new_run(
            settings,
            command=command,
            dataset=used,
            labels=[labels],
            systems=systems,
            seed=SEED,
            options=kept,
            now=now,
        )
    run = open_run(resume if resume.exists() else runs_folder(settings) / resume)
    then = run.record
    now_and_then: Sequence[tuple[str, object, object]] = (
        ("command", command, then.command),
        ("labels", [labels], then.labels),
        ("dataset", used, then.dataset),
        ("settings", settings_fingerprint(settings), then.settings),
        ("models", models_of(settings), then.models),
        ("configuration", configuration(settings).sha256, then.signature),
        ("systems", {name: dict(switches) for name, switches in systems.items()}, then.systems),
        ("options", dict(options), {name: value for name, value in then.options.items() if name != "dataset"}),
    )
    if other := [name for name, ours, its in now_and_then if ours != its]:
        raise Rejected(f"{run.folder}: made with other {', '.join(other)}: begin a new run")
    return run
