"""Max-margin Markov networks on chains as a `Problem`: x holds features of places [L, m], y and h their labels [L].

The weights are those of places (a row a label), of the first label, and of a label and its next one, in that order:

>>> problem = ChainProblem(labels=2, features=1)
>>> problem.dimension, problem.joint_features(np.array([[2.0], [5.0]]), np.array([1, 0])).tolist()
(8, [5.0, 2.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0])
>>> from netclust.learners.one_slack import OneSlack
>>> x = np.array([[1.0, 0.0], [0.1, 0.0], [0.0, 1.0]])  # the second place says little: its neighbours must
>>> fit = OneSlack(C=10.0, epsilon=0.01).fit(ChainProblem(2, 2), [(x, np.array([0, 0, 1]))])
>>> ChainProblem(2, 2).predict(x, fit.w).tolist(), fit.converged
([0, 0, 1], True)

The loss of a sequence is the percentage of its places with a wrong label (Hamming), so a learner's mean over sequences
counts every sequence alike, short ones too. With `places` set to the mean length of the training sequences, a wrong
label costs 100/places everywhere, and the mean is the percentage of all places.

Reference: B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University,
2004; chapters 3 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.chains.chain_inference import Labelling, best_chain, infer_violating_chain
from netclust.problems.base import Vector

__all__ = ["ChainExample", "ChainProblem", "ChainWeights", "Packed", "mean_chain_length"]

Features = NDArray[np.float64]
ChainExample = tuple[Features, Labelling]


@dataclass(frozen=True, eq=False)
class ChainWeights:
    """Views of one weight vector: node [K, m], start [K], edge [K, K]."""

    node: NDArray[np.float64]
    start: NDArray[np.float64]
    edge: NDArray[np.float64]

    @classmethod
    def of(cls, w: Vector, labels: int, features: int, *, transitions: bool = True) -> ChainWeights:
        """The parts of a vector; without transitions those of start and edge are 0."""
        at = labels * features
        if not transitions:
            return cls(w[:at].reshape(labels, features), np.zeros(labels), np.zeros((labels, labels)))
        return cls(
            w[:at].reshape(labels, features), w[at : at + labels], w[at + labels :].reshape(labels, labels)
        )  # fmt: skip

    def scores(self, x: Features, offsets: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Of the labels of every place by itself, the first label's weight included."""
        found = np.asarray(x @ self.node.T, np.float64)
        first = np.zeros(min(len(x), 1), np.int64) if offsets is None else offsets[:-1][np.diff(offsets) > 0]
        found[first] += self.start
        return found


class Packed(NamedTuple):
    """Several sequences as one example, for many short ones: a call of the oracle costs the same for all of them.

    Its loss is that of all its labels together: set `ChainProblem.places`, so that it does not matter who is packed
    with whom.
    """

    features: Features
    offsets: NDArray[np.int64]


@dataclass(frozen=True)
class ChainProblem:
    """Labels of sequences; without `transitions` every place is decided by itself: a multi-class SVM."""

    labels: int
    features: int
    transitions: bool = True
    places: float = 0.0
    """What 100 percent is: 0 for the places of each sequence, or the mean length of all."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.labels < 2 or self.features < 1 or not 0 <= self.places < np.inf:
            raise InputError(f"{self.labels} labels, {self.features} features: chains need 2 labels and 1 feature")

    @property
    def dimension(self) -> int:
        """The number of weights."""
        own = self.labels * self.features
        return own + self.labels * (1 + self.labels) if self.transitions else own

    def weights(self, w: Vector) -> ChainWeights:
        """The parts of a weight vector."""
        return ChainWeights.of(w, self.labels, self.features, transitions=self.transitions)

    def joint_features(self, x: Features | Packed, h: Labelling) -> Vector:
        """Sums over places of their features by label, and counts of neighbouring labels."""
        made = np.zeros(self.dimension)
        self._add(made, x, h, 1.0)
        return made

    def difference(self, x: Features | Packed, a: Labelling, b: Labelling) -> Vector:
        """Phi(x, a) - Phi(x, b)."""
        made = np.zeros(self.dimension)
        self._add(made, x, a, 1.0)
        self._add(made, x, b, -1.0)
        return made

    def predict(self, x: Features | Packed, w: Vector) -> Labelling:
        """The best labels (Viterbi)."""
        parts, (own, offsets) = self.weights(w), self._checked(x)
        return best_chain(parts.scores(own, offsets), parts.edge, offsets)

    def max_violating(self, x: Features | Packed, y: Labelling, w: Vector, C: float) -> tuple[Labelling, float]:
        """The labels of the highest score + C * loss, exactly: a wrong label's price adds to the score of its place."""
        parts, (own, offsets) = self.weights(w), self._checked(x)
        price = np.full(len(y), C * self.price(len(y)))
        h = infer_violating_chain(parts.scores(own, offsets), parts.edge, y, price, offsets)
        return h, self.loss(y, h)

    def gold(self, x: Features | Packed, y: Labelling, w: Vector) -> Labelling:
        """The labels themselves: nothing is hidden."""
        return y

    def loss(self, y: Labelling, h: Labelling) -> float:
        """The percentage of wrong labels."""
        return self.price(len(y)) * int((y != h).sum())

    def price(self, length: int) -> float:
        """What one wrong label of a sequence costs."""
        return 100.0 / (self.places or max(length, 1))

    def _add(self, made: Vector, x: Features | Packed, h: Labelling, by: float) -> None:
        from netclust.models.chains.chain_kernels import add_chain_features

        parts, (own, offsets) = self.weights(made), self._checked(x)
        labels = np.ascontiguousarray(h, np.int64)
        add_chain_features(own, offsets, labels, by, parts.node, parts.start, parts.edge)

    def _checked(self, x: Features | Packed) -> Packed:
        given = x if isinstance(x, Packed) else Packed(x, np.array([0, len(x)], np.int64))
        if given.features.ndim != 2 or given.features.shape[1] != self.features:
            shape = list(given.features.shape)
            raise InputError(f"features of a sequence have shape {shape}, expected [places, {self.features}]")
        return Packed(np.ascontiguousarray(given.features, np.float64), given.offsets)


def mean_chain_length(examples: Any) -> float:
    """Return the mean length of the sequences of (x, y) examples, for `ChainProblem.places`.

    >>> mean_chain_length([(np.zeros((4, 1)), np.zeros(4, int)), (np.zeros((2, 1)), np.zeros(2, int))])
    3.0
    """
    return float(np.mean([len(y) for _, y in examples]))
