"""Logistic regression with an L2 penalty, on features that it standardises itself."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from eval.calibrate.sample import Truths
from eval.statistics.clusters import Floats

L2 = 1.0
"""Weight of half the squared norm against the summed log-loss, weights in standard deviations: fixed beforehand."""


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """Log-odds: `bias` + features @ `weights`, features as they are measured."""

    bias: float
    weights: Floats

    def scores(self, features: Floats) -> Floats:
        return features @ self.weights + self.bias


def fit(features: Floats, truths: Truths, *, l2: float = L2) -> Linear:
    """Fit to (questions, features) of which some are true and some are not; the bias isn't penalised.

    Minimises sum(log(1 + exp(-±z))) + l2 / 2 * |w|², means and deviations taken from these questions alone. A feature
    that never varies gets no weight.
    """
    means, deviations = features.mean(axis=0), features.std(axis=0)
    varies = deviations > 1e-12
    scale = np.where(varies, deviations, 1.0)
    inputs = np.hstack([np.ones((len(features), 1)), np.where(varies, (features - means) / scale, 0.0)])
    targets = truths.astype(np.float64)
    penalty = np.full(inputs.shape[1], l2)
    penalty[0] = 0.0

    def loss(weights: Floats) -> float:
        odds = inputs @ weights
        return float(np.logaddexp(0.0, odds).sum() - odds @ targets + penalty @ weights**2 / 2)

    def slope(weights: Floats) -> Floats:
        steepest: Floats = inputs.T @ (expit(inputs @ weights) - targets) + penalty * weights
        return steepest

    def curvature(weights: Floats) -> Floats:
        chances = expit(inputs @ weights)
        bent: Floats = (inputs.T * (chances * (1.0 - chances))) @ inputs + np.diag(penalty)
        return bent

    start = np.zeros(inputs.shape[1])
    found = minimize(loss, start, method="trust-exact", jac=slope, hess=curvature, options={"gtol": 1e-6}).x
    weights = np.where(varies, found[1:] / scale, 0.0)
    return Linear(float(found[0] - means @ weights), weights)
