"""Supervised clustering by antecedents: the E structure on hashed pairs, in time linear in the pairs.

An example is `HashedPairs` with true labels; every item links to one of the items right before it, or to the root,
which has no features and scores 0. It is `netclust.problems.forest_problem.LinkProblem` on rows of sparse features, and
has the weights of `ForestProblem`, the K structure on the same pairs.

>>> from netclust.learners.perceptron import Lsp
>>> x = HashedPairs.of_rows(3, 3, [1, 2], [[0, 1], [0, 2], [0, 2]])  # slot 0 always, 1 where colours match, else 2
>>> y = np.array([7, 7, 9])
>>> for loss in ("f", "yj"):
...     problem = AntecedentProblem(3, loss)
...     w = Lsp().fit(problem, [(x, y)], epochs=5).last
...     print(w.tolist(), problem.predict(x, w).clusters().tolist())
[1.0, 3.0, -2.0] [0, 0, 1]
[0.0, 2.0, -2.0] [0, 0, 1]

`f` is Delta_F (5.5): 1 for a link across true clusters, 1 + r for a root arc where a link would be right. `yj` is
Delta_YJ (5.4): 1 for a missing link, r for one across, 0 for root arcs.

I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018; chapters 2,
3 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.coreference.antecedent_links import (
    AntecedentCosts,
    Antecedents,
    antecedent_prices,
    best_antecedents,
    gold_antecedents,
    violating_antecedents,
)
from netclust.problems.sparse_features import SparseVector, row_difference, scores_within
from netclust.structures.forest import check_forest_labels
from netclust.structures.hashed_pairs import HashedPairs
from netclust.structures.pairs import Vector

__all__ = ["AntecedentLoss", "AntecedentProblem"]

AntecedentLoss = Literal["f", "yj"]

USUAL_R = {"f": 1.0, "yj": 0.1}


@dataclass(frozen=True)
class AntecedentProblem:
    """The E structure on hashed pairs with Delta_F or Delta_YJ; `r` None is 1 for the first and 0.1 for the second."""

    dimension: int
    edge_loss: AntecedentLoss = "f"
    r: float | None = None

    def __post_init__(self) -> None:
        """Refuse settings that cannot be meant."""
        if self.edge_loss not in USUAL_R:
            raise InputError(f"the loss is {self.edge_loss!r}: use 'f' (Delta_F) or 'yj' (Delta_YJ)")
        if self.r is not None and not (self.r > 0 or (self.r == 0 and self.edge_loss == "f")):
            raise InputError(f"r is {self.r}: the price of a wrong arc is above 0")

    @property
    def prices(self) -> AntecedentCosts:
        """What the arcs of a tree cost."""
        r = USUAL_R[self.edge_loss] if self.r is None else self.r
        return AntecedentCosts(0.0, 1.0, 1.0 + r) if self.edge_loss == "f" else AntecedentCosts(-1.0, r, 0.0)

    def joint_features(self, x: HashedPairs, h: Antecedents) -> Vector:
        """Return the sum of the features of the links; root arcs have none."""
        from netclust.kernels.structured.sparse_rows import add_rows

        total = np.zeros(self.dimension)
        add_rows(x.at, x.slots, h.edges, 1.0, total)
        return total

    def difference(self, x: HashedPairs, a: Antecedents, b: Antecedents) -> SparseVector:
        """Return the features of a's links minus those of b's."""
        differ = a.rows != b.rows
        return row_difference(x, *(h.rows[differ & (h.rows >= 0)] for h in (a, b)))

    def predict(self, x: HashedPairs, w: Vector) -> Antecedents:
        """Return every item's best candidate above 0."""
        return best_antecedents(x.starts, self._scores(x, w))

    def max_violating(self, x: HashedPairs, y: NDArray[Any], w: Vector, C: float) -> tuple[Antecedents, float]:
        """Return the tree of Algorithm 5 and its loss."""
        h = violating_antecedents(x.starts, self._scores(x, w), y, self.prices, C)
        return h, self.loss(y, h)

    def gold(self, x: HashedPairs, y: NDArray[Any], w: Vector) -> Antecedents:
        """Return the best links that induce y; pairs across clusters are not scored."""
        self._check(x, w)
        check_forest_labels(y, x.items)
        return gold_antecedents(x.starts, scores_within(x, y, w), y)

    def loss(self, y: NDArray[Any], h: Antecedents) -> float:
        """Return the edge loss of a tree."""
        paid, links = antecedent_prices(h, y, self.prices)
        return (links if self.edge_loss == "yj" else 0.0) + float(paid.sum())

    def _scores(self, x: HashedPairs, w: Vector) -> Vector:
        self._check(x, w)
        return x.scores(w)

    def _check(self, x: HashedPairs, w: Vector) -> None:
        if x.dimension != self.dimension or np.shape(w) != (self.dimension,):
            raise InputError(f"{self.dimension} slots are expected, the example has {x.dimension}, w {np.size(w)}")
