"""Attractive networks as a `Problem`: weights of node features a label, and of clique features a relation and label.

>>> from netclust.learners.one_slack import OneSlack
>>> seen = np.array([[1.0], [1.0], [-0.5], [1.0], [-1.0], [-1.0]])  # the third is taken for one of the others
>>> x = NetworkFeatures(seen, Cliques.of_edges([[0, 1], [1, 2], [2, 3], [4, 5]]))
>>> y = np.array([1, 1, 1, 1, 0, 0])
>>> problem = AttractiveProblem(labels=2, node_features=1)
>>> w = OneSlack(C=1e5, epsilon=0.01).fit(problem, [(x, y)]).w
>>> problem.predict(x, w).tolist(), bool((w[problem.nonnegative] >= 0).all())
([1, 1, 1, 1, 0, 0], True)

Cliques attract: their weights and features are not below 0. A network's joint features are means over its nodes, and
the loss is the share of wrong nodes, in percent, so that C does not depend on the size of networks. With more than two
labels the search for the worst labelling is alpha-expansion, which may miss it, or the linear relaxation, which may
find one by shares: its programs are then over the relaxed labellings.

Reference: B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University,
2004; sections 7.1 and 7.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.attractive.attractive_networks import (
    AttractiveNetwork,
    Cliques,
    Labels,
    Matrix,
    RelaxedLabels,
    best_labels,
    network_agreements,
    relax_network,
    with_loss,
)
from netclust.problems.base import Vector
from netclust.structures.pairs import Indices

__all__ = ["AttractiveProblem", "NetworkFeatures", "Oracle"]

Oracle = Literal["cut", "lp"]


class NetworkFeatures:
    """What a network is seen as: features [n, D] of nodes; of cliques a relation and features [C, F], 1 by default."""

    def __init__(
        self, nodes: Matrix, cliques: Cliques, relation: Indices | None = None, features: Matrix | None = None
    ) -> None:
        self.nodes, self.cliques = np.asarray(nodes, np.float64), cliques
        count = len(cliques)
        self.relation = np.zeros(count, np.int64) if relation is None else np.asarray(relation, np.int64)
        self.features = np.ones((count, 1)) if features is None else np.asarray(features, np.float64)
        if self.nodes.ndim != 2 or not np.isfinite(self.nodes).all():
            raise InputError("features of nodes are a row of finite numbers each")
        if len(self.relation) != count or len(self.features) != count or self.features.ndim != 2:
            raise InputError(f"{count} cliques have {len(self.relation)} relations and {len(self.features)} features")
        if not (np.isfinite(self.features).all() and (self.features >= 0).all()):
            raise InputError("features of cliques are finite and 0 or more: cliques attract")
        cliques.check(len(self.nodes))

    def without_cliques(self) -> NetworkFeatures:
        """The nodes alone: for a rival that sees every one by itself."""
        return NetworkFeatures(self.nodes, Cliques.of_edges([]), features=np.zeros((0, self.features.shape[1])))


@dataclass(frozen=True)
class AttractiveProblem:
    """x are `NetworkFeatures`, y labels of nodes (0 to labels - 1), h labels or (oracle `lp`) labels by shares."""

    labels: int
    node_features: int
    relations: int = 1
    clique_features: int = 1
    oracle: Oracle = "cut"
    costs: tuple[float, ...] | None = None
    """What a wrong node of each true label counts in the loss; None: all the same."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.labels < 2:
            raise InputError(f"{self.labels} label: at least two are needed")
        if self.costs is not None and (len(self.costs) != self.labels or min(self.costs) <= 0):
            raise InputError(f"costs are a number above 0 for each of {self.labels} labels, not {self.costs}")

    @property
    def dimension(self) -> int:
        """Return how many weights there are: nodes' by label, then cliques' by relation and label."""
        return self._own + self.relations * self.labels * self.clique_features

    @property
    def nonnegative(self) -> NDArray[np.int64]:
        """Return the places of the cliques' weights."""
        return np.arange(self._own, self.dimension)

    @property
    def _own(self) -> int:
        return self.labels * self.node_features

    def network(self, x: NetworkFeatures, w: Vector) -> AttractiveNetwork:
        """Return the network of scores that weights make of features."""
        self._check(x)
        own = w[: self._own].reshape(self.labels, self.node_features)
        tie = w[self._own :].reshape(self.relations, self.labels, self.clique_features)
        attraction = np.einsum("cf,ckf->ck", x.features, tie[x.relation])
        return AttractiveNetwork(x.nodes @ own.T, x.cliques, np.ascontiguousarray(attraction))

    def joint_features(self, x: NetworkFeatures, h: Labels | RelaxedLabels) -> Vector:
        """Return the mean over nodes of what nodes and agreeing cliques have."""
        return self.total_features(x, h) / max(len(x.nodes), 1)

    def total_features(self, x: NetworkFeatures, h: Labels | RelaxedLabels) -> Vector:
        """Return the sum of what nodes and agreeing cliques have."""
        self._check(x)
        K, F = self.labels, self.clique_features
        tied = np.zeros((self.relations * K, F))
        if isinstance(h, RelaxedLabels):
            node = h.node
            for k in range(K):
                np.add.at(tied, x.relation * K + k, h.clique[:, k, None] * x.features)
        else:
            node, agreed = _one_hot(h, K), network_agreements(x.cliques, h)
            some = np.flatnonzero(agreed >= 0)
            for f in range(F):
                tied[:, f] = np.bincount(x.relation[some] * K + agreed[some], x.features[some, f], len(tied))
        return np.concatenate([(node.T @ x.nodes).ravel(), tied.ravel()])

    def predict(self, x: NetworkFeatures, w: Vector) -> Labels:
        """Return the labelling of the highest score (two labels; of more what alpha-expansion finds)."""
        return best_labels(self.network(x, w))

    def max_violating(self, x: NetworkFeatures, y: Labels, w: Vector, C: float) -> tuple[Labels | RelaxedLabels, float]:
        """Return the labelling of the highest score and loss, and its loss."""
        harder = with_loss(self.network(x, w), y, C * len(y) * self._weights(y))
        h: Labels | RelaxedLabels
        if self.oracle == "lp":
            h = relax_network(harder)
        else:
            h = best_labels(harder)
            if self.labels > 2:  # expansion from the truth may end above what it finds from nodes' own best labels
                other = best_labels(harder, np.asarray(y, np.int64))
                h = other if harder.score(other) > harder.score(h) else h
        return h, self.loss(y, h)

    def gold(self, x: NetworkFeatures, y: Labels, w: Vector) -> Labels:
        """Return y: nothing is latent."""
        y = np.asarray(y, np.int64)
        if len(y) != len(x.nodes) or (len(y) and not (y.min() >= 0 and y.max() < self.labels)):
            raise InputError(f"{len(y)} labels for {len(x.nodes)} nodes, expected one each from 0 to {self.labels - 1}")
        return y

    def loss(self, y: Labels, h: Labels | RelaxedLabels) -> float:
        """Return the (weighted) share of nodes that are wrong, in percent."""
        wrong = (
            1.0 - h.node[np.arange(len(y)), y]
            if isinstance(h, RelaxedLabels)
            else (np.asarray(y) != h).astype(np.float64)
        )
        return float(self._weights(y) @ wrong)

    def _weights(self, y: Labels) -> Vector:
        """What every node counts, 100 in all."""
        each = np.ones(len(y)) if self.costs is None else np.asarray(self.costs, np.float64)[y]
        return np.asarray(100.0 * each / max(each.sum(), 1e-300))

    def _check(self, x: NetworkFeatures) -> None:
        if x.nodes.shape[1] != self.node_features or x.features.shape[1] != self.clique_features:
            raise InputError(
                f"nodes have {x.nodes.shape[1]} features and cliques {x.features.shape[1]}, expected "
                f"{self.node_features} and {self.clique_features}"
            )
        if len(x.relation) and not (x.relation.min() >= 0 and x.relation.max() < self.relations):
            raise InputError(
                f"a clique is of relation {int(x.relation.max())}, and there are {self.relations} (from 0)"
            )


def _one_hot(y: Labels, labels: int) -> Matrix:
    """A 1 in the column of every label; a row of -1 is all 0."""
    return np.asarray(np.asarray(y)[:, None] == np.arange(labels), np.float64)
