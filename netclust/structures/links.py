"""The E structure on pair scores: every item links to its best earlier item, or to the root where none scores above 0.

The root scores 0 and has no features: a constant feature of the pairs is the threshold, as for the K structure, and the
same weights serve both. Every stored pair (i, j) is the arc from i to the later j.

>>> scores = PairScores(4, np.array([0.6, -0.4, 0.2, 0.3, -0.5, -0.1]))
>>> h = best_links(scores)
>>> h.parents.tolist(), h.clusters().tolist(), round(h.sum(scores.values), 9)
([0, 1, 2, 1], [0, 0, 0, 0], 1.1)
>>> gold_links(scores, np.array([1, 2, 2, 1])).parents.tolist()
[0, 0, 2, 1]

Where only some pairs are stored, the root is right for an item that has no earlier member of its cluster among its
pairs. Memory is quadratic in items, as that of `netclust.structures.tree`, which does the work.

I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018; chapter 2
and Algorithm 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.structures.forest import check_forest_labels, check_forest_scores
from netclust.structures.pair_numbers import numbers_of, pair_indicator
from netclust.structures.pairs import Indices, PairIndex, Vector, all_pairs
from netclust.structures.partition import PairScores
from netclust.structures.tree import Mask, Matrix, Parents, best_tree, candidate_arcs, gold_arcs, tree_clusters

__all__ = ["LinkTree", "arc_scores", "best_links", "gold_links", "stored_arcs"]


@dataclass(frozen=True, eq=False)
class LinkTree:
    """A tree over the stored pairs: `parents[j]` is 0 for the root, i + 1 for item i, as in `structures.tree`."""

    parents: Parents
    index: PairIndex | None = None

    @property
    def edges(self) -> Indices:
        """The numbers of the stored pairs that are links, in the order of their later items."""
        later = np.flatnonzero(self.parents)
        return numbers_of(len(self.parents), self.index, self.parents[later] - 1, later)

    def clusters(self) -> NDArray[np.int64]:
        """The cluster of each item, numbered from 0 by first appearance."""
        return tree_clusters(self.parents)

    def chosen(self) -> Vector:
        """1 for every stored pair that is a link, 0 for the others."""
        return pair_indicator(len(self.parents), self.index, self.edges)

    def sum(self, values: Vector) -> float:
        """The sum of the pairs' values over the links: the score, from scores."""
        return float(values[self.edges].sum())


def best_links(scores: PairScores) -> LinkTree:
    """The tree of the highest sum; of equal links the root, then the oldest."""
    return LinkTree(best_tree(arc_scores(scores)), scores.index)


def gold_links(scores: PairScores, y: NDArray[Any]) -> LinkTree:
    """h*, the best tree that induces y."""
    check_forest_labels(y, scores.items)
    right = gold_arcs(y, stored_arcs(scores.items, scores.index))
    return LinkTree(best_tree(np.where(right, arc_scores(scores), -np.inf)), scores.index)


def arc_scores(scores: PairScores) -> Matrix:
    """Scores of pairs as those of arcs, the root at 0: arc (i, j) at `[j, i + 1]`, -inf where no pair is stored."""
    check_forest_scores(scores)
    left, right = all_pairs(scores.items) if scores.index is None else scores.index
    matrix = np.full((scores.items, scores.items + 1), -np.inf)
    matrix[:, 0] = 0.0
    matrix[right, left + 1] = scores.values
    return matrix


def stored_arcs(items: int, index: PairIndex | None) -> Mask:
    """The arcs that are candidates: from the root, and those of stored pairs."""
    if index is None:
        return candidate_arcs(items)
    arcs = np.zeros((items, items + 1), np.bool_)
    arcs[:, 0] = True
    arcs[index.right, index.left + 1] = True
    return arcs
