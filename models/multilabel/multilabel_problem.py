"""Multi-label models as a structured task: a fully connected binary network over the labels, with learned potentials.

theta_u = w_u . x and one weight a pair of labels, J_uv, the same for every row. An example is a block of rows: its
features are means over the rows, its loss the mean share of wrong labels in percent (an open label is half wrong). A
whole training set as one example makes `OneSlack` the one-slack program over all rows, with one batched search an
iteration, so that is how they are trained:

>>> from netclust.learners.one_slack import OneSlack
>>> X = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
>>> Y = np.array([[1, 0], [1, 1], [0, 1]], np.uint8)
>>> problem = MultilabelProblem(labels=2, features=2)
>>> fit = OneSlack(C=1000.0, epsilon=0.01).fit(problem, [(LabelRows(X), Y)])
>>> found = problem.predict(LabelRows(X), fit.w)
>>> found.labels.tolist(), problem.loss(Y, found)
([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], 0.0)

`oracle` finds the most violated labelling in training, `predictor` the best one: any search of
`netclust.models.multilabel.binary_network`. Relaxed ones (lp, cut) put their halves into the constraints.

T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009, chapter 5; T. Finley and
T. Joachims, "Training structural SVMs when exact inference is intractable", ICML 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.multilabel.binary_network import (
    METHODS,
    Inference,
    Labelling,
    binary_network_value,
    infer,
    infer_degraded,
)

__all__ = ["LabelRows", "MultilabelProblem", "hamming", "hamming_rows"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Labels = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class LabelRows:
    """The features of some rows: an array [n, m], or a CSR matrix of scipy, which is never made dense."""

    features: Any

    def __post_init__(self) -> None:
        """Refuse what is no matrix."""
        if getattr(self.features, "ndim", 0) != 2:
            raise InputError("features are a matrix, a row an example and a column a feature")

    def __len__(self) -> int:
        """How many rows there are."""
        return int(self.features.shape[0])

    def take(self, rows: NDArray[np.int64]) -> LabelRows:
        """Some of the rows."""
        return LabelRows(self.features[rows])


@dataclass(frozen=True)
class MultilabelProblem:
    """Weights are those of label 0, of label 1, ..., then of the pairs u < v in row order (not where `edges` is off).

    With `rho` the oracle is the exact search made worse (`infer_degraded`), and `oracle` is not used.
    """

    labels: int
    features: int
    oracle: Inference = "exact"
    predictor: Inference = "exact"
    edges: bool = True
    rho: float | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.labels < 1 or self.features < 1:
            raise InputError(f"{self.labels} labels and {self.features} features: both are at least 1")
        for name in (self.oracle, self.predictor):
            if name not in METHODS:
                raise InputError(f"inference {name!r} is not known: it is one of {', '.join(METHODS)}")

    @property
    def dimension(self) -> int:
        """Labels times features, and the pairs."""
        pairs = self.labels * (self.labels - 1) // 2 if self.edges else 0
        return self.labels * self.features + pairs

    def theta(self, x: LabelRows, w: Vector) -> Matrix:
        """What switching a label on is worth by itself: [rows, labels]."""
        if x.features.shape[1] != self.features:
            raise InputError(f"rows have {x.features.shape[1]} features, the model {self.features}")
        weights = w[: self.labels * self.features].reshape(self.labels, self.features)
        return np.ascontiguousarray(x.features @ weights.T, np.float64)

    def pair(self, w: Vector) -> Matrix:
        """What two labels together are worth besides: symmetric, [labels, labels]."""
        pair = np.zeros((self.labels, self.labels))
        if self.edges:
            pair[np.triu_indices(self.labels, 1)] = w[self.labels * self.features :]
        return pair + pair.T

    def scores(self, x: LabelRows, h: Labelling, w: Vector) -> Vector:
        """f of every row: their mean is `w . joint_features(x, h)`."""
        return binary_network_value(self.theta(x, w), self.pair(w), h.labels)

    def joint_features(self, x: LabelRows, h: Labelling) -> Vector:
        """The mean over rows of y_u x for every u, then of y_uv."""
        if not len(x):
            raise InputError("a block of rows is empty")
        alone = np.asarray(x.features.T @ h.labels).T.ravel()
        return np.asarray(np.concatenate([alone, h.pair_sums()] if self.edges else [alone])) / len(x)

    def predict(self, x: LabelRows, w: Vector) -> Labelling:
        """The labels that the predictor finds; without edges, by the sign of theta."""
        return self.predict_by(x, w, self.predictor)

    def predict_by(self, x: LabelRows, w: Vector, method: Inference) -> Labelling:
        """The labels that another search finds with the same weights."""
        return self._search(self.theta(x, w), w, method)

    def max_violating(self, x: LabelRows, y: Labels, w: Vector, C: float) -> tuple[Labelling, float]:
        """What the oracle finds for f + C * loss, and its loss."""
        y = self.checked(x, y)
        theta = self.theta(x, w) + C * 100 / self.labels * (1.0 - 2.0 * y)
        if self.rho is None:
            h = self._search(theta, w, self.oracle)
        else:
            h = infer_degraded(theta, self.pair(w), self.rho, C * 100 / self.labels * y.sum(axis=1, dtype=np.float64))
        return h, self.loss(y, h)

    def gold(self, x: LabelRows, y: Labels, w: Vector) -> Labelling:
        """The true labels: nothing is latent."""
        return Labelling(self.checked(x, y).astype(np.float64), np.zeros((self.labels, self.labels), np.bool_))

    def loss(self, y: Labels, h: Labelling) -> float:
        """The mean share of wrong labels, in percent; an open one is half wrong."""
        return hamming(y, h.labels)

    def checked(self, x: LabelRows, y: Labels) -> Labels:
        """The true labels, if they fit the rows."""
        if y.shape != (len(x), self.labels):
            raise InputError(f"labels have shape {y.shape}, expected {(len(x), self.labels)}: a row an example")
        return y

    def _search(self, theta: Matrix, w: Vector, method: Inference) -> Labelling:
        if self.edges:
            return infer(theta, self.pair(w), method)
        return Labelling((theta > 0).astype(np.float64), np.zeros((self.labels, self.labels), np.bool_))


def hamming(y: NDArray[Any], found: Matrix) -> float:
    """The mean share of wrong labels in percent.

    >>> hamming(np.array([[1, 0], [1, 1]]), np.array([[1.0, 0.5], [0.0, 1.0]]))
    37.5
    """
    return float(hamming_rows(y, found).mean())


def hamming_rows(y: NDArray[Any], found: Matrix) -> Vector:
    """The share of wrong labels of every row, in percent."""
    return np.asarray(100 * np.abs(np.asarray(y, np.float64) - found).mean(axis=1))
