"""A study drawn for a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from eval.calibrate.points import Limits, Point
from eval.calibrate.rows import effects, shares
from eval.calibrate.sample import Regime
from eval.calibrate.study import TOP, Study
from eval.calibrate.synthetic import Proof
from eval.domain import Interval

TITLES = {
    Regime.RERANKED: "all parts at work",
    Regime.KEYWORD: "embedder down: keywords alone",
    Regime.RERANKER_DOWN: "reranker down: cosines alone",
}


def show_study(study: Study, limits: Limits, console: Console) -> None:
    """Print what the scores of one regime tell, what coverage costs, and the point chosen with its effect."""
    sample = study.sample
    console.rule(f"{sample.regime}: {TITLES[sample.regime]}")
    console.print(
        f"{len(sample.ids)} questions, {int(sample.right.sum())} with a topic that answers among the sources"
        + (f"; {study.left_out} left out, since they were searched in another mode" if study.left_out else ""),
        highlight=False,
    )
    _separations(study, console)
    _risks(study, console)
    _effects(study, console)
    _zones(study, console)
    for line in verdict(study, limits):
        console.print(line, highlight=False)


def verdict(study: Study, limits: Limits) -> list[str]:
    """What was decided, in words."""
    chosen = study.best
    score, point = (chosen.name, chosen.point) if chosen else (TOP, study.point)
    lines = [f"Chosen: {score}, {_borders(study, point)}."]
    if not point.met:
        lines.append(
            f"No border keeps wrong <= {limits.max_wrong:.0%} and lost <= {limits.max_lost:.0%} together: "
            "this one keeps lost, and its answers carry the caution."
        )
    if study.sample.regime is not Regime.RERANKER_DOWN and not point.has_normal:
        lines.append(f"Nothing is normal: no border has wrong <= {limits.max_wrong_normal:.1%} above it.")
    if study.models and not chosen and study.sample.regime is Regime.RERANKED:
        lines.append("No model is clearly better than the top score: the profile carries thresholds alone.")
    return lines


def show_proofs(proofs: Sequence[Proof], limits: Limits, console: Console) -> None:
    """Print what was found on synthetic scores beside the optimum of their densities, a column a reading."""
    title = f"Synthetic scores: wrong <= {limits.max_wrong:.0%}, lost <= {limits.max_lost:.0%}"
    heads = [f"N(2.5 | -4, sd {one.scores.deviation:.2f}), {one.scores.answerable:.0%} answerable" for one in proofs]
    table = _table(title, "", *heads)
    best, tests = [one.optimum for one in proofs], [one.found.test for one in proofs]
    rows: dict[str, list[str]] = {
        "questions": [f"{len(one.found.sample.ids):,}" for one in proofs],
        "do the scores allow both limits": ["yes" if one.allowed else "no" for one in best],
        "least lost at that wrong": [f"{one.least_lost:.1%}" for one in best],
        "best border": [f"{one.weak:+.2f}" for one in best],
        "border found": [f"{one.found.point.borders.weak:+.2f}" for one in proofs],
        "where chance puts it (95 %)": [f"{one.fresh_low:+.2f} to {one.fresh_high:+.2f}" for one in proofs],
        "wrong, best": [f"{one.wrong:.1%}" for one in best],
        "wrong, test": [_share(one.wrong) for one in tests],
        "lost, best": [f"{one.lost:.1%}" for one in best],
        "lost, test": [_share(one.lost) for one in tests],
        "wrong among normal, test": [_share(one.wrong_normal) for one in tests],
    }
    for name, cells in rows.items():
        table.add_row(name, *cells)
    console.print(table)


def _separations(study: Study, console: Console) -> None:
    table = _table("Area under the ROC curve, held out by topic", "contrast", "n", "score", "area", "against the first")
    last = ""
    for one in study.separations:
        head = (one.contrast, f"{one.positives} / {one.negatives}") if one.contrast != last else ("", "")
        table.add_row(*head, one.score, _number(one.area), _number(one.gain, sign="+") if one.gain else "")
        last = one.contrast
    console.print(table)


def _risks(study: Study, console: Console) -> None:
    if not study.models:
        return
    table = _table(
        "Wrong among the answers, by share of right answers kept", "kept", "top score", "model", "", "paired"
    )
    for model in study.models:
        for gain in model.gains:
            kept = "mean" if gain.coverage is None else f"{gain.coverage:.0%}"
            table.add_row(
                kept, _share(gain.threshold), model.name, _share(gain.model), _share(gain.difference, sign="+")
            )
        table.add_section()
    console.print(table)


def _effects(study: Study, console: Console) -> None:
    names = [name for name, _ in shares(study.test)]
    table = _table("Effect of the borders (test: chosen without the question's topic)", "score", "questions", *names)
    for score, part, one in effects(study):
        table.add_row(score, part, *(_share(interval) for _, interval in shares(one)))
    console.print(table)


def _zones(study: Study, console: Console) -> None:
    test = study.best.test if study.best else study.test
    table = _table("Zones on the test part, by kind of question", "kind", "n", "abstain", "weak", "normal")
    for kind, (n, *zones) in sorted(test.zones.items()):
        table.add_row(kind, str(n), *(f"{share:.0%}" for share in zones))
    console.print(table)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="dim")
    for at, name in enumerate(columns):
        table.add_column(name, justify="left" if at == 0 else "right")
    return table


def _borders(study: Study, point: Point) -> str:
    if study.sample.regime is Regime.RERANKER_DOWN:
        return f"cosine floor {point.borders.weak:g}"
    normal = f"normal from {point.borders.normal:+g}" if point.has_normal else "never normal"
    return f"weak from {point.borders.weak:+g}, {normal}"


def _number(interval: Interval, sign: str = "") -> str:
    return _spelled(interval, f"{sign}.3f")


def _share(interval: Interval, sign: str = "") -> str:
    return _spelled(interval, f"{sign}.1%")


def _spelled(interval: Interval, form: str) -> str:
    if interval.value != interval.value:
        return "-"
    if interval.low != interval.low:
        return f"{interval.value:{form}}"
    return f"{interval.value:{form}} ({interval.low:{form}} to {interval.high:{form}})"
