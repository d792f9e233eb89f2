"""Matchings: every node has at most one partner. The heaviest of a bipartite or of any graph, perfect or not.

A graph is its candidate edges; where `split` is given, nodes below it are the left side and edges join left and right.
A matching is an array with the partner of every node, or -1. Only edges that score above 0 are worth taking, unless the
matching must be perfect:

>>> graph = bipartite(2, 2, np.array([[0, 0], [0, 1], [1, 0], [1, 1]]))
>>> scores = np.array([3.0, 2.0, 2.5, -1.0])
>>> best_matching(graph, scores).tolist(), best_matching(graph, np.array([3.0, 0.5, 1.0, -1.0])).tolist()
([3, 2, 1, 0], [2, -1, 0, -1])

Bipartite graphs go to scipy's assignment solver, others to the blossom kernel, which counts in whole numbers: scores
are rounded to 2^-40 of the largest.

>>> triangle = MatchGraph(3, np.array([0, 1, 0]), np.array([1, 2, 2]))
>>> best_matching(triangle, np.array([1.0, 2.0, 1.5])).tolist()
[-1, 2, 1]

Reference: B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University,
2004, sections 3.5 and 10.1 to 10.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.structures.pairs import Indices, Vector

__all__ = [
    "MatchGraph",
    "Partners",
    "best_matching",
    "bipartite",
    "chosen_edges",
    "complete_graph",
    "partners_of",
    "violating_matching",
]

Partners = Indices
PRECISION = 40
"""Scores are whole numbers to the blossom kernel, the largest about 2^40."""
MOST_CELLS = 25_000_000
"""Of the table of a bipartite graph, left by right."""
MOST_NODES = 2_000
"""Of a general graph."""


@dataclass(frozen=True, eq=False)
class MatchGraph:
    """Candidate edges `left[e], right[e]`, each pair of nodes once; `split`: how many nodes are on the left side."""

    nodes: int
    left: Indices
    right: Indices
    split: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is not a graph of this kind."""
        low, high = np.minimum(self.left, self.right), np.maximum(self.left, self.right)
        if self.left.shape != self.right.shape or (len(low) and (low.min() < 0 or high.max() >= self.nodes)):
            raise InputError(f"edges do not join nodes 0 to {self.nodes - 1}")
        if (low == high).any() or len(np.unique(low * self.nodes + high)) < len(low):
            raise InputError("an edge joins a node to itself, or is there twice")
        if self.split is None:
            if self.nodes > MOST_NODES:
                raise InputError(f"a graph of {self.nodes:,} nodes: {MOST_NODES:,} are the most")
            return
        if (self.left >= self.split).any() or (self.right < self.split).any():
            raise InputError("an edge of a bipartite graph does not join the left side to the right side")
        if self.split * (self.nodes - self.split) > MOST_CELLS:
            sides = f"{self.split:,} by {self.nodes - self.split:,} nodes"
            raise InputError(f"a bipartite graph of {sides}: {MOST_CELLS:,} pairs are the most")

    @cached_property
    def most(self) -> int:
        """No matching has more edges."""
        return self.nodes // 2 if self.split is None else min(self.split, self.nodes - self.split)


def bipartite(left: int, right: int, edges: NDArray[Any] | None = None) -> MatchGraph:
    """A bipartite graph, its edges given as [left number, right number], or all of them, row by row."""
    if edges is None:
        edges = np.array(np.divmod(np.arange(left * right), right)).T if right else np.zeros((0, 2), np.int64)
    pairs = np.asarray(edges, np.int64).reshape(-1, 2)
    return MatchGraph(left + right, pairs[:, 0], pairs[:, 1] + left, left)


def complete_graph(nodes: int) -> MatchGraph:
    """All pairs of nodes, in the order of `pdist`."""
    return MatchGraph(nodes, *np.triu_indices(nodes, 1))


def chosen_edges(graph: MatchGraph, partner: Partners) -> NDArray[np.bool_]:
    """Which candidate edges a matching consists of."""
    return np.asarray(partner[graph.left] == graph.right)


def partners_of(graph: MatchGraph, chosen: NDArray[np.bool_]) -> Partners:
    """The partner of every node, of chosen edges; an error where a node would have two."""
    left, right = graph.left[chosen], graph.right[chosen]
    ends = np.concatenate([left, right])
    if len(np.unique(ends)) < len(ends):
        twice = int(np.flatnonzero(np.bincount(ends, minlength=graph.nodes) > 1)[0])
        raise InputError(f"node {twice} has two partners: in a matching it has at most one")
    partner = np.full(graph.nodes, -1, np.int64)
    partner[left], partner[right] = right, left
    return partner


def best_matching(graph: MatchGraph, scores: Vector, *, perfect: bool = False) -> Partners:
    """The matching of the highest sum of scores; `perfect`: the best of those that leave no node alone."""
    if scores.shape != graph.left.shape or not np.isfinite(scores).all():
        raise InputError(f"{len(scores)} scores for {len(graph.left)} edges, or some that are no finite numbers")
    if perfect and 2 * graph.most != graph.nodes:
        raise InputError("a node must be left alone: the sides differ in size, or the number of nodes is odd")
    if graph.split is None:
        return _by_blossoms(graph, scores, perfect)
    return _by_assignment(graph, graph.split, scores, perfect)


def violating_matching(
    graph: MatchGraph, scores: Vector, y: Partners, cost: float, *, perfect: bool = False
) -> Partners:
    """The matching of the highest score plus `cost` for every edge that it has wrong or misses."""
    right = chosen_edges(graph, y)
    return best_matching(graph, scores + cost * (1.0 - 2.0 * right), perfect=perfect)


def _by_assignment(graph: MatchGraph, split: int, scores: Vector, perfect: bool) -> Partners:
    optimize = require_optional("scipy.optimize", "a bipartite matching")
    table = np.full((split, graph.nodes - split), -np.inf if perfect else 0.0)
    table[graph.left, graph.right - split] = scores if perfect else np.maximum(scores, 0.0)
    try:
        rows, columns = optimize.linear_sum_assignment(table, maximize=True)
    except ValueError:
        raise InputError("there is no perfect matching: the candidate edges do not allow one") from None
    if not perfect:
        worth = table[rows, columns] > 0
        rows, columns = rows[worth], columns[worth]
    partner = np.full(graph.nodes, -1, np.int64)
    partner[rows], partner[columns + split] = columns + split, rows
    return partner


def _by_blossoms(graph: MatchGraph, scores: Vector, perfect: bool) -> Partners:
    from netclust.models.matching.matching_kernels import match_by_blossom

    largest = float(np.abs(scores).max(initial=0.0)) or 1.0
    whole = np.rint(scores / largest * 2.0**PRECISION).astype(np.int64)
    if perfect:
        whole += (graph.nodes + 1) << PRECISION  # one edge more is worth more than any scores
    worth = whole > 0
    partner = np.empty(graph.nodes, np.int64)
    match_by_blossom(graph.nodes, graph.left[worth], graph.right[worth], whole[worth], partner)
    if perfect and (partner < 0).any():
        raise InputError("there is no perfect matching: the candidate edges do not allow one")
    return partner
