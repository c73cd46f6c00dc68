"""What the reranker is worth on questions that its fit hasn't seen: folds by topic, intervals, paired tests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eval.bundled.fit import FIRST, Fitted, first_right, fitted
from eval.bundled.lists import FUSED, List
from eval.calibrate.folds import dealt, parts
from eval.domain import Interval, Labels
from eval.statistics.bootstrap import difference_intervals, mean_intervals
from eval.statistics.clusters import Codes, Floats, codes
from eval.statistics.permutation import permutation_p

NOTHING = -10.0
"""The log-odds of a question without a lexeme, or without a candidate."""


@dataclass(frozen=True, slots=True, eq=False)
class Unseen:
    """By repeat and list (repeats, lists): whether one of the first five topics answers, and the top logit."""

    hits: Floats
    tops: Floats


@dataclass(frozen=True, slots=True)
class Row:
    """topic Hit@5 of one system on the answerable questions of one label file; the reranker's gain over it, and p."""

    dataset: str
    labels: Labels
    system: str
    n: int
    value: Interval
    gain: Interval | None
    p: float | None


@dataclass(frozen=True, slots=True)
class Abstained:
    """The share of one slice's questions that lie below a threshold; of those it finds, the share that doesn't."""

    dataset: str
    part: str
    n: int
    shares: tuple[float, ...]


def unseen(
    lists: Sequence[List], *, first: str, repeats: int, seed: int, progress: Callable[[str, int, int], None]
) -> Unseen:
    """Score every list by a fit on the other four of five folds, dealt by topic, anew for each repeat."""
    clusters = codes([one.cluster for one in lists])
    groups = [f"{one.dataset} {one.labels} {one.part}" for one in lists]
    rng = np.random.default_rng(seed)
    hits, tops = np.zeros((repeats, len(lists))), np.full((repeats, len(lists)), NOTHING)
    for repeat in range(repeats):
        for seen, left in parts(dealt(clusters, groups, rng)):
            fit = fitted([one for one, in_it in zip(lists, seen, strict=True) if in_it], first=first)
            for at in map(int, np.flatnonzero(left)):
                hits[repeat, at], tops[repeat, at] = _scored(lists[at], fit)
        progress("folds", repeat + 1, repeats)
    return Unseen(hits, tops)


def _scored(one: List, fit: Fitted) -> tuple[float, float]:
    if not len(one.pairs):
        return 0.0, NOTHING
    logits = fit.logits(one)
    rank = first_right(one, logits)
    return float(rank is not None and rank <= FIRST), float(logits.max())


def hit_rows(lists: Sequence[List], found: Unseen, *, seed: int) -> list[Row]:
    """topic Hit@5 of the reranker on unseen questions and of the others, each with its interval and paired test."""
    rows = []
    for (dataset, labels), members in _by_labels(lists).items():
        clusters = codes([lists[at].cluster for at in members])
        mine = found.hits[:, members].mean(axis=0)[:, None]
        rows.append(Row(dataset, labels, "reranked, unseen", len(members), _mean(mine, clusters, seed), None, None))
        for system in (FUSED, *(name for name in lists[members[0]].ranks if name != FUSED)):
            other = np.array([[_hit(lists[at].ranks, system)] for at in members])
            (gain,) = difference_intervals(mine, other, clusters, seed=seed)
            p = float(permutation_p(mine, other, clusters, seed=seed)[0])
            rows.append(Row(dataset, labels, system, len(members), _mean(other, clusters, seed), gain, p))
    return rows


def abstained(lists: Sequence[List], found: Unseen, thresholds: Sequence[float]) -> list[Abstained]:
    """By slice of the questions, how many the thresholds let go, those of answerable ones that are found apart."""
    rows = []
    questions = [at for at, one in enumerate(lists) if one.labels is Labels.QUESTIONS]
    for dataset in dict.fromkeys(lists[at].dataset for at in questions):
        here = [at for at in questions if lists[at].dataset == dataset]
        for part in dict.fromkeys(lists[at].part for at in here if not lists[at].answerable):
            members = [at for at in here if lists[at].part == part]
            below = tuple(float((found.tops[:, members] < border).mean()) for border in thresholds)
            rows.append(Abstained(dataset, part, len(members), below))
        members = [at for at in here if lists[at].answerable]
        hits = found.hits[:, members]
        kept = tuple(
            float((hits * (found.tops[:, members] >= border)).sum() / max(hits.sum(), 1.0)) for border in thresholds
        )
        rows.append(Abstained(dataset, "found and kept", len(members), kept))
    return rows


def _by_labels(lists: Sequence[List]) -> Mapping[tuple[str, Labels], list[int]]:
    found: dict[tuple[str, Labels], list[int]] = {}
    for at, one in enumerate(lists):
        if one.answerable:
            found.setdefault((one.dataset, one.labels), []).append(at)
    return found


def _hit(ranks: Mapping[str, int | None], system: str) -> float:
    rank = ranks.get(system)
    return float(rank is not None and rank <= FIRST)


def _mean(values: Floats, clusters: Codes, seed: int) -> Interval:
    return mean_intervals(values, clusters, seed=seed)[0]
