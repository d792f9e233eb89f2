"""Max-margin learning of an attractive network as one convex program, its inference merged into it: for small sets.

Weights w score nodes and cliques as in `AttractiveProblem`. The learner asks that the truth beats every relaxed
labelling by its loss, the number of wrong nodes (counts and sums: no percent, no means, the convention of the source):

    min |w|^2/2 + C sum of xi_i,   xi_i = max over mu of [w . Phi(mu) + loss(mu)] - w . Phi(y_i),   w of cliques >= 0

mu are shares of labels, of a clique no more than of any of its nodes; the program is what `learners.minmax` makes of
that. It is solved from its dual side, with a price nu >= 0 of the signs (the print omits the C of w):

    max sum of loss(mu_i) - (C/2) |u|^2,   u = nu + sum of (Phi(y_i) - Phi(mu_i)),   w = C u

>>> from netclust.models.attractive.attractive_networks import Cliques
>>> x = NetworkFeatures(np.array([[1.0], [0.2], [-1.0]]), Cliques.of_edges([[0, 1]]))
>>> problem = AttractiveProblem(labels=2, node_features=1)
>>> fit = AttractiveMinMax(C=1.0).fit(problem, [(x, np.array([1, 1, 0]))])
>>> problem.predict(x, fit.w).tolist(), bool(fit.gap < 1e-6)
([1, 1, 0], True)

With two labels the relaxation is exact, so this is the n-slack program of the shared learners; with more it is the one
over relaxed labellings (their oracle `lp`), whose slacks are not below.

Reference: B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University,
2004; section 7.4 and appendix A.2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.learners.minmax import Inference, MinMaxFit, linear_set, min_max
from netclust.models.attractive.attractive_networks import Labels, network_agreements
from netclust.models.attractive.attractive_problem import AttractiveProblem, NetworkFeatures
from netclust.problems.base import Vector

__all__ = ["AttractiveMinMax"]

LARGEST = 100_000
"""Variables of the program: what ends in minutes on one core."""


@dataclass(frozen=True)
class AttractiveMinMax:
    """The joint program; the loss counts wrong nodes."""

    C: float
    largest: int = LARGEST

    def fit(self, problem: AttractiveProblem, examples: Sequence[tuple[NetworkFeatures, Labels]]) -> MinMaxFit:
        """Learn from networks with their true labels."""
        size = sum((len(x.nodes) + len(x.cliques)) * problem.labels for x, _ in examples)
        if size > self.largest:
            raise InputError(
                f"the joint program of these networks has {size:,} variables (up to {self.largest:,} are taken): learn "
                "by cutting planes"
            )
        inferences = [_inference(problem, x, y) for x, y in examples]
        return min_max(inferences, self.C, nonnegative=problem.nonnegative.tolist())


def _inference(problem: AttractiveProblem, x: NetworkFeatures, y: Labels) -> Inference:
    """Shares of nodes sum to 1, and a clique's are not above its members'."""
    sparse = require_optional("scipy.sparse", "the joint program")
    K, n = problem.labels, len(x.nodes)
    y = problem.gold(x, y, np.zeros(problem.dimension))
    ties = _ties(x, K)
    rows = sparse.vstack([_shares_of_nodes(x, K), ties], format="csc")
    sides = np.concatenate([np.ones(n), np.zeros(ties.shape[0])])
    agreed = network_agreements(x.cliques, y)
    truth = np.concatenate([np.arange(K) == label for label in (*y.tolist(), *agreed.tolist())])
    features = np.asarray(_feature_map(problem, x).T.toarray(), np.float64)
    return Inference(features, _losses(x, y, K), 0.0, truth.astype(np.float64), linear_set(rows, sides, equal=n))


def _feature_map(problem: AttractiveProblem, x: NetworkFeatures) -> Any:
    """The matrix that makes joint features (sums) of shares: nodes by label, then cliques by label."""
    sparse = require_optional("scipy.sparse", "the joint program")
    K, (n, D), (count, F) = problem.labels, x.nodes.shape, x.features.shape
    k, v, d = (a.ravel() for a in np.meshgrid(np.arange(K), np.arange(n), np.arange(D), indexing="ij"))
    kc, c, f = (a.ravel() for a in np.meshgrid(np.arange(K), np.arange(count), np.arange(F), indexing="ij"))
    rows = np.concatenate([k * D + d, K * D + (x.relation[c] * K + kc) * F + f])
    columns = np.concatenate([v * K + k, n * K + c * K + kc])
    values = np.concatenate([x.nodes[v, d], x.features[c, f]])
    return sparse.csc_matrix((values, (rows, columns)), (problem.dimension, (n + count) * K))


def _shares_of_nodes(x: NetworkFeatures, K: int) -> Any:
    sparse = require_optional("scipy.sparse", "the joint program")
    n = len(x.nodes)
    sums = sparse.kron(sparse.identity(n), np.ones((1, K)))
    return sparse.hstack([sums, sparse.csc_matrix((n, len(x.cliques) * K))], format="csc")


def _ties(x: NetworkFeatures, K: int) -> Any:
    """Rows mu_c(k) - mu_v(k) <= 0, by member, then by label."""
    sparse = require_optional("scipy.sparse", "the joint program")
    n, members = len(x.nodes), x.cliques.members
    clique = np.repeat(np.arange(len(x.cliques)), x.cliques.sizes)
    row = np.arange(len(members) * K)
    own = (members[:, None] * K + np.arange(K)).ravel()
    shared = (n * K + clique[:, None] * K + np.arange(K)).ravel()
    values = np.concatenate([np.ones(len(row)), -np.ones(len(row))])
    shape = (len(row), (n + len(x.cliques)) * K)
    return sparse.csc_matrix((values, (np.tile(row, 2), np.concatenate([shared, own]))), shape)


def _losses(x: NetworkFeatures, y: Labels, K: int) -> Vector:
    """What every share adds to the number of wrong nodes."""
    wrong = (np.arange(K) != np.asarray(y)[:, None]).astype(np.float64)
    return np.concatenate([wrong.ravel(), np.zeros(len(x.cliques) * K)])
