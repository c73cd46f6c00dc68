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
    standard = np.where(varies, (features - means) / scale, 0.0)
    targets = truths.astype(np.float64)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        bias, weights = parameters[0], parameters[1:]
        odds = standard @ weights + bias
        missed = expit(odds) - targets
        value = np.logaddexp(0.0, odds).sum() - odds @ targets + l2 / 2 * weights @ weights
        return float(value), np.concatenate(([missed.sum()], standard.T @ missed + l2 * weights))

    found = minimize(loss, np.zeros(features.shape[1] + 1), jac=True, method="L-BFGS-B", options={"gtol": 1e-7})
    weights = np.where(varies, found.x[1:] / scale, 0.0)
    return Linear(float(found.x[0] - means @ weights), weights)
