"""Opens the run that a command records into: a new one, or one that was interrupted and is the same."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from eval.datasets import Dataset
from eval.runs import DatasetUsed, Run, new_run
from eval.runs.finding import FOLDER, find_run
from eval.runs.resuming import gone_on_with
from service.settings import Settings

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
    resume: str | None,
    now: datetime,
) -> Run:
    """The run to go on with, or a new one; raises Rejected where `resume` was made of something else.

    A run is named as eval.runs.finding tells. Its `systems` are those that it began with.
    """
    used = DatasetUsed(name=dataset.name, checksum=dataset.checksum)
    kept = {FOLDER: str(dataset.folder.resolve()), **options}
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
    return gone_on_with(
        find_run(settings, resume),
        settings,
        command=command,
        labels=[labels],
        dataset=used,
        systems={name: dict(switches) for name, switches in systems.items()},
        options=kept,
    )
