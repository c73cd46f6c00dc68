"""The folder of a run: its head, its lines, its TREC files and its measures."""

import fcntl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from eval.domain import Answered, Measured, Retrieved
from eval.runs.lines import as_line, cut_to_whole_lines, read_lines
from eval.runs.record import DatasetUsed, Measures, RunRecord, measured, read_entry, rows_of, write_entry
from eval.runs.trec import write_trec
from eval.runs.used import git_hash, models_of, program_version, settings_fingerprint
from service.errors import Rejected
from service.settings import Settings
from service.wiring.configuration import configuration

HEAD = "run.json"
MEASURES = "measures.json"
LOCK = "writing.lock"

T = TypeVar("T", Retrieved, Answered)


def runs_folder(settings: Settings) -> Path:
    """Where runs are kept."""
    return settings.home / "eval" / "runs"


@dataclass(slots=True)
class Run:
    """An open run. While it is one's own to write (`with`), no other process may write it."""

    folder: Path
    record: RunRecord
    _files: dict[str, IO[bytes]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        lock = (self.folder / LOCK).open("a+b")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise Rejected(f"{self.folder}: another process is writing this run") from None
        self._files[LOCK] = lock
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()

    def append(self, labels: str, system: str, item: object) -> None:
        """Add what a system gave for one case (a frozen dataclass with `case_id`): on disk when this returns."""
        if LOCK not in self._files:
            raise RuntimeError("a run is written within its `with` block")
        path = self._lines(labels, system)
        if path.name not in self._files:
            cut_to_whole_lines(path)
            self._files[path.name] = path.open("ab", buffering=0)
        self._files[path.name].write(as_line(item))

    def retrieved(self, labels: str, system: str) -> dict[str, Retrieved]:
        """What a system found, by case; raises Rejected with the line at fault."""
        return self.items(labels, system, Retrieved)

    def answered(self, labels: str, system: str) -> dict[str, Answered]:
        """What a system answered, by case; raises Rejected with the line at fault."""
        return self.items(labels, system, Answered)

    def items(self, labels: str, system: str, kind: type[T]) -> dict[str, T]:
        """The lines of a system by case; of a case that is there twice the first counts. Raises Rejected."""
        found: dict[str, T] = {}
        for item in read_lines(self._lines(labels, system), kind):
            found.setdefault(item.case_id, item)
        return found

    def write_trec(self, labels: str, system: str, found: Sequence[Retrieved]) -> None:
        """Write what a system found as a TREC run, in this order."""
        write_trec(self.folder / f"{labels}.{system}.trec", found, tag=f"{self.record.id}.{system}")

    def finish(self, measures: Sequence[Measured], *, now: datetime) -> None:
        """Store the measures and close the run's account of itself."""
        write_entry(self.folder / MEASURES, Measures(rows=rows_of(measures)))
        self.record = self.record.model_copy(update={"finished": now})
        write_entry(self.folder / HEAD, self.record)

    def measures(self) -> list[Measured]:
        """What the finished run was measured to be; raises Rejected when it has no measures."""
        return measured(read_entry(self.folder / MEASURES, Measures).rows)

    def _lines(self, labels: str, system: str) -> Path:
        if labels not in self.record.labels or system not in self.record.systems:
            raise Rejected(f"{self.folder}: this run has no {labels} of {system}")
        return self.folder / f"{labels}.{system}.jsonl"


def new_run(
    settings: Settings,
    *,
    command: str,
    dataset: DatasetUsed,
    labels: Sequence[str],
    systems: Mapping[str, Mapping[str, Any]],
    seed: int,
    options: Mapping[str, Any],
    now: datetime,
) -> Run:
    """A new folder with its run.json; `systems` are the switches of each system by its name."""
    made = _make_folder(runs_folder(settings), f"{now:%Y%m%d-%H%M%S}-{command}")
    signature = configuration(settings)
    record = RunRecord(
        id=made.name,
        command=command,
        started=now,
        git=git_hash(),
        version=program_version(),
        settings=settings_fingerprint(settings),
        signature=signature.sha256,
        parts={name: part.sha256 for name, part in signature.parts.items()},
        models=models_of(settings),
        dataset=dataset,
        seed=seed,
        labels=list(labels),
        systems={name: dict(switches) for name, switches in systems.items()},
        options=dict(options),
    )
    write_entry(made / HEAD, record)
    return Run(made, record)


def open_run(path: Path) -> Run:
    """The run in this folder, its run.json checked; raises Rejected."""
    if not (path / HEAD).is_file():
        raise Rejected(f"{path}: no run: there is no {HEAD} in it")
    return Run(path, read_entry(path / HEAD, RunRecord))


def _make_folder(parent: Path, name: str) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        made = parent / (name if number == 1 else f"{name}-{number}")
        with suppress(FileExistsError):
            made.mkdir()
            return made
        number += 1
