"""Matchings as a `Problem`: x has candidate edges with features, y and h are the partner of every node, or -1.

>>> from netclust.learners.one_slack import OneSlack
>>> from netclust.models.matching.matchings import bipartite
>>> features = np.array([[0.9, 1.0], [0.3, 1.0], [0.2, 1.0], [0.1, 1.0]])  # a similarity and a constant
>>> x, y = MatchExample(bipartite(2, 2), features), np.array([2, -1, 0, -1])
>>> problem = MatchingProblem(2)
>>> fitted = OneSlack(C=1e4, epsilon=0.01).fit(problem, [(x, y)])
>>> problem.predict(x, fitted.w).tolist()
[2, -1, 0, -1]

An edge is taken only where it scores above 0, so that a constant feature's weight says how alike two nodes must be.
Loss-augmented inference is a matching as well, so it is exact.

Where it is only known which edges are right, and not which of them are to be taken (clusters of one class, three before
and two after), the matching is latent: any with as many right edges as there can be is as good.

>>> graph = bipartite(2, 1)
>>> y = Allowed(graph, np.array([True, True]), np.array([0.1, 0.2]))
>>> problem, x = AllowedMatchingProblem(1), MatchExample(graph, np.array([[1.0], [0.5]]))
>>> [problem.gold(x, y, w).tolist() for w in np.array([[0.0], [-1.0], [1.0]])]  # at 0 by the start's scores
[[-1, 2, 1], [-1, 2, 1], [2, -1, 0]]

Reference: B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University,
2004, sections 4.1.1 and 10.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.matching.matching_loss import delta_matching, edge_price
from netclust.models.matching.matchings import MatchGraph, Partners, best_matching, chosen_edges, violating_matching
from netclust.problems.base import Vector

__all__ = ["Allowed", "AllowedMatchingProblem", "MatchExample", "MatchingProblem"]


@dataclass(frozen=True, eq=False)
class MatchExample:
    """Candidate edges, and a row of features for each."""

    graph: MatchGraph
    features: NDArray[np.float64]

    def __post_init__(self) -> None:
        """Refuse features that do not belong to the edges."""
        if len(self.features) != len(self.graph.left):
            raise InputError(f"{len(self.features)} rows of features for {len(self.graph.left)} edges")


@dataclass(frozen=True)
class MatchingProblem:
    """The heaviest matching; `perfect`: of those that leave no node alone."""

    dimension: int
    perfect: bool = False

    def joint_features(self, x: MatchExample, h: Partners) -> Vector:
        """Return the sum of the features of the chosen edges."""
        return np.asarray(x.features[chosen_edges(x.graph, h)].sum(axis=0), np.float64)

    def predict(self, x: MatchExample, w: Vector) -> Partners:
        """Return the best matching."""
        return best_matching(x.graph, x.features @ w, perfect=self.perfect)

    def max_violating(self, x: MatchExample, y: Partners, w: Vector, C: float) -> tuple[Partners, float]:
        """Return the matching of the highest score and loss, and its loss."""
        h = violating_matching(x.graph, x.features @ w, y, C * edge_price(y), perfect=self.perfect)
        return h, delta_matching(y, h)

    def gold(self, x: MatchExample, y: Partners, w: Vector) -> Partners:
        """Return y: nothing is latent."""
        return y

    def loss(self, y: Partners, h: Partners) -> float:
        """Return the edges that are wrong and that are missing, in percent of the most there may be."""
        return delta_matching(y, h)


@dataclass(frozen=True, eq=False)
class Allowed:
    """Which edges are right, of a matching that is not known. `start`: scores to choose by before there are weights."""

    graph: MatchGraph
    right: NDArray[np.bool_]
    start: Vector

    @cached_property
    def possible(self) -> int:
        """How many right edges a matching can have."""
        most = best_matching(self.graph, self.right.astype(np.float64))
        return int(chosen_edges(self.graph, most).sum())

    @cached_property
    def price(self) -> float:
        """What an edge that is wrong or missing costs: 100 shared among the most there may be."""
        return 100.0 / max(self.possible + self.graph.most, 1)

    def best(self, scores: Vector) -> Partners:
        """The matching of the highest score among those with as many right edges as can be, and no other."""
        enough = 1.0 + 2.0 * float(np.abs(scores).sum())
        return best_matching(self.graph, np.where(self.right, scores + enough, -1.0))


@dataclass(frozen=True)
class AllowedMatchingProblem:
    """Matchings where y is `Allowed`: the loss counts wrong edges, and how many right ones are missing."""

    dimension: int

    def joint_features(self, x: MatchExample, h: Partners) -> Vector:
        """Return the sum of the features of the chosen edges."""
        return MatchingProblem(self.dimension).joint_features(x, h)

    def predict(self, x: MatchExample, w: Vector) -> Partners:
        """Return the best matching."""
        return best_matching(x.graph, x.features @ w)

    def max_violating(self, x: MatchExample, y: Allowed, w: Vector, C: float) -> tuple[Partners, float]:
        """Return the matching of the highest score and loss, and its loss."""
        h = best_matching(x.graph, x.features @ w + C * y.price * (1.0 - 2.0 * y.right))
        return h, self.loss(y, h)

    def gold(self, x: MatchExample, y: Allowed, w: Vector) -> Partners:
        """Return the best matching without an error."""
        return y.best(x.features @ w if w.any() else y.start)

    def loss(self, y: Allowed, h: Partners) -> float:
        """Return the wrong and the missing edges in percent of the most there may be."""
        chosen = chosen_edges(y.graph, h)
        found = int((chosen & y.right).sum())
        return y.price * (int(chosen.sum()) + y.possible - 2 * found)
