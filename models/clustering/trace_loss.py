"""The loss of k-means: how far two clusterings into k span different spaces, in percent.

Clusters count alike, whatever their size. All points in one cluster cost 100 (k - 1) / k; chance is a little less.

>>> y = np.array([0, 0, 1, 1])
>>> trace_loss(y, np.array([1, 1, 0, 0])), trace_loss(y, np.zeros(4, int)), trace_loss(y, np.array([0, 1, 0, 1]))
(0.0, 50.0, 50.0)

T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009; section 4.3.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.clustering.kmeans_search import Clustering, kmeans_indicator
from netclust.structures.partition import canonical_partition

__all__ = ["trace_loss"]

ROUNDING = 1e-9


def trace_loss(y: NDArray[Any], h: Clustering, k: int | None = None) -> float:
    """100 (1 - ||Y'H||^2 / k) of labels y against labels or a relaxed H [m, k]; k is the number of true clusters.

    It says something only where both have k clusters: the identity as H has loss 0 against anything.
    """
    if len(y) != len(h):
        raise InputError(f"two clusterings of the same items are compared, not of {len(y)} and {len(h)}")
    if not len(y):
        return 0.0
    shared = (
        _shared(canonical_partition(y), canonical_partition(h))
        if h.ndim == 1
        else float(np.sum((kmeans_indicator(y).T @ h) ** 2))
    )
    true = len(np.unique(y)) if k is None else k
    loss = 100.0 * (1.0 - shared / true)
    return loss if loss > ROUNDING else 0.0  # exactly 0 for the truth, also if it comes relaxed


def _shared(y: NDArray[np.int64], z: NDArray[np.int64]) -> float:
    """The sum over pairs of clusters of |c & c'|^2 / (|c| |c'|)."""
    rows, columns = int(y.max()) + 1, int(z.max()) + 1
    both = np.bincount(y * columns + z, minlength=rows * columns).reshape(rows, columns)
    return float((both**2 / np.outer(both.sum(axis=1), both.sum(axis=0))).sum())
