"""Edge losses: the cost of a tree as a sum over its arcs, so that loss-augmented inference stays exact.

`delta_f` charges each wrong arc, and `r` more for a root arc into a record that starts no gold cluster.
`delta_yj` counts missing links at 1 and wrong links at `r`. Both are 0 exactly when the tree induces y
(`delta_yj` for r > 0).

>>> y = np.array([1, 2, 2, 3, 2, 1, 2])
>>> chain = np.array([0, 1, 2, 3, 4, 5, 6])
>>> delta_f(y, r=1.0).total(chain), delta_yj(y, r=0.5).total(chain)
(5.0, 5.5)
>>> split = np.array([0, 0, 0, 0, 0, 1, 0])
>>> delta_f(y, r=1.0).total(split), delta_yj(y, r=0.5).total(split)
(6.0, 3.0)

The adopted loss (5.5) is not always below the original for r > 0, because the penalty changed sides: the
original charges a root arc that is missing, the adopted one a root arc that is invented.

Reference: I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of
Trento, 2018; equations (5.4) and (5.5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from netclust.structures.tree import Labels, Mask, Matrix, Parents, arc_sum, candidate_arcs, gold_arcs


@dataclass(frozen=True, eq=False)
class ArcLoss:
    """The loss of every arc against one gold clustering: arc (i, j) at `arcs[j-1, i]`, plus a constant."""

    arcs: Matrix
    constant: float = 0.0

    def total(self, h: Parents) -> float:
        """Return the loss of a tree."""
        return self.constant + arc_sum(self.arcs, h)


EdgeLoss = Callable[[Labels], ArcLoss]
"""An edge loss before it meets a gold clustering; `functools.partial(delta_f, r=2.0)` sets its `r`."""


def delta_f(y: Labels, r: float = 1.0, candidates: Mask | None = None) -> ArcLoss:
    """Delta_F as adopted (5.5): 1 for a link across gold clusters, 1 + r for an invented root arc."""
    arcs = (candidate_arcs(len(y)) & ~gold_arcs(y, candidates)).astype(np.float64)
    arcs[:, 0] *= 1.0 + r
    return ArcLoss(arcs)


def delta_yj(y: Labels, r: float = 0.1, candidates: Mask | None = None) -> ArcLoss:
    """Delta_YJ (5.4): n(y) - k(y), minus 1 for a link within a gold cluster, plus r for one across."""
    n = len(y)
    arcs = np.zeros((n, n + 1))
    # the root column stays 0: a root arc stands for "no link"
    arcs[:, 1:] = np.tril(np.where(y[:, None] == y, -1.0, r), -1)
    links = n - int(gold_arcs(y, candidates)[:, 0].sum())  # n - k, where every arc is a candidate
    return ArcLoss(arcs, float(links))
