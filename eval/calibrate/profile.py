"""From studies to a profile: the thresholds of each regime with their origin, and a zone model only where it pays."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from eval.calibrate.effect import Effect
from eval.calibrate.sample import FEATURES, Regime
from eval.calibrate.study import FEATURES as BY_FEATURES
from eval.calibrate.study import Model, Study
from service.domain import ZoneModel
from service.inference.calibration import Calibration, Recalibration


@dataclass(frozen=True, slots=True)
class Origin:
    """What the thresholds were measured with."""

    dataset: str
    checksum: str
    measured_on: date
    program: str
    run: str


def recalibration(studies: Mapping[Regime, Study], origin: Origin) -> Recalibration:
    """What the profile files get; the regime in which all parts work is needed, the others where they were studied."""
    full = studies[Regime.RERANKED]
    best = full.best
    keyword, down = studies.get(Regime.KEYWORD), studies.get(Regime.RERANKER_DOWN)
    return Recalibration(
        borders=full.point.borders,
        calibration=_calibration(full, best.test if best else full.test, origin),
        zone_model=zone_model(best) if best else None,
        keyword=(keyword.point.borders, _calibration(keyword, keyword.test, origin)) if keyword else None,
        floor=(down.point.borders.weak, _calibration(down, down.test, origin)) if down else None,
    )


def zone_model(model: Model) -> ZoneModel:
    """The fitted regression as the service computes it."""
    weights = tuple(float(weight) for weight in model.fitted.weights)
    features, ranks = (weights, ()) if model.name == BY_FEATURES else ((), weights)
    named = tuple(zip(FEATURES, features, strict=True)) if features else ()
    return ZoneModel(model.fitted.bias, named, ranks, model.point.borders)


def _calibration(study: Study, test: Effect, origin: Origin) -> Calibration:
    return Calibration(
        dataset=origin.dataset,
        checksum=origin.checksum,
        measured_on=origin.measured_on,
        program=origin.program,
        run=origin.run,
        n=len(study.sample.ids),
        wrong=round(test.wrong.value, 4),
        lost=round(test.lost.value, 4),
    )
