"""Rankings, alone or with clusters whose members stand together: the best, the max-violating and the best right one.

A ranking is the numbers of its items, best first. Its score is the sum of position weight (1, 1/2, 1/3, ...) times item
score, so the best one is sorted; with a loss for average precision, what is free is how right and wrong ones are mixed:

>>> scores, y = np.array([2.0, 1.5, 1.0, 0.5, -0.5]), np.array([1, 0, 1, 0, 0])
>>> best_ranking(scores).tolist(), gold_ranking(scores, y).tolist()
([0, 1, 2, 3, 4], [0, 2, 1, 3, 4])
>>> violating_ranking(scores, y, C=2.0).tolist(), violating_ranking(scores, y, C=2.0, search="greedy").tolist()
([1, 0, 3, 4, 2], [1, 0, 2, 3, 4])

A joint object has a forest of pairs as well. Members of one cluster stand next to each other, so a pair is worth taking
where its score is more than what the ranking loses by it (Algorithm 7):

>>> pairs = PairScores(3, np.array([0.4, 0.5, 0.0]))
>>> found = best_joint(np.array([10.0, 5.0, 0.0]), pairs)
>>> found.order.tolist(), found.clusters().tolist(), round(found.value(np.array([10.0, 5.0, 0.0]), pairs), 6)
([0, 1, 2], [0, 0, 0], 13.4)

The printed algorithm passes over the pairs once and finds 12.9 here, so it is not exact as its proposition says; passes
are repeated until nothing changes (`passes=1` for the printed one).

Reference: I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018;
chapter 6, Algorithms 7 and 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.structures.forest import PairForest, check_forest_labels
from netclust.structures.pair_numbers import pairs_at
from netclust.structures.pairs import Indices, PairIndex, Vector, same_cluster
from netclust.structures.partition import Labels, PairScores, canonical_partition, check_partition_scores

__all__ = [
    "Joint",
    "Order",
    "Search",
    "best_joint",
    "best_ranking",
    "find_max_rank",
    "gold_joint",
    "gold_ranking",
    "position_weights",
    "ranking_score",
    "violating_joint",
    "violating_ranking",
]

Order = Indices
Search = Literal["exact", "greedy"]

PASSES = 100
"""At most so many passes over the pairs; each takes one at least, and two or three are usual."""


def position_weights(items: int) -> Vector:
    """1, 1/2, 1/3, ..."""
    return np.asarray(1.0 / np.arange(1, items + 1), np.float64)


def ranking_score(scores: Vector, order: Order) -> float:
    """The sum of position weight times score."""
    return float(position_weights(len(order)) @ scores[order])


def best_ranking(scores: Vector) -> Order:
    """Sorted by score; of equal items the first comes first."""
    return np.argsort(-_checked(scores), kind="stable")


def gold_ranking(scores: Vector, y: NDArray[Any]) -> Order:
    """h*: right items sorted by score, then the wrong ones."""
    order = best_ranking(scores)
    check_forest_labels(y, len(scores))
    right = np.asarray(y)[order] > 0
    return np.concatenate([order[right], order[~right]])


def violating_ranking(scores: Vector, y: NDArray[Any], C: float, search: Search = "exact") -> Order:
    """h^: the ranking of the highest score + C * (1 - average precision), or what the printed search finds for it."""
    from netclust.kernels.structured.rankings import place_exactly, place_greedily

    order = gold_ranking(scores, y)
    count = int((np.asarray(y) > 0).sum())
    right, wrong = order[:count], order[count:]
    is_right = np.empty(len(order), np.bool_)
    place = place_exactly if search == "exact" else place_greedily
    place(scores[right], scores[wrong], position_weights(len(order)), float(C), is_right)
    found = np.empty_like(order)
    found[is_right], found[~is_right] = right, wrong
    return found


@dataclass(frozen=True, eq=False)
class Joint:
    """A ranking and a forest whose components stand together in it."""

    order: Order
    edges: Indices
    """Numbers of the stored pairs, in the order in which they were taken."""
    index: PairIndex | None = None

    @property
    def forest(self) -> PairForest:
        """The edges as a forest of the K structure."""
        return PairForest(len(self.order), self.edges, self.index)

    def clusters(self) -> Labels:
        """The cluster of each item, numbered from 0 by first appearance."""
        return self.forest.clusters()

    def value(self, scores: Vector, pairs: PairScores) -> float:
        """The score of the ranking and that of the forest."""
        return ranking_score(scores, self.order) + self.forest.sum(pairs.values)


def best_joint(scores: Vector, pairs: PairScores, *, passes: int = PASSES) -> Joint:
    """Algorithm 7: what is predicted."""
    y = np.zeros(len(scores), np.int64)
    return _join(scores, pairs, y, 0.0, best_ranking(scores), pairs.values > 0, False, passes)


def violating_joint(scores: Vector, pairs: PairScores, y: NDArray[Any], C: float, *, passes: int = PASSES) -> Joint:
    """The same with C times the loss of average precision in the ranking's score."""
    base = violating_ranking(scores, y, C)
    return _join(scores, pairs, y, C, base, pairs.values > 0, False, passes)


