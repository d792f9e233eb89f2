"""Matchings as linear programs: with the degrees alone, with odd sets too, and with more than one partner a node.

With the degrees alone the program is exact on bipartite graphs; on others its corners may be half-integral (odd cycles
of halves). Of an odd set V of nodes at most (|V| - 1) / 2 edges can be chosen; with these rows, added where a solution
violates one, the program is exact on every graph:

>>> from netclust.models.matching.matchings import complete_graph
>>> triangle = complete_graph(3)
>>> relaxed = relaxed_matching(triangle, np.ones(3), odd_sets=False)
>>> relaxed.edges.tolist(), relaxed.value
([0.5, 0.5, 0.5], 1.5)
>>> relaxed_matching(triangle, np.ones(3)).value
1.0

Reviewers (rows) and papers (columns), two reviewers a paper, at most two papers a reviewer:

>>> fits = np.array([[3.0, 1.0, 2.0], [2.0, 2.0, 0.0], [1.0, 0.0, 0.0]])
>>> b_matching(fits, per_column=2, most_per_row=2).astype(int).tolist()
[[1, 0, 1], [1, 1, 0], [0, 1, 1]]

Reference: B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University,
2004, sections 3.5 and 10.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, NetclustError
from netclust.foundation.optional import require_optional
from netclust.models.matching.matchings import MatchGraph, best_matching, bipartite
from netclust.structures.pairs import Indices, Vector

__all__ = [
    "ODD_SET_NODES",
    "RelaxedMatching",
    "all_odd_sets",
    "b_matching",
    "degree_rows",
    "odd_set_rows",
    "relaxed_matching",
]

ODD_SET_NODES = 18
"""Odd sets are found by looking at every set of nodes."""
TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class RelaxedMatching:
    """How far every edge is chosen, the value there, and the odd sets (bits of nodes) whose rows were added."""

    edges: Vector
    value: float
    odd_sets: Indices

    def integral(self, tolerance: float = 1e-6) -> bool:
        """Whether every edge is either chosen or not."""
        return bool(np.minimum(self.edges, 1 - self.edges).max(initial=0.0) <= tolerance)


def degree_rows(graph: MatchGraph) -> Any:
    """A row a node: 1 at its edges."""
    sparse = require_optional("scipy.sparse", "the LP of matchings")
    edges = np.arange(len(graph.left))
    ends = np.concatenate([graph.left, graph.right])
    return sparse.csr_matrix((np.ones(len(ends)), (ends, np.tile(edges, 2))), shape=(graph.nodes, len(edges)))


def odd_set_rows(graph: MatchGraph, sets: Indices) -> tuple[Any, Vector]:
    """A row an odd set, given as the bits of its nodes: 1 at the edges within; and the right sides (|V| - 1) / 2."""
    sparse = require_optional("scipy.sparse", "the LP of matchings")
    within = (sets[:, None] >> graph.left & sets[:, None] >> graph.right & 1).astype(np.float64)
    return sparse.csr_matrix(within), (np.bitwise_count(sets) - 1) / 2.0


def all_odd_sets(nodes: int) -> Indices:
    """The 2^(nodes - 1) - nodes sets of 3, 5, 7, ... nodes, as bits."""
    _check_size(nodes)
    sets = np.arange(1 << nodes)
    size = np.bitwise_count(sets)
    return np.asarray(sets[(size % 2 == 1) & (size >= 3)], np.int64)


def relaxed_matching(
    graph: MatchGraph, scores: Vector, *, odd_sets: bool = True, perfect: bool = False
) -> RelaxedMatching:
    """The program's best corner. Without odd sets only bipartite graphs are solved exactly."""
    optimize, sparse = (require_optional(f"scipy.{name}", "the LP of matchings") for name in ("optimize", "sparse"))
    search = odd_sets and graph.split is None
    if search:
        _check_size(graph.nodes)
    degrees, one = degree_rows(graph), np.ones(graph.nodes)
    found = np.zeros(0, np.int64)
    if not len(scores):
        best_matching(graph, scores, perfect=perfect)  # an error if it must be perfect
        return RelaxedMatching(np.zeros(0), 0.0, found)
    while True:
        rows, sides = odd_set_rows(graph, found)
        if perfect:
            limits = {"A_eq": degrees, "b_eq": one, "A_ub": rows, "b_ub": sides}
        else:
            limits = {"A_ub": sparse.vstack([degrees, rows]), "b_ub": np.concatenate([one, sides])}
        edges = _solve(optimize, -scores, limits)
        new = _violated(graph, edges, found) if search else found[:0]
        if not len(new):
            return RelaxedMatching(edges, float(scores @ edges), found)
        found = np.concatenate([found, new])


def b_matching(scores: NDArray[np.float64], *, per_column: int, most_per_row: int) -> NDArray[np.bool_]:
    """The best assignment with so many rows a column and at most so many columns a row; its program is integral."""
    optimize = require_optional("scipy.optimize", "an assignment")
    rows, columns = scores.shape
    if per_column > rows or per_column * columns > most_per_row * rows:
        wanted = f"{per_column} rows for each of {columns} columns"
        raise InputError(f"{wanted}: {rows} rows with at most {most_per_row} columns each are too few")
    degrees = degree_rows(bipartite(rows, columns))
    limits = {
        "A_ub": degrees[:rows],
        "b_ub": np.full(rows, float(most_per_row)),
        "A_eq": degrees[rows:],
        "b_eq": np.full(columns, float(per_column)),
    }
    return np.asarray(_solve(optimize, -scores.ravel(), limits).reshape(rows, columns) > 0.5)


def _solve(optimize: Any, costs: Vector, limits: dict[str, Any]) -> Vector:
    found = optimize.linprog(costs, bounds=(0.0, 1.0), method="highs-ds", **limits)
    if found.status == 2:
        raise InputError("there is no perfect matching: the candidate edges do not allow one")
    if found.status:
        raise NetclustError(f"the linear program was not solved: {found.message}")
    return np.asarray(found.x, np.float64)


def _violated(graph: MatchGraph, edges: Vector, known: Indices) -> Indices:
    """Of every size, the odd set that is violated most."""
    inside = np.zeros(1)
    table = np.zeros((graph.nodes, graph.nodes))
    table[graph.left, graph.right] = table[graph.right, graph.left] = edges
    for v in range(graph.nodes):  # what is chosen within each set, set by set of the nodes up to v
        to_v = np.zeros(1)
        for u in range(v):
            to_v = np.concatenate([to_v, to_v + table[u, v]])
        inside = np.concatenate([inside, inside + to_v])
    sets = all_odd_sets(graph.nodes)
    size = np.bitwise_count(sets)
    excess = inside[sets] - (size - 1) / 2.0
    worst = [
        sets[of][excess[of].argmax()] for of in (size == s for s in np.unique(size)) if excess[of].max() > TOLERANCE
    ]
    return np.setdiff1d(np.array(worst, np.int64), known)


def _check_size(nodes: int) -> None:
    if nodes > ODD_SET_NODES:
        raise InputError(f"odd sets of {nodes} nodes: {ODD_SET_NODES} nodes are the most; use best_matching instead")
