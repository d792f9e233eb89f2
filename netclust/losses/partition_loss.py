"""Losses of a partition against the true one, in percent: pairwise (1 - Rand index) and MITRE (1 - MUC F1).

>>> y = np.array([0, 0, 0, 1, 1])
>>> z = np.array([0, 0, 1, 1, 1])
>>> round(pairwise_loss(y, z), 3), round(mitre_loss(y, z), 3)
(40.0, 33.333)
>>> pairwise_loss(y, np.arange(5)), mitre_loss(y, np.arange(5))
(40.0, 100.0)

T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009; section 3.2, with the
MITRE loss as 100 (1 - F1), which the thesis' own numbers need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.structures.pairs import PairIndex, Vector, pair_count, same_cluster
from netclust.structures.partition import PairScores

__all__ = [
    "CLUSTERING_LOSSES",
    "ClusteringLoss",
    "Contingency",
    "mitre_loss",
    "pairs_within",
    "pairwise_loss",
    "partition_cells",
    "partition_contingency",
    "relaxed_pairwise_loss",
    "with_pairwise_loss",
]

ClusteringLoss = Literal["pairwise", "mitre"]


def pairwise_loss(y: NDArray[Any], z: NDArray[Any]) -> float:
    """Delta_P: the percentage of pairs on which two partitions disagree; 0 of a set without pairs."""
    total = pair_count(len(y))
    if not total:
        return 0.0
    both = pairs_within(partition_cells(y, z))
    return 100.0 * (pairs_within(_sizes(y)) + pairs_within(_sizes(z)) - 2 * both) / total


def mitre_loss(y: NDArray[Any], z: NDArray[Any]) -> float:
    """Delta_M = 100 (1 - 2 (m - cells) / (2m - |y| - |z|)): missing and wrong links; 0 if both are all singletons."""
    m = len(y)
    most = 2 * m - len(_sizes(y)) - len(_sizes(z))
    if not most:
        return 0.0
    return 100.0 * (1 - 2 * (m - len(partition_cells(y, z))) / most)


CLUSTERING_LOSSES: dict[str, Callable[[NDArray[Any], NDArray[Any]], float]] = {
    "pairwise": pairwise_loss,
    "mitre": mitre_loss,
}
"""The losses by name."""


def relaxed_pairwise_loss(y: NDArray[Any], together: Vector, index: PairIndex | None = None) -> float:
    """Delta_P of a relaxed partition: the mean distance of togetherness from the truth, over all pairs of the set."""
    total = pair_count(len(y))
    if not total:
        return 0.0
    same = same_cluster(y, index)
    not_stored = pairs_within(_sizes(y)) - int(same.sum())  # these are apart
    return float(100.0 * (np.abs(same - together).sum() + not_stored) / total)


def with_pairwise_loss(scores: PairScores, y: NDArray[Any], weight: float = 1.0) -> PairScores:
    """Scores whose best partition is the max-violating one: score + weight * Delta_P, up to a constant.

    A pair that is apart in y gains 100 / pairs by being joined, one that is together loses it. Pairs that are not
    stored stay as they are: a search over stored pairs does not see their part of the loss.
    """
    step = weight * 100.0 / max(pair_count(scores.items), 1)
    values = scores.values + np.where(same_cluster(y, scores.index), -step, step)
    return PairScores(scores.items, values, scores.index)


@dataclass(frozen=True, eq=False)
class Contingency:
    """What two partitions share: the sizes of the non-empty cells, and of the clusters; every measure needs no more.

    Cell c is the intersection of cluster `row[c]` of the first with cluster `column[c]` of the second.
    """

    cells: NDArray[np.int64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]


def partition_contingency(y: NDArray[Any], z: NDArray[Any]) -> Contingency:
    """Return the table of two partitions.

    >>> table = partition_contingency(np.array([0, 0, 0, 1, 1]), np.array([5, 5, 2, 2, 2]))
    >>> table.cells.tolist(), table.row.tolist(), table.column.tolist()
    ([1, 2, 2], [0, 0, 1], [0, 1, 0])
    """
    _, a, rows = np.unique(y, return_inverse=True, return_counts=True)
    _, b, columns = np.unique(z, return_inverse=True, return_counts=True)
    key, sizes = np.unique(a.ravel() * max(len(columns), 1) + b.ravel(), return_counts=True)
    row, column = np.divmod(key, max(len(columns), 1))
    return Contingency(sizes, row, column, rows, columns)


def partition_cells(y: NDArray[Any], z: NDArray[Any]) -> NDArray[np.int64]:
    """Return the sizes of the non-empty intersections of two partitions' clusters."""
    return partition_contingency(y, z).cells


def pairs_within(sizes: NDArray[np.int64]) -> int:
    """How many pairs clusters of these sizes hold."""
    return int((sizes * (sizes - 1)).sum()) // 2


def _sizes(y: NDArray[Any]) -> NDArray[np.int64]:
    return np.asarray(np.unique(y, return_counts=True)[1], np.int64)
