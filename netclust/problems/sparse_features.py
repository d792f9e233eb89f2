"""Differences of joint features that are 0 almost everywhere: an update costs what it touches, not what w is long.

>>> pairs = HashedPairs.of_rows(3, 8, [1, 2], [[0, 5], [1, 1], [0, 1, 5]])
>>> change = row_difference(pairs, np.array([0, 1]), np.array([2]))
>>> change.slots.tolist(), change.values.tolist()  # slots 0 and 5 cancel
([1], [1.0])
>>> w = np.zeros(8)
>>> add_sparse(w, change, 2.0)
>>> w.tolist(), sparse_dot(w, change)
([0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 2.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.structures.hashed_pairs import HashedPairs
from netclust.structures.pairs import Indices, Vector, same_cluster

__all__ = [
    "Change",
    "SparseVector",
    "add_sparse",
    "in_full",
    "row_difference",
    "scores_within",
    "sparse_dot",
    "squared_length",
    "times",
]


@dataclass(frozen=True, eq=False)
class SparseVector:
    """A vector that is 0 but for `values` at `slots`, which rise."""

    slots: NDArray[np.int64]
    values: Vector


Change = Vector | SparseVector
"""What is added to w."""


def sparse_dot(w: Vector, change: Change) -> float:
    """Return `w . change`."""
    return float(w[change.slots] @ change.values) if isinstance(change, SparseVector) else float(w @ change)


def in_full(change: Change, dimension: int) -> Vector:
    """The change as a vector of all slots."""
    if not isinstance(change, SparseVector):
        return change
    full = np.zeros(dimension)
    full[change.slots] = change.values
    return full


def squared_length(change: Change) -> float:
    """`change . change`."""
    values = change.values if isinstance(change, SparseVector) else change
    return float(values @ values)


def times(change: Change, factor: float) -> Change:
    """`factor * change`."""
    if isinstance(change, SparseVector):
        return SparseVector(change.slots, factor * change.values)
    return factor * change


def add_sparse(total: Vector, change: Change, factor: float = 1.0) -> None:
    """Compute `total += factor * change`, in place."""
    if isinstance(change, SparseVector):
        total[change.slots] += factor * change.values  # slots are there once, so that none is lost
    else:
        total += factor * change


def scores_within(pairs: HashedPairs, y: NDArray[Any], w: Vector) -> Vector:
    """`w . psi` of the pairs within true clusters, 0 for the others: all that the search for a gold structure reads."""
    from netclust.kernels.structured.sparse_rows import score_some_rows

    scores = np.zeros(len(pairs.at) - 1)
    within = np.flatnonzero(same_cluster(y, pairs.index))
    score_some_rows(pairs.at, pairs.slots, within, np.ascontiguousarray(w, np.float64), scores)
    return scores


def row_difference(pairs: HashedPairs, plus: Indices, minus: Indices) -> SparseVector:
    """The features of some rows minus those of others; rows that are in both cost next to nothing."""
    from netclust.kernels.structured.sparse_rows import signed_slots, sum_signed_slots

    plus, minus = np.setdiff1d(plus, minus, assume_unique=True), np.setdiff1d(minus, plus, assume_unique=True)
    rows = np.concatenate([plus, minus])
    keys = np.empty(int((pairs.at[rows + 1] - pairs.at[rows]).sum()), np.int64)
    signed_slots(pairs.at, pairs.slots, plus, minus, keys)
    keys.sort()
    slots, values = np.empty(len(keys), np.int64), np.empty(len(keys))
    n = sum_signed_slots(keys, slots, values)
    return SparseVector(slots[:n], values[:n])
