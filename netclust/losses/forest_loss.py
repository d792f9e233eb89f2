"""Delta_YJ of a forest: n(y) - k(y), minus 1 for a pair within a true cluster, plus r for one across.

It is 0 exactly when the forest induces y, and it splits over pairs: added to their scores it makes Kruskal's forest the
max-violating one.

>>> from netclust.structures.forest import PairForest
>>> loss = delta_yj_pairs(np.array([1, 1, 2]), None, r=0.5)
>>> loss.pairs.tolist(), loss.constant
([-1.0, 0.5, 0.5], 1.0)
>>> [loss.total(PairForest(3, np.array(taken))) for taken in ([0], [0, 2], [1])]
[0.0, 0.5, 1.5]

Where only some pairs are stored, y is what they can connect of it (`netclust.structures.forest.connected_parts`).

C.-N. Yu and T. Joachims, "Learning structural SVMs with latent variables", ICML 2009; equation (5.4) of I. Haponchyk,
"Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.structures.forest import PairForest, connected_parts
from netclust.structures.pairs import PairIndex, Vector, same_cluster

__all__ = ["ForestLoss", "delta_yj_pairs"]


@dataclass(frozen=True, eq=False)
class ForestLoss:
    """The loss of every stored pair against one gold clustering, plus a constant."""

    pairs: Vector
    constant: float

    def total(self, h: PairForest) -> float:
        """Return the loss of a forest."""
        return self.constant + h.sum(self.pairs)


def delta_yj_pairs(y: NDArray[Any], index: PairIndex | None, r: float = 0.1) -> ForestLoss:
    """Delta_YJ (5.4) against y on the stored pairs. A small r makes missing links dear and wrong ones cheap."""
    if not r > 0:
        raise InputError(f"r is the price of a wrong link and must be above 0, not {r}")
    reachable = connected_parts(y, index)
    joins = len(y) - (int(reachable.max()) + 1 if len(y) else 0)
    return ForestLoss(np.where(same_cluster(y, index), -1.0, r), float(joins))
