"""Learning the loss: how the features of an output make up the measure that it is judged by.

>>> psi = np.array([[50.0, 80.0], [60.0, 60.0], [90.0, 70.0], [100.0, 100.0]])
>>> target = np.array([65.0, 60.0, 80.0, 100.0])  # the mean of both
>>> loss = fit_loss(psi, target, "least-squares")
>>> loss.v.round(6).tolist(), abs(round(loss.bias, 6))
([0.5, 0.5], 0.0)
>>> mse, scc = measure_loss(loss, psi, target)
>>> round(mse, 6), round(scc, 6)
(0.0, 1.0)
>>> seen = RegressionSet()
>>> seen.add(psi[0], 65.0), seen.add(psi[0], 65.0), len(seen)
(True, False, 1)

Features and measure are in percent. The examples are a set: an output that comes again and again does not count more,
so that a learner that has found its trees also ends with one loss. Nothing here knows what the features are.

I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018; section 3.2
and Algorithm 4, with the step of normalised least mean squares: the printed step of 1 diverges where |Psi|^2 > 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.losses.learned_loss import LearnedLoss
from netclust.structures.pairs import Vector

__all__ = ["OnlineRegressor", "RegressionSet", "Regressor", "fit_loss", "measure_loss"]

Rows = NDArray[np.float64]

Regressor = Literal["least-squares", "svr"]

PERCENT = 100.0
"""The constant feature of the online regressor: as large as the others, or the bias would hardly move."""


INSENSITIVE = 0.1
"""Errors of the SVM regression below this, in percent, cost nothing."""


class RegressionSet:
    """X^rho: the features and measures of outputs, each pair once, in the order in which they came."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[Vector, float]] = {}

    def __len__(self) -> int:
        """How many different pairs there are."""
        return len(self._seen)

    def add(self, psi: Vector, target: float) -> bool:
        """Add a pair; returns whether it is new."""
        key = np.append(psi, target).tobytes()
        if key in self._seen:
            return False
        self._seen[key] = (np.array(psi, np.float64), float(target))
        return True

    def update(self, others: Iterable[tuple[Vector, float]]) -> None:
        """Add many pairs."""
        for psi, target in others:
            self.add(psi, target)

    @property
    def features(self) -> Rows:
        """One row of features for each pair."""
        return np.array([psi for psi, _ in self._seen.values()])

    @property
    def targets(self) -> Vector:
        """The measure of each pair."""
        return np.array([target for _, target in self._seen.values()])


def fit_loss(psi: Rows, target: Vector, method: Regressor = "svr", C: float = 1.0) -> LearnedLoss:
    """Learn the estimate of the measure: by a linear SVM regression with slack weight C, or by least squares.

    The features go together, so least squares needs hundreds of examples where the SVM needs some dozens; with many
    examples both find the same.
    """
    psi, target = _checked(psi, target)
    centre = psi.mean(axis=0)
    spread = psi.std(axis=0)
    spread[spread <= 1e-12 * np.maximum(np.abs(centre), 1.0)] = 1.0
    standard = (psi - centre) / spread
    middle = float(target.mean())
    if method == "least-squares":
        # the shortest solution: features that are the same on all examples share the weight
        v = np.linalg.lstsq(standard, target - middle, rcond=None)[0] / spread
        return LearnedLoss(v, middle - float(v @ centre))
    if method != "svr":
        raise InputError(f"the regressor is {method!r}: use 'least-squares' or 'svr'")
    from netclust.foundation.optional import require_optional

    svm = require_optional("sklearn.svm", "the regressor 'svr'")
    # squared slacks and the primal solver: no random order of examples, so the same loss each time
    svr = svm.LinearSVR(
        epsilon=INSENSITIVE, C=C, loss="squared_epsilon_insensitive", dual=False, tol=1e-6, max_iter=10_000
    )
    svr.fit(standard, target - middle)
    v = np.asarray(svr.coef_, np.float64).ravel() / spread
    return LearnedLoss(v, middle + float(np.ravel(svr.intercept_)[0]) - float(v @ centre))


def measure_loss(loss: LearnedLoss, psi: Rows, target: Vector) -> tuple[float, float]:
    """Return the mean squared error of the estimate, and its squared (Pearson) correlation with the measure.

    The correlation is 0 where estimate or measure is constant.
    """
    psi, target = _checked(psi, target)
    estimate = psi @ loss.v + loss.bias
    a, b = estimate - estimate.mean(), target - target.mean()
    size = float((a @ a) * (b @ b))
    return float(((estimate - target) ** 2).mean()), float((a @ b) ** 2) / size if size > 0 else 0.0


class OnlineRegressor:
    """Algorithm 4's regressor: a step on every example, until an epoch has a larger error than the one before.

    It then goes back to the weights before that epoch and stays there.

    >>> online = OnlineRegressor(2, eta=0.5)
    >>> for _ in range(4):
    ...     print(round(online.learn(np.array([60.0, 80.0]), 70.0), 3))
    70.0
    35.0
    17.5
    8.75
    """

    def __init__(self, features: int, eta: float = 0.1) -> None:
        """Start with no weights; a step removes the share `eta` of an example's error."""
        if not 0 < eta < 2:
            raise InputError(f"eta is {eta}: steps are stable between 0 and 2")
        self.eta = eta
        self.frozen = False
        self.errors: list[float] = []
        self._v = np.zeros(features + 1)
        self._kept = self._v.copy()
        self._error = 0.0

    @property
    def loss(self) -> LearnedLoss:
        """The loss as it is now."""
        return LearnedLoss(self._v[:-1].copy(), PERCENT * float(self._v[-1]))

    def learn(self, psi: Vector, target: float) -> float:
        """Make a step towards an example, unless frozen; returns the error before it."""
        row = np.append(psi, PERCENT)
        if row.shape != self._v.shape:
            raise InputError(f"there are {len(psi)} features, {len(self._v) - 1} are expected")
        error = float(target - self._v @ row)
        if not self.frozen:
            self._error += abs(error)
            self._v += self.eta * error / float(row @ row) * row
        return error

    def end_epoch(self) -> None:
        """Keep the weights if the sum of errors did not rise, else restore the kept ones and freeze."""
        if self.frozen:
            return
        if self.errors and self._error > self.errors[-1]:
            self.frozen = True
            self._v = self._kept.copy()
        else:
            self._kept = self._v.copy()
        self.errors.append(self._error)
        self._error = 0.0


def _checked(psi: Rows, target: Vector) -> tuple[Rows, Vector]:
    psi, target = np.asarray(psi, np.float64), np.asarray(target, np.float64)
    if psi.ndim != 2 or target.shape != (len(psi),) or not len(psi):
        raise InputError(f"{len(target)} measures need a row of features each, got {list(psi.shape)}")
    if not (np.isfinite(psi).all() and np.isfinite(target).all()):
        raise InputError("a feature or measure is not a finite number")
    return psi, target
