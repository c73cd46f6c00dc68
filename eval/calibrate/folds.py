"""Repeated grouped cross-validation: no question is scored by a fit that has seen its topic."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from eval.calibrate.regression import fit
from eval.calibrate.sample import Sample, Truths
from eval.statistics.clusters import Codes, Floats
from service.errors import Rejected

FOLDS = 5
REPEATS = 20

Folds = NDArray[np.intp]
"""The fold of each question: shape (repeats, questions)."""


def deal(sample: Sample, *, seed: int, repeats: int = REPEATS) -> Folds:
    """Deal the clusters to FOLDS folds, each kind of question evenly, anew for each repeat.

    Raises Rejected where fewer than FOLDS clusters were right, or fewer were not: nothing could be learned.
    """
    for kind, truths in (("right", sample.right), ("not right", ~sample.right)):
        held = len(np.unique(sample.clusters[truths]))
        if held < FOLDS:
            raise Rejected(
                f"calibrate: {held} topics with a question whose list is {kind} in mode {sample.regime}, "
                f"at least {FOLDS} are needed"
            )
    rng = np.random.default_rng(seed)
    return np.stack([dealt(sample.clusters, sample.groups, rng) for _ in range(repeats)])


def dealt(clusters: Codes, groups: Sequence[str], rng: np.random.Generator) -> NDArray[np.intp]:
    """One deal: a fold for each question, the same for all of a cluster; each group spread evenly."""
    names, firsts, members = np.unique(clusters, return_index=True, return_inverse=True)
    kinds = np.asarray(groups)[firsts]
    fold_of = np.empty(len(names), dtype=np.intp)
    start = 0
    for kind in np.unique(kinds):
        shuffled = rng.permutation(np.flatnonzero(kinds == kind))
        fold_of[shuffled] = (start + np.arange(len(shuffled))) % FOLDS
        start += len(shuffled)
    return fold_of[members]


def parts(fold_of: NDArray[np.intp]) -> Iterator[tuple[Truths, Truths]]:
    """The questions of each fit, and those it hasn't seen."""
    for fold in range(FOLDS):
        yield fold_of != fold, fold_of == fold


def held_out(features: Floats, truths: Truths, usable: Truths, folds: Folds) -> Floats:
    """The log-odds of each question by the fit that hasn't seen its topic: shape (repeats, questions).

    Fits see the `usable` questions only; the others get minus infinity.
    """
    scores = np.full(folds.shape, -np.inf)
    for repeat, fold_of in enumerate(folds):
        for seen, unseen in parts(fold_of):
            if (unseen & usable).any():
                fitted = fit(features[seen & usable], truths[seen & usable])
                scores[repeat, unseen & usable] = fitted.scores(features[unseen & usable])
    return scores
