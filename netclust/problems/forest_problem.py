"""Supervised clustering by graphs on pair features: K forests and E links, for any learner of structures.

Examples are pair features (`netclust.structures.pairs`) with true labels; the joint features are the sum of psi over
the graph's pairs. Both problems take the same features and the same weights, so structures and learners vary
independently.

>>> from netclust.learners.perceptron import Lsp
>>> from netclust.structures.pairs import ComputedPairs
>>> x = ComputedPairs(np.array([[0.0], [0.2], [3.0], [3.1], [6.0]]))
>>> y = np.array([0, 0, 1, 1, 2])
>>> for problem in (ForestProblem(x.dimension), LinkProblem(x.dimension)):
...     w = Lsp().fit(problem, [(x, y)], epochs=20).last
...     print(forest_clusters(problem.predict(x, w)).tolist())
[0, 0, 1, 1, 2]
[0, 0, 1, 1, 2]

The threshold is at 0 for both, so psi should have a constant feature. On separable data LSP and LSPA end with every
training set clustered without error.

I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018; chapter 2,
losses (5.4) and (5.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.losses.edge_loss import ArcLoss, delta_f
from netclust.losses.forest_loss import ForestLoss, delta_yj_pairs
from netclust.problems.sparse_features import Change, row_difference, scores_within
from netclust.structures.forest import PairForest, best_forest, check_forest_labels, gold_forest
from netclust.structures.hashed_pairs import HashedPairs
from netclust.structures.links import LinkTree, arc_scores, best_links, gold_links, stored_arcs
from netclust.structures.pairs import PairFeatures, PairIndex, Vector
from netclust.structures.partition import Labels, PairScores
from netclust.structures.tree import Mask, best_tree

__all__ = ["ForestProblem", "LinkProblem", "forest_clusters"]


class CandidateLoss(Protocol):
    """An edge loss of `netclust.losses.edge_loss` that knows which arcs are candidates."""

    def __call__(self, y: NDArray[Any], *, candidates: Mask | None) -> ArcLoss:
        """Return the loss of every arc against y."""


def forest_clusters(h: PairForest | LinkTree) -> Labels:
    """Return the clustering that a structure stands for, numbered from 0 by first appearance."""
    return h.clusters()


@dataclass(frozen=True)
class ForestProblem:
    """The K structure with Delta_YJ: forests of pairs, a wrong pair costs r and a missing one 1."""

    dimension: int
    r: float = 0.1

    def joint_features(self, x: PairFeatures, h: PairForest) -> Vector:
        """Return the sum of the features of the forest's pairs."""
        return x.weighted_sum(h.chosen())

    def difference(self, x: PairFeatures, a: PairForest, b: PairForest) -> Change:
        """Return the features of a's pairs minus those of b's, as a sparse vector where x is hashed."""
        if isinstance(x, HashedPairs):
            return row_difference(x, a.edges, b.edges)
        return x.weighted_sum(a.chosen()) - x.weighted_sum(b.chosen())

    def predict(self, x: PairFeatures, w: Vector) -> PairForest:
        """Return Kruskal's forest of the pairs above 0."""
        return best_forest(_scores(self.dimension, x, w))

    def max_violating(self, x: PairFeatures, y: NDArray[Any], w: Vector, C: float) -> tuple[PairForest, float]:
        """Return the forest of the highest score plus C times its loss, and its loss."""
        loss = self._loss(y, x.items, x.index)
        scores = _scores(self.dimension, x, w)
        h = best_forest(PairScores(x.items, scores.values + C * loss.pairs, x.index))
        return h, loss.total(h)

    def gold(self, x: PairFeatures, y: NDArray[Any], w: Vector) -> PairForest:
        """Return a maximum spanning tree of every true cluster."""
        if isinstance(x, HashedPairs):
            check_forest_labels(y, x.items)
            _check_dimension(self.dimension, x, w)
            return gold_forest(PairScores(x.items, scores_within(x, y, w), x.index), y)
        return gold_forest(_scores(self.dimension, x, w), y)

    def loss(self, y: NDArray[Any], h: PairForest) -> float:
        """Return Delta_YJ of a forest."""
        return self._loss(y, h.items, h.index).total(h)

    def _loss(self, y: NDArray[Any], items: int, index: PairIndex | None) -> ForestLoss:
        check_forest_labels(y, items)
        return delta_yj_pairs(y, index, self.r)


@dataclass(frozen=True)
class LinkProblem:
    """The E structure on pairs: best earlier links, the root at 0; `functools.partial` sets the loss' r."""

    dimension: int
    edge_loss: CandidateLoss = delta_f

    def joint_features(self, x: PairFeatures, h: LinkTree) -> Vector:
        """Return the sum of the features of the links; root arcs have none."""
        return x.weighted_sum(h.chosen())

    def predict(self, x: PairFeatures, w: Vector) -> LinkTree:
        """Return the best earlier links above 0."""
        return best_links(_scores(self.dimension, x, w))

    def max_violating(self, x: PairFeatures, y: NDArray[Any], w: Vector, C: float) -> tuple[LinkTree, float]:
        """Return the tree of Algorithm 5 and its loss."""
        loss = self._loss(y, x.items, x.index)
        h = LinkTree(best_tree(arc_scores(_scores(self.dimension, x, w)) + C * loss.arcs), x.index)
        return h, loss.total(h.parents)

    def gold(self, x: PairFeatures, y: NDArray[Any], w: Vector) -> LinkTree:
        """Return the best links that induce y."""
        return gold_links(_scores(self.dimension, x, w), y)

    def loss(self, y: NDArray[Any], h: LinkTree) -> float:
        """Return the edge loss of a tree."""
        return self._loss(y, len(h.parents), h.index).total(h.parents)

    def _loss(self, y: NDArray[Any], items: int, index: PairIndex | None) -> ArcLoss:
        check_forest_labels(y, items)
        candidates = None if index is None else stored_arcs(items, index)
        return self.edge_loss(y, candidates=candidates)


def _scores(dimension: int, x: PairFeatures, w: Vector) -> PairScores:
    _check_dimension(dimension, x, w)
    return PairScores(x.items, x.scores(w), x.index)


def _check_dimension(dimension: int, x: PairFeatures, w: Vector) -> None:
    if x.dimension != dimension or np.shape(w) != (dimension,):
        raise InputError(
            f"{dimension} features a pair are expected, the example has {x.dimension}, and w has {np.size(w)} weights"
        )