def gold_joint(scores: Vector, pairs: PairScores, y: NDArray[Any], *, passes: int = PASSES) -> Joint:
    """The best joint object without an error: clusters of right items, then clusters of wrong ones."""
    right = (np.asarray(y) > 0).astype(np.int64)
    allowed = (pairs.values > 0) & same_cluster(right, pairs.index)
    return _join(scores, pairs, y, 0.0, gold_ranking(scores, y), allowed, True, passes)


def find_max_rank(
    scores: Vector, clusters: NDArray[Any], *, y: NDArray[Any] | None = None, C: float = 0.0
) -> tuple[Order, float]:
    """The best ranking that keeps clusters together, and its score (with C times its loss, where y is given).

    >>> order, value = find_max_rank(np.array([3.0, 2.5, 2.0, 1.0, 0.5]), np.array([0, 1, 1, 2, 0]))
    >>> order.tolist(), round(value, 6)
    ([1, 2, 0, 4, 3], 4.825)
    """
    from netclust.kernels.structured.rankings import find_max_rank as search

    check_forest_labels(clusters, len(scores))
    right = np.zeros(len(scores), np.int64) if y is None else (np.asarray(y) > 0).astype(np.int64)
    base = best_ranking(scores) if y is None else violating_ranking(scores, right, C)
    names = canonical_partition(np.asarray(clusters))
    parent = np.array([int(np.flatnonzero(names == name)[0]) for name in names], np.int64)
    order = np.empty(len(scores), np.int64)
    gain = search(
        parent, base, scores, right, position_weights(len(scores)), float(C if right.any() else 0), False, order
    )
    return order, float(gain) + (C if right.any() else 0.0)


def _join(
    scores: Vector,
    pairs: PairScores,
    y: NDArray[Any],
    C: float,
    base: Order,
    allowed: NDArray[np.bool_],
    gold: bool,
    passes: int,
) -> Joint:
    from netclust.kernels.structured.rankings import join_ranking

    check_partition_scores(pairs)
    if pairs.items != len(scores):
        raise InputError(f"{len(scores)} items to rank, but pairs of {pairs.items}")
    numbers = np.flatnonzero(allowed)
    numbers = numbers[np.argsort(-pairs.values[numbers], kind="stable")]
    left, right = pairs_at(pairs.items, pairs.index, numbers)
    n = len(scores)
    parent, order, taken = np.arange(n), np.empty(n, np.int64), np.empty(max(n - 1, 0), np.int64)
    labels = (np.asarray(y) > 0).astype(np.int64)
    count = join_ranking(
        left, right, pairs.values[numbers], base, scores, labels, position_weights(n), float(C), gold, passes,
        parent, order, taken,
    )  # fmt: skip
    return Joint(order, numbers[taken[:count]], pairs.index)


def _checked(scores: Vector) -> Vector:
    if scores.ndim != 1 or not np.isfinite(scores).all():
        raise InputError("items are ranked by one finite score each: check the weights and the features")
    return scores
