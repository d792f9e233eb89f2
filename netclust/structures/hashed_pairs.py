"""Pairs of an ordered set (mentions of a text, records of a stream) with many features that are there or not.

Every item is paired with some of the items just before it; a pair's features are slots of a hashed table, each worth 1.
Rows are in the order of the later items, and for each of them from the oldest candidate to the newest.

>>> pairs = HashedPairs.of_rows(3, 8, [1, 2], [[0, 5], [1], [0, 1, 5]])  # item 1 has 1 candidate, item 2 has 2
>>> pairs.index.left.tolist(), pairs.index.right.tolist()
([0, 0, 1], [1, 2, 2])
>>> pairs.scores(np.array([1.0, 2.0, 0, 0, 0, 10.0, 0, 0])).tolist()
[11.0, 2.0, 13.0]
>>> pairs.weighted_sum(np.array([1.0, 0.0, 1.0])).tolist()
[2.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0]
>>> fewer = pairs.with_slots(np.array([5, 1]))  # slot 5 becomes 0, slot 1 stays 1
>>> fewer.dimension, fewer.scores(np.array([10.0, 2.0])).tolist()
(2, [10.0, 2.0, 12.0])

They are `netclust.structures.pairs.PairFeatures`, so every learner of forests and links takes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.structures.pairs import Indices, PairIndex, Vector

__all__ = ["HashedPairs", "Slots"]

Slots = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class HashedPairs:
    """Rows `starts[j]:starts[j + 1]` are item j's pairs with the items right before it, oldest first.

    Row r has a 1 in `slots[at[r]:at[r + 1]]`; a slot that is there twice counts twice.
    """

    items: int
    dimension: int
    starts: Indices
    at: Indices
    slots: Slots

    def __post_init__(self) -> None:
        """Refuse what would be read out of bounds."""
        counts = np.diff(self.starts)
        if self.items < 0 or self.starts.shape != (self.items + 1,) or self.starts[0] != 0 or (counts < 0).any():
            raise InputError(f"{self.items} items need {self.items + 1} starts of rows, rising from 0")
        if (counts > np.arange(self.items)).any():
            raise InputError("an item has more candidates than there are items before it")
        if self.at.shape != (self.starts[-1] + 1,) or self.at[0] != 0 or (np.diff(self.at) < 0).any():
            raise InputError(f"{self.starts[-1]} pairs need one more start of slots, rising from 0")
        if self.slots.shape != (self.at[-1],) or (len(self.slots) and self.slots.max() >= self.dimension):
            raise InputError(f"slots must be {self.at[-1]} numbers below {self.dimension}")

    @classmethod
    def of_rows(
        cls, items: int, dimension: int, candidates: Sequence[int], rows: Sequence[Sequence[int]]
    ) -> HashedPairs:
        """From lists: how many candidates the items from the second on have, and the slots of every row."""
        starts = np.concatenate([[0, 0], np.cumsum(candidates)])[: items + 1].astype(np.int64)
        at = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        return cls(items, dimension, starts, at, np.array([slot for row in rows for slot in row], np.uint32))

    @cached_property
    def index(self) -> PairIndex:
        """The pairs (left, right) of the rows."""
        counts = np.diff(self.starts)
        right = np.repeat(np.arange(self.items), counts)
        left = right - np.repeat(self.starts[1:], counts) + np.arange(len(right))
        return PairIndex(left, right)

    def scores(self, w: Vector) -> Vector:
        """Return `w . psi` of every pair."""
        from netclust.kernels.structured.sparse_rows import score_rows

        scores = np.empty(len(self.at) - 1)
        score_rows(self.at, self.slots, self._weights(w), scores)
        return scores

    def weighted_sum(self, e: Vector) -> Vector:
        """Return the sum over pairs of `e * psi`."""
        from netclust.kernels.structured.sparse_rows import add_weighted_rows

        if e.shape != (len(self.at) - 1,):
            raise InputError(f"there are {len(e)} numbers for {len(self.at) - 1} pairs")
        total = np.zeros(self.dimension)
        add_weighted_rows(self.at, self.slots, np.ascontiguousarray(e, np.float64), total)
        return total

    def self_scores(self, w: Vector) -> Vector:
        """Zeros: an item has no features with itself."""
        return np.zeros(self.items)

    def self_sum(self, e: Vector) -> Vector:
        """Zeros: an item has no features with itself."""
        return np.zeros(self.dimension)

    def with_slots(self, chosen: Indices) -> HashedPairs:
        """The same pairs with the chosen features alone: slot chosen[k] becomes k."""
        from netclust.kernels.structured.sparse_rows import keep_slots

        if len(chosen) and not (np.min(chosen) >= 0 and np.max(chosen) < self.dimension):
            raise InputError(f"chosen slots must be numbers from 0 to {self.dimension - 1}")
        if len(np.unique(chosen)) != len(chosen):
            raise InputError("a slot is chosen twice")
        number = np.full(self.dimension, -1, np.int64)
        number[chosen] = np.arange(len(chosen))
        at, kept = np.empty_like(self.at), np.empty_like(self.slots)
        n = keep_slots(self.at, self.slots, number, at, kept)
        return HashedPairs(self.items, len(chosen), self.starts, at, kept[:n].copy())

    def _weights(self, w: Vector) -> Vector:
        if w.shape != (self.dimension,):
            raise InputError(f"there are {len(w)} weights for {self.dimension} slots")
        return np.ascontiguousarray(w, np.float64)
