"""Plots of a study as SVG files: risk-coverage, reliability, and the scores by kind of question."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eval.calibrate.points import Limits
from eval.calibrate.reliability import Reliability
from eval.calibrate.risk import COVERAGES, Curve
from eval.calibrate.sample import NOT_FOUND, RIGHT
from eval.calibrate.study import TOP, Study
from eval.statistics.clusters import Floats

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Told apart with every kind of colour blindness (Okabe and Ito, Color Universal Design, 2008)."""
DASHES = ("-", "--", ":")
SIZE = (6.4, 4.4)


def draw_study(study: Study, limits: Limits, folder: Path) -> list[Path]:
    """Draw the plots of one regime into the folder, the same bytes for the same study."""
    regime = study.sample.regime
    with matplotlib.rc_context({"svg.hashsalt": "ariane", "axes.spines.top": False, "axes.spines.right": False}):
        return [
            _write(_risk(study, limits), folder / f"{regime}-risk-coverage.svg"),
            _write(_reliabilities(study), folder / f"{regime}-reliability.svg"),
            _write(_scores(study), folder / f"{regime}-scores.svg"),
        ]


def _risk(study: Study, limits: Limits) -> Figure:
    figure, axes = _axes("right answers kept", "wrong among the answers")
    curves: Mapping[str, Curve] = {TOP: study.curve} | {model.name: model.curve for model in study.models}
    for at, (name, curve) in enumerate(curves.items()):
        axes.plot(COVERAGES, curve.wrong, DASHES[at], color=COLOURS[at], label=name, linewidth=2)
        if at == 0:
            low, high = np.nanquantile(curve.drawn, [0.025, 0.975], axis=0)
            axes.fill_between(COVERAGES, low, high, color=COLOURS[at], alpha=0.15, linewidth=0, label="95 % interval")
    chosen = study.best.test if study.best else study.test
    axes.errorbar(
        [1 - chosen.lost.value],
        [chosen.wrong.value],
        xerr=[[chosen.lost.high - chosen.lost.value], [chosen.lost.value - chosen.lost.low]],
        yerr=[[chosen.wrong.value - chosen.wrong.low], [chosen.wrong.high - chosen.wrong.value]],
        fmt="o",
        color="black",
        capsize=3,
        label="chosen, on unseen topics",
    )
    axes.axhline(limits.max_wrong, color="0.5", linewidth=1, linestyle="-.", label="stated limits")
    axes.axvline(1 - limits.max_lost, color="0.5", linewidth=1, linestyle="-.")
    axes.set(xlim=(0, 1.02), ylim=(0, 1))
    _legend(axes)
    return figure


def _reliabilities(study: Study) -> Figure:
    figure, axes = _axes("chance claimed, held out", "share that was right")
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    told: Mapping[str, Reliability] = {TOP: study.reliability} | {one.name: one.reliability for one in study.models}
    for at, (name, one) in enumerate(told.items()):
        x = np.array([bin_.claimed for bin_ in one.bins])
        ends = np.array([(bin_.right.value, bin_.right.low, bin_.right.high) for bin_ in one.bins]).T
        axes.errorbar(
            x,
            ends[0],
            yerr=np.abs(ends[1:] - ends[0]),
            fmt="osD"[at] + DASHES[at],
            color=COLOURS[at],
            capsize=2,
            linewidth=1,
            markersize=5,
            label=f"{name} (Brier {one.brier:.3f})",
        )
        if at == 0:
            for claimed, bin_ in zip(x, one.bins, strict=True):
                axes.annotate(f"{bin_.n}", (claimed, 0.0), ha="center", va="bottom", fontsize=8, color=COLOURS[at])
    axes.set(xlim=(0, 1), ylim=(0, 1.02))
    _legend(axes, title=f"overall share claimed always: Brier {study.reliability.brier_of_share:.3f}")
    return figure


def _scores(study: Study) -> Figure:
    sample, groups = study.sample, np.array(study.sample.groups)
    kinds = [kind for kind in (RIGHT, NOT_FOUND) if kind in sample.groups]
    kinds += sorted(set(sample.groups) - set(kinds))
    figure, axes = _axes(TOP, "")
    for at, kind in enumerate(kinds):
        values = sample.top[(groups == kind) & sample.listed]
        spread = _spread(len(values))
        axes.plot(values, -at + spread, "o", color=COLOURS[at % len(COLOURS)], alpha=0.6, markersize=4)
    axes.axvline(study.point.borders.weak, color="black", linewidth=1, linestyle="--", label="weak from here")
    if study.point.has_normal:
        axes.axvline(study.point.borders.normal, color="black", linewidth=1, label="normal from here")
    names = [f"{kind}\n({int((groups == kind).sum())})" for kind in kinds]
    axes.set_yticks([-float(at) for at in range(len(kinds))], names)
    axes.set_ylim(-len(kinds) + 0.5, 0.9)
    axes.legend(loc="upper right", frameon=False, fontsize=9, ncols=2)
    return figure


def _spread(n: int) -> Floats:
    """Heights that keep dots apart: a low-discrepancy sequence, the same every time."""
    return (np.arange(n, dtype=np.float64) * 0.618034 % 1.0 - 0.5) * 0.6


def _axes(x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlabel=x, ylabel=y)
    axes.grid(alpha=0.25)
    return figure, axes


def _legend(axes: Axes, title: str | None = None) -> None:
    axes.legend(loc="upper left", frameon=False, fontsize=9, title=title, title_fontsize=9)


def _write(figure: Figure, path: Path) -> Path:
    figure.savefig(path, metadata={"Date": None})
    return path
