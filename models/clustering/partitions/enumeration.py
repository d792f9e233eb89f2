"""The best partition of a few items, by trying all: what every other search is measured by.

>>> from netclust.structures.partition import PairScores
>>> labels, value = best_partition(PairScores(3, np.array([1.0, -0.5, 0.2])))
>>> labels.tolist(), value
([0, 0, 1], 1.0)

There are Bell(m) partitions of m items: 203 of 6, 115,975 of 10.
"""

from __future__ import annotations

import numpy as np

from netclust.errors import InputError
from netclust.models.clustering.partitions.greedy import square_of
from netclust.structures.partition import Labels, PairScores, canonical_partition, check_partition_scores

__all__ = ["MOST_ITEMS", "best_partition"]

MOST_ITEMS = 10


def best_partition(scores: PairScores) -> tuple[Labels, float]:
    """The partition of the highest sum of scores within clusters, and that sum; more than ten items are refused."""
    from netclust.models.clustering.partitions.enumeration_kernels import enumerate_labels

    check_partition_scores(scores)
    if scores.items > MOST_ITEMS:
        raise InputError(
            f"{scores.items} items have too many partitions to try them all, at most {MOST_ITEMS} have not: "
            "use local search or branch and cut"
        )
    labels = np.zeros(scores.items, np.int64)
    enumerate_labels(square_of(scores), labels)
    return canonical_partition(labels), scores.within(labels)
