"""Matchings learned as one convex program: min-max with all odd sets, or from the certificate of the best matching.

Both need no inference while they learn. The min-max program is exact: bipartite graphs have a row a node, general ones
one for every odd set of nodes as well (2^(n-1) - n of them), so those are for small graphs.

>>> from netclust.models.matching.matchings import bipartite
>>> graph, y = bipartite(2, 2), np.array([2, 3, 0, 1])
>>> features = np.array([[0.9], [0.4], [0.5], [0.8]])  # edges (0, 2), (0, 3), (1, 2), (1, 3)
>>> learned = min_max([matching_inference(graph, features, y, perfect=True)], C=100.0)
>>> certified = learn_certificates([matching_certificate(graph, features, y)])
>>> learned.w.round(3).tolist(), certified.w.round(3).tolist()
([5.0], [5.0])

**The certificate** of a perfect matching has a row or two an edge: potentials of an alternating walk's length, by which
no alternating cycle gains. The source takes it for exact (theorem 10.4.2). It is on bipartite graphs; on others it
also forbids what goes round an odd cycle twice, so it certifies the best point of the program *without* odd sets: what
it certifies is the best matching, but not every best matching is certified. In two triangles with edges of score 1,
the matching that takes the bridge between them is the best one for a bridge of 1.5 and of 0.5; only the first is
certified.

B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University, 2004,
sections 10.3 and 10.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.learners.minmax import Inference, linear_set, min_max
from netclust.models.matching.certificate import Certificate, learn_certificates
from netclust.models.matching.matching_program import all_odd_sets, degree_rows, odd_set_rows
from netclust.models.matching.matchings import MatchGraph, Partners, chosen_edges
from netclust.structures.pairs import Vector

__all__ = [
    "is_certified",
    "learn_certificates",
    "matching_certificate",
    "matching_inference",
    "min_max",
]


def matching_inference(
    graph: MatchGraph, features: NDArray[np.float64], y: Partners, *, perfect: bool = False
) -> Inference:
    """An example of the min-max learner: features an edge; the loss counts edges that are wrong or missing."""
    sparse = require_optional("scipy.sparse", "learning matchings")
    right = chosen_edges(graph, y).astype(np.float64)
    rows, sides = degree_rows(graph), np.ones(graph.nodes)
    if graph.split is None:
        odd, most = odd_set_rows(graph, all_odd_sets(graph.nodes))
        rows, sides = sparse.vstack([rows, odd]), np.concatenate([sides, most])
    relaxed = linear_set(rows, sides, equal=graph.nodes if perfect else 0)
    return Inference(features, 1.0 - 2.0 * right, float(right.sum()), right, relaxed)


def matching_certificate(
    graph: MatchGraph, features: NDArray[np.float64], y: Partners, *, margin: bool = True
) -> Certificate:
    """That y is the best perfect matching, by its loss where there is a `margin`: (10.10)."""
    own, edge = _potential_rows(graph, y)
    right = chosen_edges(graph, y).astype(np.float64)
    sign = 2.0 * right - 1.0
    loss = (1.0 - 2.0 * right) * margin
    return Certificate((sign[:, None] * features)[edge], -own, -(sign * loss)[edge])


def is_certified(graph: MatchGraph, scores: Vector, y: Partners) -> bool:
    """Whether potentials exist that prove y to be the best perfect matching under scores of the edges."""
    optimize = require_optional("scipy.optimize", "a certificate")
    own, edge = _potential_rows(graph, y)
    sign = 2.0 * chosen_edges(graph, y) - 1.0
    found = optimize.linprog(np.zeros(own.shape[1]), A_ub=own, b_ub=(sign * scores)[edge], bounds=(None, None))
    return bool(found.status == 0)


def _potential_rows(graph: MatchGraph, y: Partners) -> tuple[Any, NDArray[np.intp]]:
    """Rows of potentials (outside, then inside: the walk's last edge is in y or not) that s must not be below.

    jk not in y: out_k - in_j and out_j - in_k; jk in y: in_k - out_j and in_j - out_k. Also the edge of every row.
    """
    sparse = require_optional("scipy.sparse", "a certificate")
    if (y < 0).any():
        raise InputError(f"a certificate is of a perfect matching, and node {int((y < 0).argmax())} has no partner")
    edges, n = len(graph.left), graph.nodes
    right = chosen_edges(graph, y)
    plus, minus = np.where(right, n, 0), np.where(right, 0, n)
    above = np.concatenate([graph.right + plus, graph.left + plus])
    below = np.concatenate([graph.left + minus, graph.right + minus])
    row = np.arange(2 * edges)
    entries = np.concatenate([np.ones(2 * edges), -np.ones(2 * edges)])
    rows = sparse.csr_matrix((entries, (np.tile(row, 2), np.concatenate([above, below]))), shape=(2 * edges, 2 * n))
    return rows, np.tile(np.arange(edges), 2)
