"""The E structure on rows of candidates: every item takes its best earlier candidate, or the root if none is above 0.

The rows are those of `netclust.structures.hashed_pairs`: `starts[j]:starts[j + 1]` are item j's pairs with the items
right before it, oldest first. Time and memory are linear in the pairs; `netclust.structures.links` says the same of any
pairs, with a matrix of items by items.

>>> starts = np.array([0, 0, 1, 3, 6])  # item 1 has 1 candidate, item 2 has 2, item 3 has 3
>>> scores = np.array([0.6, -0.4, 0.3, 0.2, -0.5, -0.1])
>>> h = best_antecedents(starts, scores)
>>> h.rows.tolist(), h.parents.tolist(), h.clusters().tolist(), round(h.sum(scores), 9)
([-1, 0, 2, 3], [0, 1, 2, 1], [0, 0, 0, 0], 1.1)
>>> y = np.array([1, 2, 2, 1])
>>> gold_antecedents(starts, scores, y).parents.tolist()
[0, 0, 2, 1]
>>> prices = AntecedentCosts(within=0.0, across=1.0, root=2.0)  # Delta_F (5.5) with r = 1
>>> violating_antecedents(starts, scores, y, prices, C=0.5).parents.tolist()
[0, 1, 0, 0]

The root is right for an item that has no earlier member of its cluster among its candidates. Of equal arcs the root is
taken, then the oldest.

I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018; chapter 2
and Algorithm 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.structures.forest import check_forest_labels
from netclust.structures.pairs import Indices, Vector
from netclust.structures.tree import Parents

__all__ = [
    "AntecedentCosts",
    "Antecedents",
    "antecedent_prices",
    "best_antecedents",
    "gold_antecedents",
    "integer_labels",
    "violating_antecedents",
]


class AntecedentCosts(NamedTuple):
    """What arcs cost: a link within a true cluster, one across, and a root arc where a link would be right."""

    within: float
    across: float
    root: float


@dataclass(frozen=True, eq=False)
class Antecedents:
    """A tree: `rows[j]` is the number of the pair that item j takes, -1 for the root."""

    starts: Indices
    rows: Indices

    @property
    def edges(self) -> Indices:
        """The numbers of the pairs that are links, in the order of their later items."""
        return self.rows[self.rows >= 0]

    @property
    def parents(self) -> Parents:
        """The parent of each item as in `structures.tree`: 0 for the root, i + 1 for item i."""
        return self._followed[0]

    def clusters(self) -> NDArray[np.int64]:
        """The cluster of each item, numbered from 0 by first appearance."""
        return self._followed[1]

    def chosen(self) -> Vector:
        """1 for every pair that is a link, 0 for the others."""
        chosen = np.zeros(int(self.starts[-1]))
        chosen[self.edges] = 1.0
        return chosen

    def sum(self, values: Vector) -> float:
        """The sum of the pairs' values over the links: the score, from scores."""
        return float(values[self.edges].sum())

    @cached_property
    def _followed(self) -> tuple[Parents, NDArray[np.int64]]:
        from netclust.models.coreference.antecedent_kernels import follow_rows

        parents, labels = np.empty_like(self.rows), np.empty_like(self.rows)
        follow_rows(self.starts, self.rows, parents, labels)
        return parents, labels


def best_antecedents(starts: Indices, scores: Vector) -> Antecedents:
    """The tree of the highest sum of scores, the root at 0."""
    from netclust.models.coreference.antecedent_kernels import best_antecedent_rows

    _check_scores(starts, scores)
    rows = np.empty(len(starts) - 1, np.int64)
    best_antecedent_rows(starts, scores, rows)
    return Antecedents(starts, rows)


def gold_antecedents(starts: Indices, scores: Vector, y: NDArray[Any]) -> Antecedents:
    """h*, the best tree that induces y, as far as the candidates reach; only scores within clusters are read."""
    from netclust.models.coreference.antecedent_kernels import gold_antecedent_rows

    _check_scores(starts, scores)
    rows = np.empty(len(starts) - 1, np.int64)
    gold_antecedent_rows(starts, scores, integer_labels(y, len(rows)), rows)
    return Antecedents(starts, rows)


def violating_antecedents(
    starts: Indices, scores: Vector, y: NDArray[Any], prices: AntecedentCosts, C: float = 1.0
) -> Antecedents:
    """h^, the tree of the highest sum of scores plus C times the prices of its arcs (Algorithm 5)."""
    from netclust.models.coreference.antecedent_kernels import violating_antecedent_rows

    _check_scores(starts, scores)
    rows = np.empty(len(starts) - 1, np.int64)
    within, across, root = map(float, prices)
    violating_antecedent_rows(starts, scores, integer_labels(y, len(rows)), within, across, root, float(C), rows)
    return Antecedents(starts, rows)


def antecedent_prices(h: Antecedents, y: NDArray[Any], prices: AntecedentCosts) -> tuple[Vector, int]:
    """Return the cost of every item's arc, and for how many items a link is right: n - k, if all pairs are stored."""
    from netclust.models.coreference.antecedent_kernels import price_rows

    paid = np.empty(len(h.rows))
    within, across, root = map(float, prices)
    links = price_rows(h.starts, h.rows, integer_labels(y, len(paid)), within, across, root, paid)
    return paid, int(links)


def integer_labels(y: NDArray[Any], items: int) -> NDArray[np.int64]:
    """Labels as numbers, one an item."""
    check_forest_labels(y, items)
    if np.issubdtype(y.dtype, np.integer):
        return np.ascontiguousarray(y, np.int64)
    return np.unique(y, return_inverse=True)[1].reshape(items).astype(np.int64)


def _check_scores(starts: Indices, scores: Vector) -> None:
    if scores.shape != (starts[-1],):
        raise InputError(f"pair scores have shape {list(scores.shape)}, expected one for each of {starts[-1]} pairs")
    if np.isnan(scores).any():
        raise InputError("a pair score is not a number: check the weights and the pair features")
