"""What a configuration is, as its signature, and what an evaluation run found it to be worth."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a configuration: its values by their dotted names, and their SHA-256 in hex."""

    values: Mapping[str, Value]
    sha256: str


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything that decides an answer, by part; `sha256` (hex) is equal exactly when all of it is."""

    sha256: str
    parts: Mapping[str, Part]


class RunKind(StrEnum):
    """Who judged: limits on a dataset, a moderator after a real test, or somebody who needs no test."""

    EVAL = "eval"
    SIGNED_OFF = "signed-off"
    OVERRIDE = "override"


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    """A verdict on a configuration, by whom and why.

    `limits` are what was asked ("topic Hit@5" -> ">= 0.8"), `figures` what was found, under the same names; the
    dataset's name and the SHA-256 of its files are empty where none was used.
    """

    signature: Signature
    kind: RunKind
    passed: bool
    by: str
    reason: str
    dataset: str = ""
    dataset_sha256: str = ""
    limits: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it was recorded; among runs of one signature the one with the highest id counts."""

    id: int
    recorded_at: datetime
    run: EvaluationRun
