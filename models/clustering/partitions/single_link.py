"""Thresholded single link: items are together that a chain of good pairs connects.

>>> from netclust.structures.partition import PairScores
>>> single_link(PairScores(3, np.array([1.0, -5.0, 0.2]))).tolist()
[0, 0, 0]
>>> single_link(PairScores(3, np.array([1.0, -5.0, 0.2])), threshold=0.5).tolist()
[0, 0, 1]

T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009; Algorithm 8.
"""

from __future__ import annotations

import numpy as np

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.structures.pairs import all_pairs
from netclust.structures.partition import Labels, PairScores, canonical_partition, check_partition_scores

__all__ = ["single_link"]


def single_link(scores: PairScores, threshold: float = 0.0) -> Labels:
    """The connected components of the pairs that score `threshold` or more; pairs that are not stored link nothing."""
    check_partition_scores(scores)
    if not np.isfinite(threshold):
        raise InputError(f"threshold {threshold} is not a finite number")
    sparse = require_optional("scipy.sparse", "single link")
    graph = require_optional("scipy.sparse.csgraph", "single link")
    links = np.flatnonzero(scores.values >= threshold)
    left, right = all_pairs(scores.items) if scores.index is None else scores.index
    shape = (scores.items, scores.items)
    linked = sparse.coo_array((np.ones(len(links)), (left[links], right[links])), shape=shape)
    if not scores.items:
        return np.zeros(0, np.int64)
    return canonical_partition(graph.connected_components(linked, directed=False)[1])
