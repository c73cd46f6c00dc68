"""Two systems on the same cases: how much every measure differs, how surely, and which cases make the difference."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from eval.domain import Answered, Case, Interval, Retrieved
from eval.measures.answers import OUTCOMES, outcome
from eval.measures.retrieval import Grain, first_ranks
from eval.measures.table import PerCase, slices
from eval.statistics.bootstrap import RESAMPLES, difference_intervals
from eval.statistics.clusters import codes, totals
from eval.statistics.permutation import ROUNDS, holm, permutation_p
from eval.statistics.power import detectable_effect


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure of two systems, over the cases of a slice that count for either: `n`.

    `interval` is of after - before; `corrected` is `p` after Holm over the family of comparisons (its own when alone);
    `detectable` is the smallest true difference this comparison would likely have found. NaN: nothing is known.
    """

    labels: str
    before: str
    after: str
    slice: str
    measure: str
    n: int
    value_before: float
    value_after: float
    interval: Interval
    p: float
    corrected: float
    detectable: float


@dataclass(frozen=True, slots=True)
class Change:
    """A case that two systems treat differently: ranks of what answers (None: not found), or outcomes."""

    labels: str
    before: str
    after: str
    id: str
    slice: str
    then: int | str | None
    now: int | str | None


def differences(
    labels: str,
    before: tuple[str, PerCase],
    after: tuple[str, PerCase],
    *,
    part: str,
    seed: int,
    resamples: int = RESAMPLES,
    rounds: int = ROUNDS,
) -> list[Difference]:
    """Every measure of two named systems over one slice, both tables being of the same units in the same order."""
    (name_before, first), (name_after, second) = before, after
    members = dict(slices(first.units)).get(part)
    if members is None:
        return []
    clusters = codes([unit.cluster for unit, kept in zip(first.units, members, strict=True) if kept])
    one = np.column_stack([column[members] for column in first.values.values()])
    other = np.column_stack([second.values[name][members] for name in first.values])
    intervals = difference_intervals(other, one, clusters, seed=seed, resamples=resamples)
    p_values = permutation_p(other, one, clusters, seed=seed, rounds=rounds)
    effects = detectable_effect(other, one, clusters)
    values = totals(one, clusters).means(), totals(other, clusters).means()
    counted = (~(np.isnan(one) & np.isnan(other))).sum(axis=0)
    return [
        Difference(
            labels=labels,
            before=name_before,
            after=name_after,
            slice=part,
            measure=name,
            n=int(counted[at]),
            value_before=float(values[0][at]),
            value_after=float(values[1][at]),
            interval=intervals[at],
            p=float(p_values[at]),
            corrected=float(p_values[at]),
            detectable=float(effects[at]),
        )
        for at, name in enumerate(first.values)
        if counted[at]
    ]


def corrected(found: Iterable[Difference]) -> list[Difference]:
    """The same with their p-values corrected; a family is what is compared by one measure, over systems and files.

    Measures are no family: they nearly say the same, and the one that decides is to be named beforehand.
    """
    listed = list(found)
    families: dict[str, list[int]] = {}
    for at, one in enumerate(listed):
        families.setdefault(one.measure, []).append(at)
    for places in families.values():
        for at, p in zip(places, holm([listed[at].p for at in places]), strict=True):
            listed[at] = replace(listed[at], corrected=p)
    return listed


def changed_ranks(
    cases: Sequence[Case],
    before: tuple[str, Mapping[str, Retrieved]],
    after: tuple[str, Mapping[str, Retrieved]],
) -> list[Change]:
    """The cases whose first topic that answers has another rank, those first whose reciprocal rank changed most."""
    then, now = (first_ranks(cases, found, Grain.TOPIC) for _, found in (before, after))
    by_id = {case.id: case for case in cases}
    moved = [name for name in then if then[name] != now[name]]
    moved.sort(key=lambda name: -abs(_reciprocal(then[name]) - _reciprocal(now[name])))
    return [
        Change(by_id[name].labels, before[0], after[0], name, by_id[name].slice, then[name], now[name])
        for name in moved
    ]


def changed_outcomes(
    cases: Sequence[Case], before: tuple[str, Mapping[str, Answered]], after: tuple[str, Mapping[str, Answered]]
) -> list[Change]:
    """The cases with another outcome, those first that are now answered wrong, then those that no longer were."""
    found = []
    for case in cases:
        then, now = (outcome(case, answers.get(case.id)) for _, answers in (before, after))
        if then != now:
            found.append(Change(case.labels, before[0], after[0], case.id, case.slice, then, now))
    order = {name: at for at, name in enumerate(("answered wrong", *OUTCOMES))}
    return sorted(
        found, key=lambda one: (one.now != "answered wrong", one.then != "answered wrong", order[str(one.now)])
    )


def _reciprocal(rank: int | None) -> float:
    return 1 / rank if rank else 0.0
