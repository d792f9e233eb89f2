"""Ranking as a `Problem`: SR ranks a query's items, JSRC ranks and clusters them at once.

>>> from netclust.learners.perceptron import Lsp
>>> from netclust.structures.pairs import ComputedPairs
>>> items = np.array([[1.0, 0.2], [0.9, 0.8], [0.1, 0.7]])  # three items of one query, two features each
>>> query, y = RankQuery(items), np.array([0, 1, 0])
>>> problem = RankingProblem(2)
>>> fitted = Lsp().fit(problem, [(query, y)], epochs=10, C=1.0)
>>> problem.predict(query, fitted.averaged).tolist()
[1, 0, 2]

The joint model has weights of items and, behind them, weights of pairs. Algorithm 8 makes two steps an example, one for
either part; they are examples of their own here (`both_steps`), so that the perceptron is the shared one:

>>> pairs = ComputedPairs(items)
>>> joint = JointProblem(2, pairs.dimension)
>>> examples = both_steps([(RankQuery(items, pairs), y)])
>>> fitted = Lsp().fit(joint, examples, epochs=10, C=1.0)
>>> joint.predict(examples[0][0], fitted.averaged).order.tolist(), fitted.steps
([1, 0, 2], 20)

Reference: I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018;
chapter 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netclust.models.ranking.ranking_loss import delta_ap
from netclust.problems.base import Vector
from netclust.structures.forest import gold_forest
from netclust.structures.pairs import PairFeatures, same_cluster
from netclust.structures.partition import PairScores
from netclust.structures.rankings import (
    Joint,
    Order,
    Search,
    best_joint,
    best_ranking,
    gold_joint,
    gold_ranking,
    position_weights,
    violating_joint,
    violating_ranking,
)

__all__ = ["HalfStep", "JointProblem", "RankQuery", "RankingProblem", "both_steps"]

Relevance = NDArray[np.int64]
Part = Literal["ranking", "clustering"]


@dataclass(frozen=True, eq=False)
class RankQuery:
    """The items of a query: features of each with the query, and of pairs of them."""

    items: NDArray[np.float64]
    pairs: PairFeatures | None = None


@dataclass(frozen=True)
class RankingProblem:
    """SR: x has items, y says which are right, h is a ranking; the loss is 1 - average precision."""

    dimension: int
    search: Search = "exact"
    """How h^ is found: exactly, or by the printed greedy search."""

    def joint_features(self, x: RankQuery, h: Order) -> Vector:
        """Return the items' features, weighted by position."""
        return np.asarray(position_weights(len(h)) @ x.items[h], np.float64)

    def predict(self, x: RankQuery, w: Vector) -> Order:
        """Return the items sorted by score."""
        return best_ranking(x.items @ w)

    def max_violating(self, x: RankQuery, y: Relevance, w: Vector, C: float) -> tuple[Order, float]:
        """Return the ranking of the highest score and loss, and its loss."""
        h = violating_ranking(x.items @ w, y, C, self.search)
        return h, delta_ap(y[h])

    def gold(self, x: RankQuery, y: Relevance, w: Vector) -> Order:
        """Return the right items sorted by score, then the wrong ones."""
        return gold_ranking(x.items @ w, y)

    def loss(self, y: Relevance, h: Order) -> float:
        """Return 1 - average precision."""
        return delta_ap(y[h])


@dataclass(frozen=True, eq=False)
class HalfStep:
    """A query, and the part of the joint model that learns from it in this step."""

    query: RankQuery
    part: Part


def both_steps(examples: Sequence[tuple[RankQuery, Relevance]]) -> list[tuple[HalfStep, Relevance]]:
    """Every example twice, for the ranking and for the clustering step of Algorithm 8."""
    parts: tuple[Part, Part] = ("ranking", "clustering")
    return [(HalfStep(x, part), y) for x, y in examples for part in parts]


@dataclass(frozen=True)
class JointProblem:
    """JSRC: h is a ranking with a forest. A step's loss and features are those of its part alone.

    With `spanning`, h* of the clustering step takes pairs of 0 and below too: weights can then rise from 0, which they
    cannot where only pairs above 0 are ever taken (spec 8.4, cold start).
    """

    item_features: int
    pair_features: int
    spanning: bool = False

    @property
    def dimension(self) -> int:
        """Return how many weights there are: the items' before the pairs'."""
        return self.item_features + self.pair_features

    def joint_features(self, x: HalfStep, h: Joint) -> Vector:
        """Return the features of the step's part; the other part's are 0, so that its weights stay."""
        found = np.zeros(self.dimension)
        if x.part == "ranking":
            found[: self.item_features] = position_weights(len(h.order)) @ x.query.items[h.order]
        else:
            found[self.item_features :] = _pairs(x).weighted_sum(h.forest.chosen())
        return found

    def predict(self, x: HalfStep, w: Vector) -> Joint:
        """Return what Algorithm 7 finds."""
        return best_joint(*self._scores(x, w))

    def max_violating(self, x: HalfStep, y: Relevance, w: Vector, C: float) -> tuple[Joint, float]:
        """Return the joint object of the highest score and loss of the step's part, and that loss."""
        scores, pairs = self._scores(x, w)
        if x.part == "ranking":
            h = violating_joint(scores, pairs, y, C)
        else:
            wrong = ~same_cluster(y > 0, pairs.index)
            h = best_joint(scores, PairScores(pairs.items, pairs.values + C * wrong, pairs.index))
        return h, self._loss(x.part, y, h)

    def gold(self, x: HalfStep, y: Relevance, w: Vector) -> Joint:
        """Return the best joint object without an error; for clustering, the best forest within equal labels."""
        scores, pairs = self._scores(x, w)
        if x.part == "ranking":
            return gold_joint(scores, pairs, y)
        forest = gold_forest(pairs, y > 0)
        edges = forest.edges if self.spanning else forest.edges[pairs.values[forest.edges] > 0]
        return Joint(gold_ranking(scores, y), edges, pairs.index)

    def loss(self, y: Relevance, h: Joint) -> float:
        """Return the losses of both parts: 0 where neither has an error."""
        return self._loss("ranking", y, h) + self._loss("clustering", y, h)

    def _loss(self, part: Part, y: Relevance, h: Joint) -> float:
        if part == "ranking":
            return delta_ap(y[h.order])
        left, right = h.forest.pairs()
        return float(((y[left] > 0) != (y[right] > 0)).sum())

    def _scores(self, x: HalfStep, w: Vector) -> tuple[Vector, PairScores]:
        pairs = _pairs(x)
        own = np.asarray(x.query.items @ w[: self.item_features], np.float64)
        return own, PairScores(len(own), np.asarray(pairs.scores(w[self.item_features :])), pairs.index)


def _pairs(x: HalfStep) -> PairFeatures:
    if x.query.pairs is None:
        raise ValueError("a joint model needs features of pairs of items")
    return x.query.pairs
