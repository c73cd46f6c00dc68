"""The head of a run, run.json, and the rows of its measures.json."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from math import isnan, nan
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from eval.domain import Interval, Measured
from service.errors import Rejected

MAX_BYTES = 64 * 2**20

Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}$")]
"""A name that is part of a file's name."""


class Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class DatasetUsed(Entry):
    name: str
    checksum: str


class RunRecord(Entry):
    """What decides a run's figures. `settings` is a fingerprint; `systems` are the systems' switches by name.

    `signature` (SHA-256) is of the whole configuration, prompts included: what a verdict on the run is about; `parts`
    are the SHA-256 of its parts by name.
    """

    schema_: Literal[1] = Field(1, alias="schema")
    id: Word
    command: Word
    started: datetime
    finished: datetime | None = None
    git: str | None = None
    version: str
    settings: str
    signature: str = ""
    parts: dict[str, str] = Field(default_factory=dict)
    models: dict[str, str]
    dataset: DatasetUsed
    seed: int
    labels: list[Word]
    systems: dict[Word, dict[str, Any]]
    options: dict[str, Any] = Field(default_factory=dict)

    @property
    def limit(self) -> int | None:
        """How many of each file's questions, messages or probes the run was limited to, the first ones; None: all."""
        limit = self.options.get("limit")
        return limit if isinstance(limit, int) else None

    @property
    def obedient(self) -> bool:
        """Whether a program that obeys whatever it reads was in the model's place: no run of a real one is like it."""
        return bool(self.options.get("obedient"))


class Row(Entry):
    """A Measured, flat; null where a number is not known."""

    labels: str
    system: str
    slice: str
    measure: str
    n: int = Field(ge=0)
    value: float | None
    low: float | None
    high: float | None


class Measures(Entry):
    schema_: Literal[1] = Field(1, alias="schema")
    rows: list[Row]


E = TypeVar("E", bound=Entry)


def read_entry(path: Path, model: type[E]) -> E:
    """The file as this model; raises Rejected naming the file and the first field at fault."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise Rejected(f"{path}: larger than {MAX_BYTES:,} bytes")
        return model.model_validate_json(path.read_bytes())
    except OSError as exc:
        raise Rejected(f"{path}: can't be read: {exc.strerror}") from exc
    except ValidationError as exc:
        fault = exc.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"]))
        raise Rejected(f"{path}{', ' if where else ''}{where}: {' '.join(fault['msg'].split())}") from exc


def write_entry(path: Path, entry: Entry) -> None:
    """Write the file whole or not at all."""
    beside = path.with_suffix(".part")
    beside.write_text(entry.model_dump_json(indent=1, by_alias=True) + "\n", encoding="utf-8")
    beside.replace(path)


def rows_of(measures: Iterable[Measured]) -> list[Row]:
    return [
        Row(
            labels=one.labels,
            system=one.system,
            slice=one.slice,
            measure=one.measure,
            n=one.n,
            value=_known(one.interval.value),
            low=_known(one.interval.low),
            high=_known(one.interval.high),
        )
        for one in measures
    ]


def measured(rows: Iterable[Row]) -> list[Measured]:
    return [
        Measured(row.labels, row.system, row.slice, row.measure, row.n, Interval(*map(_number, ends)))
        for row in rows
        for ends in [(row.value, row.low, row.high)]
    ]


def _known(value: float) -> float | None:
    return None if isnan(value) else value


def _number(value: float | None) -> float:
    return nan if value is None else value


def differing(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names under which two mappings hold different values."""
    return sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
