"""The K structure: a forest of the best pairs, found by Kruskal's algorithm; its components are the clusters.

Pairs are taken from the heaviest down, of equal ones the first in the order of the pairs, if they join two components,
and while their score is above 0: any other set of pairs without a cycle has a lower sum.

>>> pairs = {(0, 1): 0.8, (0, 2): -0.3, (0, 3): -0.6, (0, 4): -0.2, (1, 2): 0.1}
>>> pairs |= {(1, 3): -0.1, (1, 4): -0.4, (2, 3): 0.4, (2, 4): -0.7, (3, 4): -0.25}
>>> scores = PairScores(5, np.array(list(pairs.values())))
>>> h = best_forest(scores)
>>> [list(pairs)[k] for k in h.edges], h.clusters().tolist(), round(h.sum(scores.values), 9)
([(0, 1), (2, 3), (1, 2)], [0, 0, 0, 0, 1], 1.3)

The best forest of a given clustering is a maximum spanning tree of every cluster, also through scores below 0:

>>> h = gold_forest(scores, np.array([1, 1, 2, 2, 1]))
>>> [list(pairs)[k] for k in h.edges], h.clusters().tolist()
([(0, 1), (2, 3), (0, 4)], [0, 0, 1, 1, 0])

Where only some pairs are stored, a given cluster may not hang together by them: then its connected parts each get a
tree (`connected_parts`), and these parts stand for the truth. With the threshold at 0 this is also single-link
clustering: the components are those of the graph of all pairs above 0.

I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018; chapter 2,
after C.-N. Yu and T. Joachims, "Learning structural SVMs with latent variables", ICML 2009. T. Finley, "Supervised
Clustering with Structural SVMs", PhD thesis, Cornell University, 2009; Algorithm 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.structures.pair_numbers import pair_indicator, pairs_at, stored_pairs
from netclust.structures.pairs import Indices, PairIndex, Vector, same_cluster
from netclust.structures.partition import Labels, PairScores

__all__ = ["PairForest", "best_forest", "check_forest_labels", "check_forest_scores", "connected_parts", "gold_forest"]

BLOCK = 8
"""The heaviest pairs are sorted first, so many an item: mostly they connect what can be connected."""


@dataclass(frozen=True, eq=False)
class PairForest:
    """Pairs without a cycle: the numbers of the stored pairs, in the order in which they were taken."""

    items: int
    edges: Indices
    index: PairIndex | None = None

    def clusters(self) -> Labels:
        """The component of each item, numbered from 0 by first appearance."""
        return _labels(self.items, self.pairs())

    def pairs(self) -> PairIndex:
        """The edges as pairs of items."""
        return pairs_at(self.items, self.index, self.edges)

    def chosen(self) -> Vector:
        """1 for every stored pair that is an edge, 0 for the others."""
        return pair_indicator(self.items, self.index, self.edges)

    def sum(self, values: Vector) -> float:
        """The sum of the pairs' values over the edges: the score, from scores."""
        return float(values[self.edges].sum())


def best_forest(scores: PairScores, *, spanning: bool = False) -> PairForest:
    """The forest of the highest sum; `spanning` takes pairs of 0 and below too, as long as they join components.

    Give `w . psi` to predict, `w . psi + C*l` for the max-violating forest.
    """
    return _grow(scores, None if spanning else scores.values > 0)


def gold_forest(scores: PairScores, y: NDArray[Any]) -> PairForest:
    """h*, the best forest that induces y: a maximum spanning tree of every cluster."""
    check_forest_labels(y, scores.items)
    return _grow(scores, same_cluster(y, scores.index))


def connected_parts(y: NDArray[Any], index: PairIndex | None) -> Labels:
    """The finest truth that forests can reach: y's clusters, split where stored pairs within them do not connect.

    >>> connected_parts(np.array([7, 7, 7, 5]), PairIndex(np.array([0, 2]), np.array([1, 3]))).tolist()
    [0, 0, 1, 2]
    """
    within = np.flatnonzero(same_cluster(y, index))
    return _labels(len(y), pairs_at(len(y), index, within))


def check_forest_scores(scores: PairScores) -> None:
    """Refuse scores that are not one a stored pair, or no numbers."""
    stored = stored_pairs(scores.items, scores.index)
    if scores.values.shape != (stored,):
        raise InputError(f"pair scores have shape {list(scores.values.shape)}, expected one for each of {stored} pairs")
    if np.isnan(scores.values).any():
        raise InputError("a pair score is not a number: check the weights and the pair features")


def check_forest_labels(y: NDArray[Any], items: int) -> None:
    """Refuse labels that are not one an item."""
    if np.shape(y) != (items,):
        raise InputError(f"labels have shape {list(np.shape(y))}, expected one for each of {items} items")


def _grow(scores: PairScores, allowed: NDArray[np.bool_] | None) -> PairForest:
    """Kruskal on blocks of pairs, the heaviest first: pairs that light ones cannot join any more are never sorted."""
    check_forest_scores(scores)
    items, index, values = scores.items, scores.index, scores.values
    rest = np.arange(len(values)) if allowed is None else np.flatnonzero(allowed)
    components, edges, block = _Components(items), [np.zeros(0, np.int64)], BLOCK * items
    while len(rest) and components.count > 1:
        heavy, rest = _split(values, rest, block)
        order = heavy[np.argsort(-values[heavy], kind="stable")]
        edges.append(order[components.join(pairs_at(items, index, order))])
        if len(rest) and components.count > 1:
            labels = components.labels()
            left, right = pairs_at(items, index, rest)
            rest = rest[labels[left] != labels[right]]
        block *= 4
    return PairForest(items, np.concatenate(edges), index)


def _split(values: Vector, numbers: Indices, block: int) -> tuple[Indices, Indices]:
    """About so many of the heaviest pairs, and the others; equal ones are on one side."""
    if len(numbers) <= 2 * block:
        return numbers, numbers[:0]
    own = values[numbers]
    heavy = own >= np.partition(own, len(own) - block)[len(own) - block]
    return numbers[heavy], numbers[~heavy]


class _Components:
    """Union-find over the items, by its kernels."""

    def __init__(self, items: int) -> None:
        self.count = items
        self._parent = np.arange(items)

    def join(self, pairs: PairIndex) -> Indices:
        """The places of the pairs that join two components, trying them in their order."""
        from netclust.kernels.structured.union_find import grow_forest

        taken = np.empty(max(self.count - 1, 0), np.int64)
        joined = grow_forest(*pairs, self._parent, taken)
        self.count -= joined
        return taken[:joined]

    def labels(self) -> Labels:
        """The component of each item, numbered from 0 by first appearance."""
        from netclust.kernels.structured.union_find import number_components

        labels = np.empty(len(self._parent), np.int64)
        number_components(self._parent, labels)
        return labels


def _labels(items: int, pairs: PairIndex) -> Labels:
    components = _Components(items)
    components.join(pairs)
    return components.labels()
