"""A study as flat rows: measures with intervals, and the points chosen, for JSON and the report."""

from collections.abc import Iterator, Sequence
from typing import Any

from eval.calibrate.effect import Effect
from eval.calibrate.points import Point
from eval.calibrate.study import TOP, Study
from eval.calibrate.synthetic import Proof
from eval.domain import Interval, Labels, Measured


def measured(study: Study, labels: Labels) -> list[Measured]:
    """Every figure of one regime; `system` is the regime and the score, `slice` what was told apart or tried.

    Measures: AUC and its gain, wrong by coverage, and of an operating point wrong, wrong normal, lost, answered.
    """
    regime, n = study.sample.regime.value, len(study.sample.ids)

    def row(score: str, part: str, measure: str, count: int, interval: Interval) -> Measured:
        return Measured(labels, f"{regime}: {score}", part, measure, count, interval)

    rows = []
    for told in study.separations:
        count = told.positives + told.negatives
        rows.append(row(told.score, told.contrast, "AUC", count, told.area))
        if told.gain:
            rows.append(row(told.score, told.contrast, "AUC gain", count, told.gain))
    for model in study.models:
        for gain in model.gains:
            at = "mean" if gain.coverage is None else f"{gain.coverage:.2f}"
            rows.append(row(TOP, f"coverage {at}", f"wrong, beside {model.name}", n, gain.threshold))
            rows.append(row(model.name, f"coverage {at}", "wrong", n, gain.model))
            rows.append(row(model.name, f"coverage {at}", "wrong gain", n, gain.difference))
    for score, part, one in effects(study):
        for measure, interval in shares(one):
            rows.append(row(score, part, measure, n, interval))
    return rows


def effects(study: Study) -> Iterator[tuple[str, str, Effect]]:
    """(score, part, effect): today's profile, the new borders on what they were chosen on, then on unseen topics."""
    yield TOP, "all, as it is now", study.now
    yield TOP, "all, seen", study.seen
    yield TOP, "test", study.test
    for model in study.models:
        yield model.name, "test", model.test


def shares(one: Effect) -> Sequence[tuple[str, Interval]]:
    """The shares of an effect by name."""
    return (
        ("wrong", one.wrong),
        ("wrong normal", one.wrong_normal),
        ("lost", one.lost),
        ("answered", one.answered),
    )


def points(studies: Sequence[Study]) -> dict[str, Any]:
    """By regime: the borders of the top score and of each model, whether they keep the limits, what they are for."""
    return {
        study.sample.regime.value: {
            "questions": len(study.sample.ids),
            "left_out": study.left_out,
            "right": int(study.sample.right.sum()),
            "model": study.best.name if study.best else None,
            "borders": {TOP: _point(study.point)} | {model.name: _point(model.point) for model in study.models},
        }
        for study in studies
    }


def proof_row(proof: Proof) -> dict[str, Any]:
    """One reading of the synthetic scores: its optimum, and what was found."""
    best, test = proof.optimum, proof.found.test
    return {
        "deviation": proof.scores.deviation,
        "answerable": proof.scores.answerable,
        "n": len(proof.found.sample.ids),
        "optimum": {
            "weak": best.weak,
            "wrong": best.wrong,
            "lost": best.lost,
            "limits_allowed": best.allowed,
            "least_lost": best.least_lost,
        },
        "found": _point(proof.found.point) | {"weak_by_chance": [proof.fresh_low, proof.fresh_high]},
        "test": {"wrong": test.wrong.value, "lost": test.lost.value},
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "weak": point.borders.weak,
        "normal": point.borders.normal if point.has_normal else None,
        "limits_met": point.met,
    }
