"""The loss of a ranking, 1 - average precision, and how it splits over the wrong items given what is below them.

`Delta_ap = (1/P) sum_j I-_j sum_{k>j} I+_k / k` (6.2): a wrong item at j pays 1/k for every right one further down.

>>> from fractions import Fraction
>>> terms = ap_terms(np.array([0, 1, 0, 1, 1]))
>>> [str(Fraction(t).limit_denominator(100)) for t in terms]  # the wrong items at 1 and 3 pay
['19/60', '0', '3/20', '0', '0']
>>> delta_ap(np.array([0, 1, 0, 1, 1])).__round__(6), delta_ap(np.array([1, 1, 0])), delta_ap(np.array([0, 0]))
(0.466667, 0.0, 0.0)

Reference: I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018;
section 6.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.structures.pairs import Vector

__all__ = ["ap_terms", "delta_ap"]


def ap_terms(ranked: NDArray[Any]) -> Vector:
    """What the item at each place adds to the loss; labels in ranked order, right above 0."""
    right = np.asarray(ranked) > 0
    paid = right / np.arange(1, len(right) + 1)
    below = np.cumsum(paid[::-1])[::-1] - paid
    return np.where(right, 0.0, below / max(int(right.sum()), 1))


def delta_ap(ranked: NDArray[Any]) -> float:
    """1 - average precision: exactly 0 where no right item is below a wrong one (also where none is right)."""
    right = np.asarray(ranked) > 0
    if (right[:-1] >= right[1:]).all():
        return 0.0
    return float(ap_terms(ranked).sum())
