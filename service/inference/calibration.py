"""What evaluation has measured of a profile, and its shape in a profiles file: thresholds and where they come from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from service.domain import Borders, ScoreFeature, ZoneModel

MAX_RANKS = 200
"""As many as `retrieval.candidates` may be."""

Text = Annotated[str, Field(min_length=1)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Where thresholds come from, and what they do to questions whose topics the fit hasn't seen.

    `n` questions; `wrong` is the share of the answers without a right source, `lost` that of the right answers not
    given.
    """

    dataset: str
    checksum: str
    measured_on: date
    program: str
    run: str
    n: int
    wrong: float
    lost: float


@dataclass(frozen=True, slots=True)
class Recalibration:
    """New thresholds of a reranker, for all parts at work and (where measured) for keywords alone, and of an embedder.

    `borders` lie on the top logit whether there is a zone model or not.
    """

    borders: Borders
    calibration: Calibration
    zone_model: ZoneModel | None = None
    keyword: tuple[Borders, Calibration] | None = None
    floor: tuple[float, Calibration] | None = None

    def zones(self) -> Mapping[str, object]:
        """The fields of a reranker's entry that it replaces."""
        return {
            "weak": self.borders.weak,
            "normal": self.borders.normal,
            "provisional": False,
            "calibration": CalibrationEntry.of(self.calibration),
            "keyword": BordersEntry.of(*self.keyword) if self.keyword else None,
            "zone_model": ZoneModelEntry.of_model(self.zone_model) if self.zone_model else None,
        }


class Entry(BaseModel):
    """A part of a profiles file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CalibrationEntry(Entry):
    dataset: Text
    checksum: Text
    measured_on: date
    program: Text
    run: str
    n: int = Field(ge=1)
    wrong: Share
    lost: Share

    @classmethod
    def of(cls, calibration: Calibration) -> Self:
        return cls(**asdict(calibration))

    def known(self) -> Calibration:
        return Calibration(**dict(self))


class BordersEntry(Entry):
    weak: Finite
    normal: Finite
    calibration: CalibrationEntry | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.weak > self.normal:
            raise ValueError("weak must not lie above normal")
        return self

    @classmethod
    def of(cls, borders: Borders, calibration: Calibration) -> Self:
        return cls(weak=borders.weak, normal=borders.normal, calibration=CalibrationEntry.of(calibration))

    def borders(self) -> Borders:
        return Borders(self.weak, self.normal)


class ZoneModelEntry(BordersEntry):
    bias: Finite
    features: dict[ScoreFeature, Finite] = Field(default_factory=dict)
    ranks: tuple[Finite, ...] = Field((), max_length=MAX_RANKS)

    @classmethod
    def of_model(cls, model: ZoneModel) -> Self:
        return cls(
            weak=model.borders.weak,
            normal=model.borders.normal,
            bias=model.bias,
            features=dict(model.features),
            ranks=model.ranks,
        )

    def known(self) -> ZoneModel:
        return ZoneModel(self.bias, tuple(self.features.items()), self.ranks, self.borders())
