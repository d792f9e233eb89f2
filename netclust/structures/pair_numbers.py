"""Which pair has which number among the stored ones, and back, without a list of all pairs.

>>> left, right = pairs_at(4, None, np.array([0, 3, 5]))
>>> left.tolist(), right.tolist()
([0, 1, 2], [1, 2, 3])
>>> numbers_of(4, None, left, right).tolist()
[0, 3, 5]
"""

from __future__ import annotations

import numpy as np

from netclust.structures.pairs import Indices, PairIndex, Vector, pair_count

__all__ = ["numbers_of", "pair_indicator", "pairs_at", "stored_pairs"]


def stored_pairs(items: int, index: PairIndex | None) -> int:
    """How many pairs are stored."""
    return pair_count(items) if index is None else len(index.left)


def pairs_at(items: int, index: PairIndex | None, numbers: Indices) -> PairIndex:
    """The pairs of some numbers."""
    if index is not None:
        return PairIndex(index.left[numbers], index.right[numbers])
    starts = _starts(items)
    left = np.searchsorted(starts, numbers, side="right") - 1
    return PairIndex(left, numbers - starts[left] + left + 1)


def numbers_of(items: int, index: PairIndex | None, left: Indices, right: Indices) -> Indices:
    """The numbers of some stored pairs, left < right."""
    if index is None:
        return np.asarray(_starts(items)[left] + right - left - 1, np.int64)
    keys = index.left * items + index.right
    order = np.argsort(keys)
    return np.asarray(order[np.searchsorted(keys, left * items + right, sorter=order)], np.int64)


def pair_indicator(items: int, index: PairIndex | None, numbers: Indices) -> Vector:
    """Return 1 for each of some stored pairs, 0 for the others."""
    chosen = np.zeros(stored_pairs(items, index))
    chosen[numbers] = 1.0
    return chosen


def _starts(items: int) -> Indices:
    """The number of every item's first pair to the right; the last item has none."""
    i = np.arange(max(items - 1, 0), dtype=np.int64)
    return np.asarray(i * items - i * (i + 1) // 2, np.int64)
