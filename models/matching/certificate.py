"""Learning from certificates: weights under which the true structure satisfies conditions that prove it the best.

Where no compact program says what the best structure is, one may still say that a given one is. A certificate is a
system of inequalities in the weights and in variables of its own; learned are the smallest weights for which all have
a solution, or with a price C of what is missing from a row where there are none. Unlike a structural SVM's, that
amount is no bound on the loss.

A spanning tree is the heaviest if each of its edges is at least as heavy as every other edge across its cut (and
heavier by the loss, where there is to be a margin):

>>> left, right = np.array([0, 0, 1]), np.array([1, 2, 2])
>>> features = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
>>> rows = spanning_tree_certificate(3, left, right, features, np.array([True, False, True]), loss=np.ones(3))
>>> learned = learn_certificates([rows])
>>> learned.w.round(4).tolist(), (features @ learned.w).round(4).tolist()
([1.0, -1.0], [1.0, -1.0, 0.0])

B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University, 2004,
section 4.1.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.structures.pairs import Indices, Vector
from netclust.structures.sdp import InfeasibleError, clarabel_solution

__all__ = ["Certificate", "CertificateFit", "learn_certificates", "spanning_tree_certificate"]


@dataclass(frozen=True, eq=False)
class Certificate:
    """An example's system: weighted . w + own . v >= sides, for some v."""

    weighted: NDArray[np.float64]
    own: Any
    """Sparse, [rows, variables]; there may be none."""
    sides: Vector


@dataclass(frozen=True, eq=False)
class CertificateFit:
    """Learned weights; of every row of every example, what is missing (0 without a price)."""

    w: Vector
    missing: list[Vector]

    @property
    def certified(self) -> list[bool]:
        """Of every example, whether its structure is proved to be the best, with its margin."""
        return [bool(own.max(initial=0.0) <= 1e-6) for own in self.missing]


def learn_certificates(examples: Sequence[Certificate], C: float | None = None) -> CertificateFit:
    """The smallest weights that satisfy all systems; with C, the best trade of their size and what is missing."""
    if not examples:
        raise InputError("no examples to learn from")
    clarabel, sparse = (require_optional(name, "learning from certificates") for name in ("clarabel", "scipy.sparse"))
    weighted = np.vstack([one.weighted for one in examples])
    dimension, count = weighted.shape[1], len(weighted)
    own = sparse.block_diag([one.own for one in examples])
    slack = sparse.identity(count) if C is not None else sparse.csc_matrix((count, 0))
    rows = [sparse.hstack([sparse.csc_matrix(weighted), own, slack])]
    if C is not None:
        rows.append(sparse.hstack([sparse.csc_matrix((count, dimension + own.shape[1])), slack]))
    A = -sparse.vstack(rows, format="csc")
    b = -np.concatenate([*(one.sides for one in examples), np.zeros(slack.shape[1])])
    variables = dimension + own.shape[1] + slack.shape[1]
    P = sparse.diags(np.concatenate([np.ones(dimension), np.zeros(variables - dimension)]), format="csc")
    q = np.concatenate([np.zeros(dimension + own.shape[1]), np.full(slack.shape[1], C or 0.0)])
    try:
        solution = clarabel_solution(P, q, A, b, [clarabel.NonnegativeConeT(len(b))])
    except InfeasibleError:
        raise InputError("no weights satisfy every certificate: give a price C of what is missing") from None
    x = np.asarray(solution.x)
    missing = np.maximum(x[dimension + own.shape[1] :], 0.0) if C is not None else np.zeros(count)
    return CertificateFit(x[:dimension], np.split(missing, np.cumsum([len(one.sides) for one in examples])[:-1]))


def spanning_tree_certificate(
    nodes: int, left: Indices, right: Indices, features: NDArray[np.float64], tree: NDArray[np.bool_], loss: Vector
) -> Certificate:
    """A row for each edge of the tree and each other edge across its cut, which costs `loss` to have instead."""
    from netclust.kernels.structured.union_find import grow_forest, number_components

    sparse = require_optional("scipy.sparse", "learning from certificates")
    chosen = np.flatnonzero(tree)
    if len(chosen) != nodes - 1:
        raise InputError(f"a spanning tree of {nodes} nodes has {nodes - 1} edges, not {len(chosen)}")
    weighted, sides = [], []
    side, taken = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    if grow_forest(left[chosen], right[chosen], np.arange(nodes), taken) < len(chosen):
        raise InputError("the edges of the tree close a cycle, and do not join all nodes")
    for edge in chosen:
        rest, parent = chosen[chosen != edge], np.arange(nodes)
        grow_forest(left[rest], right[rest], parent, taken)
        number_components(parent, side)
        across = np.flatnonzero((side[left] != side[right]) & ~tree)
        weighted.append(features[edge] - features[across])
        sides.append(loss[across])
    rows = np.vstack([np.zeros((0, features.shape[1])), *weighted])
    return Certificate(rows, sparse.csr_matrix((len(rows), 0)), np.concatenate([np.zeros(0), *sides]))
