"""The best labelling of a pairwise network as a linear program: exact on trees, a bound with cycles.

Marginals of nodes and edges must agree with each other; on a chain that is enough to be those of a labelling:

>>> node, same = np.array([[0.0, 1.0], [0.6, 0.5]]), np.eye(2)
>>> found = relaxed_map(node, np.array([0]), np.array([1]), same[None])
>>> found.node.round(6).tolist(), round(found.value, 6), found.integral
([[0.0, 1.0], [0.0, 1.0]], 2.5, True)

Reference: B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University,
2004; (3.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.optional import require_optional

__all__ = ["RelaxedLabelling", "relaxed_map"]


@dataclass(frozen=True, eq=False)
class RelaxedLabelling:
    """Marginals of nodes [N, K] and the value, which no labelling exceeds."""

    node: NDArray[np.float64]
    value: float

    @property
    def integral(self) -> bool:
        """Whether it is a labelling."""
        return bool(np.minimum(self.node, 1 - self.node).max(initial=0) < 1e-6)


def relaxed_map(
    node: NDArray[np.float64], tail: NDArray[Any], head: NDArray[Any], edge: NDArray[np.float64]
) -> RelaxedLabelling:
    """max sum mu.score, sum_k mu_v(k) = 1, mu_v(k) = sum_j mu_uv(j, k): scores [N, K], and [E, K, K] by tail, head."""
    optimize, sparse = (
        require_optional("scipy.optimize", "a linear program"),
        require_optional("scipy.sparse", "a linear program"),
    )
    N, K = node.shape
    E = len(tail)
    if edge.shape != (E, K, K) or len(head) != E or (E and min(tail.min(), head.min()) < 0):
        raise InputError(f"scores of {N} nodes {list(node.shape)} and of {E} edges {list(edge.shape)} do not fit")
    places = N * K + np.arange(E * K * K).reshape(E, K, K)
    rows, columns, values = [np.repeat(np.arange(N), K)], [np.arange(N * K)], [np.ones(N * K)]
    at = N
    for ends, axis in ((tail, 2), (head, 1)):
        number = at + np.arange(E * K).reshape(E, K)
        rows += [np.broadcast_to(np.expand_dims(number, axis), (E, K, K)).ravel(), number.ravel()]
        columns += [places.ravel(), (np.asarray(ends)[:, None] * K + np.arange(K)).ravel()]
        values += [np.ones(E * K * K), -np.ones(E * K)]
        at += E * K
    matrix = sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), (at, N * K + E * K * K)
    )
    right = np.concatenate([np.ones(N), np.zeros(at - N)])
    found = optimize.linprog(
        -np.concatenate([node.ravel(), np.asarray(edge, np.float64).ravel()]), A_eq=matrix, b_eq=right, method="highs"
    )
    if not found.success:
        raise InputError(f"the linear program was not solved: {found.message}")
    return RelaxedLabelling(np.maximum(found.x[: N * K], 0.0).reshape(N, K), -float(found.fun))
