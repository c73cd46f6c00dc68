"""Finds a run by what people call it, the runs of a folder, and the dataset that a run was made on."""

from collections.abc import Iterator
from pathlib import Path

from eval.runs.folder import HEAD, Run, open_run, runs_folder
from service.errors import Rejected
from service.settings import Settings

FOLDER = "dataset"
"""The option of a run that says in which folder its dataset was."""


def find_run(settings: Settings, name: str) -> Run:
    """The run of this name: its folder, or among the runs of this home its id, or its command (the newest of it).

    Raises Rejected where there is none, or its run.json is broken.
    """
    kept = runs_folder(settings)
    for folder in (Path(name), *([kept / name] if Path(name).name == name else [])):
        if (folder / HEAD).is_file():
            return open_run(folder)
    # Two of one second differ by the number behind their ids.
    of_command = [run for run in runs_in(kept) if run.record.command == name]
    if not of_command:
        raise Rejected(f"{name}: no run: neither a folder with a {HEAD}, nor the id or the command of a run in {kept}")
    return max(of_command, key=lambda run: (run.record.started, len(run.record.id), run.record.id))


def runs_in(folder: Path) -> Iterator[Run]:
    """The runs in this folder; what is no run, or a broken one, is left out."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            yield open_run(path)
        except Rejected:  # it is not what was asked for
            continue


def dataset_folder(run: Run) -> Path:
    """Where the run's dataset was; raises Rejected where it doesn't say so."""
    folder = run.record.options.get(FOLDER)
    if not isinstance(folder, str):
        raise Rejected(f"{run.folder}: doesn't say where its dataset is: name it with --dataset")
    return Path(folder)
