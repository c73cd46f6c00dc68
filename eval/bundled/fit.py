"""The two fits of the bundled reranker: which candidate of a list answers, and whether the list does."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from eval.bundled.lists import List
from eval.calibrate.regression import Linear, fit
from eval.domain import Labels
from eval.statistics.clusters import Floats

L2 = 10.0
"""Weight of half the squared norm of the pairs' weights, in standard deviations: fixed beforehand."""

OF_LABELS = {Labels.QUESTIONS: 1.0, Labels.LINKS: 0.3, Labels.ACCEPTED: 0.1}
"""What a list counts for: links and accepted answers are many, and are no questions to the bot."""

OTHER_DATASETS = 0.5
"""What lists of other datasets than the first count for beside it."""

FIRST = 5
"""A list answers when one of its first five topics does."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Weights of the pairs' features, and log-odds that a list answers from its own."""

    pairs: Floats
    whole: Linear

    def logits(self, one: List) -> Floats:
        """As the reranker gives them: the best has the list's log-odds, the others lie below it."""
        order = one.pairs @ self.pairs
        logits: Floats = self.whole.scores(one.whole[None])[0] + order - order.max()
        return logits


def fitted(lists: Sequence[List], *, first: str) -> Fitted:
    """Fit to these lists; `first` is the dataset that counts in full."""
    pairs = conditional([one for one in lists if one.right.any()], first=first)
    judged = [one for one in lists if one.labels is Labels.QUESTIONS and len(one.pairs)]
    answers = np.array([one.right[_best(one.pairs @ pairs)].any() for one in judged])
    return Fitted(pairs, fit(np.array([one.whole for one in judged]), answers))


def conditional(lists: Sequence[List], *, first: str) -> Floats:
    """Conditional logistic regression within lists that hold a right candidate: weights of the features as measured.

    Minimises -sum(weight * log(probability that softmax gives to the right ones)) + L2 / 2 * |w|², features centred in
    their list and divided by their deviation over all lists.
    """
    centred = [one.pairs - one.pairs.mean(axis=0) for one in lists]
    scale = np.std(np.vstack(centred), axis=0)
    scale[scale < 1e-12] = np.inf  # what never varies gets no weight
    inputs = [rows / scale for rows in centred]
    counts = [OF_LABELS[one.labels] * (1.0 if one.dataset == first else OTHER_DATASETS) for one in lists]

    def loss(weights: Floats) -> tuple[float, Floats]:
        value, slope = float(weights @ weights) * L2 / 2, L2 * weights
        for rows, one, count in zip(inputs, lists, counts, strict=True):
            shares = np.exp(rows @ weights - (rows @ weights).max())
            shares /= shares.sum()
            right = shares * one.right
            value -= count * float(np.log(right.sum()))
            slope = slope - count * (rows.T @ (right / right.sum() - shares))
        return value, slope

    found = minimize(loss, np.zeros(len(scale)), jac=True, method="L-BFGS-B").x
    weights: Floats = found / scale
    return weights


def _best(order: Floats) -> NDArray[np.intp]:
    return np.argsort(-order, kind="stable")[:FIRST]


def first_right(one: List, order: Floats) -> int | None:
    """The rank, from 1, of the first right candidate in descending order; None where there is none."""
    ranked = one.right[np.argsort(-order, kind="stable")]
    return int(np.argmax(ranked)) + 1 if ranked.any() else None
