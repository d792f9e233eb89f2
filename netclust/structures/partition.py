"""A partition of a set, the scores of its pairs, and a relaxed partition in which pairs are partly together.

A partition is an array of labels; `canonical_partition` numbers them by first appearance, so that equal partitions are
equal arrays. Correlation clustering looks for the partition of the highest sum of scores within clusters:

>>> scores = PairScores(3, np.array([1.0, -0.5, 0.2]))  # pairs (0, 1), (0, 2), (1, 2)
>>> scores.within(np.array([5, 5, 3])), scores.within(np.array([0, 0, 0])).__round__(9)
(1.0, 0.7)
>>> canonical_partition(np.array([5, 5, 3])).tolist()
[0, 0, 1]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.structures.pairs import PairIndex, Vector, pair_count, same_cluster

__all__ = [
    "Labels",
    "PairScores",
    "RelaxedPartition",
    "canonical_partition",
    "check_partition_scores",
    "partition_square",
]

Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PairScores:
    """A score of every stored pair (`index` as in `netclust.structures.pairs`); pairs that are left out score 0."""

    items: int
    values: Vector
    index: PairIndex | None = None

    def within(self, labels: NDArray[Any]) -> float:
        """The objective of correlation clustering: the sum over pairs that are in one cluster."""
        return float(self.values[same_cluster(labels, self.index)].sum())

    def matrix(self) -> NDArray[np.float64]:
        """The scores as a symmetric matrix with a zero diagonal."""
        return partition_square(self.values, self.items, self.index)


@dataclass(frozen=True, eq=False)
class RelaxedPartition:
    """How far every stored pair is together, 0 to 1, and the objective's value there: a bound on any partition's."""

    together: Vector
    value: float
    index: PairIndex | None = field(default=None, kw_only=True)

    def integral(self, tolerance: float = 1e-6) -> bool:
        """Whether every pair is either together or apart."""
        return bool(np.minimum(self.together, 1 - self.together).max(initial=0.0) <= tolerance)


def check_partition_scores(scores: PairScores) -> None:
    """Refuse scores that are not one a stored pair, or no finite numbers."""
    expected = pair_count(scores.items) if scores.index is None else len(scores.index.left)
    if scores.values.shape != (expected,):
        raise InputError(f"{scores.items} items need {expected} pair scores, not {scores.values.shape}")
    if not np.isfinite(scores.values).all():
        at = int(np.flatnonzero(~np.isfinite(scores.values))[0])
        raise InputError(f"pair score {at} is {scores.values[at]}: every score must be a finite number")


def partition_square(values: Vector, items: int, index: PairIndex | None = None) -> NDArray[np.float64]:
    """Return values of pairs as a symmetric matrix with a zero diagonal."""
    matrix = np.zeros((items, items))
    left, right = np.triu_indices(items, 1) if index is None else index
    matrix[left, right] = matrix[right, left] = values
    return matrix


def canonical_partition(labels: NDArray[Any]) -> Labels:
    """Return labels numbered from 0 by first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse.ravel()].astype(np.int64)
