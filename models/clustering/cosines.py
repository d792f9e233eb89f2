"""Cosines of pairs of texts, from sparse vectors, computed when they are needed or kept.

>>> from scipy.sparse import csr_matrix
>>> words = csr_matrix(np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 0.0]]))  # rows of length 1, or of no words
>>> pairs = CosinePairs([words], missing=np.array([[False], [False], [True]]))
>>> pairs.scores(np.array([1.0, -0.1])).tolist()  # a price on a text that is missing
[0.6, -0.1, -0.1]
>>> pairs.weighted_sum(np.array([1.0, 1.0, 0.0])).tolist()
[0.6, 1.0]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.structures.pairs import PairFeatures, PairIndex, Vector, check_numbers

__all__ = ["CosinePairs", "KeptPairs"]

_CHUNK = 1 << 12


@dataclass(frozen=True, eq=False)
class CosinePairs:
    """Pair features from items' sparse vectors: one CSR matrix [items, slots] of unit rows a feature.

    `missing` [items, fields] adds a feature a column: 1 where either item misses that field. Memory is that of the
    vectors, and of a few thousand pairs at a time.
    """

    vectors: Sequence[Any]
    missing: NDArray[np.bool_]
    index: PairIndex | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        if self.missing.ndim != 2 or any(matrix.shape[0] != len(self.missing) for matrix in self.vectors):
            raise InputError("cosines need as many rows in every matrix, and in `missing`, as there are items")
        for matrix in self.vectors:
            check_numbers(matrix.data, "item vectors")

    @property
    def items(self) -> int:
        """How many items the set has."""
        return len(self.missing)

    @property
    def dimension(self) -> int:
        """How many features a pair has."""
        return len(self.vectors) + int(self.missing.shape[1])

    def scores(self, w: Vector) -> Vector:
        """Return `w . psi` of every pair."""
        return np.concatenate([*(psi @ w for psi in self._chunks()), np.zeros(0)])

    def weighted_sum(self, e: Vector) -> Vector:
        """Return the sum over pairs of `e * psi`."""
        total, at = np.zeros(self.dimension), 0
        for psi in self._chunks():
            total += e[at : at + len(psi)] @ psi
            at += len(psi)
        return total

    def self_scores(self, w: Vector) -> Vector:
        """Return `w . psi(i, i)` of every item."""
        return np.asarray(self._own() @ w, np.float64)

    def self_sum(self, e: Vector) -> Vector:
        """Return the sum over items of `e * psi(i, i)`."""
        return np.asarray(e @ self._own(), np.float64)

    def dense(self) -> NDArray[np.float64]:
        """All features at once, [pairs, dimension]."""
        return np.concatenate([*self._chunks(), np.zeros((0, self.dimension))])

    def _own(self) -> NDArray[np.float64]:
        lengths = [np.asarray(matrix.multiply(matrix).sum(axis=1), np.float64).ravel() for matrix in self.vectors]
        return np.column_stack([*lengths, self.missing.astype(np.float64)])

    def _chunks(self) -> Iterator[NDArray[np.float64]]:
        """The features of some pairs at a time, in the order of the pairs."""
        if self.index is None:
            yield from self._rows()
            return
        left, right = self.index
        for at in range(0, len(left), _CHUNK):
            a, b = left[at : at + _CHUNK], right[at : at + _CHUNK]
            cosines = [np.asarray(v[a].multiply(v[b]).sum(axis=1), np.float64).ravel() for v in self.vectors]
            yield np.column_stack([*cosines, (self.missing[a] | self.missing[b]).astype(np.float64)])

    def _rows(self) -> Iterator[NDArray[np.float64]]:
        """As many whole rows of the triangle at a time as make a chunk."""
        at, columns = 0, [matrix.T.tocsc() for matrix in self.vectors]
        while at < self.items - 1:
            end = min(at + max(_CHUNK // (self.items - at), 1), self.items - 1)
            above = np.arange(self.items) > np.arange(at, end)[:, None]
            psi = np.empty((int(above.sum()), self.dimension))
            for f, (matrix, transposed) in enumerate(zip(self.vectors, columns, strict=True)):
                psi[:, f] = (matrix[at:end] @ transposed).toarray()[above]
            for f in range(self.missing.shape[1]):
                flag = self.missing[:, f]
                psi[:, len(self.vectors) + f] = (flag[at:end, None] | flag)[above]
            yield psi
            at = end


@dataclass(frozen=True, eq=False)
class KeptPairs:
    """Features that were computed once and are kept, [pairs, dimension]: quicker where there is room for them."""

    pairs: PairFeatures
    """Where they are from; what an item has with itself is asked of it."""
    psi: NDArray[np.float64]

    @property
    def items(self) -> int:
        """How many items the set has."""
        return self.pairs.items

    @property
    def dimension(self) -> int:
        """How many features a pair has."""
        return self.pairs.dimension

    @property
    def index(self) -> PairIndex | None:
        """The pairs that are stored."""
        return self.pairs.index

    def scores(self, w: Vector) -> Vector:
        """Return `w . psi` of every pair."""
        return self.psi @ w

    def weighted_sum(self, e: Vector) -> Vector:
        """Return the sum over pairs of `e * psi`."""
        return e @ self.psi

    def self_scores(self, w: Vector) -> Vector:
        """Return `w . psi(i, i)` of every item."""
        return self.pairs.self_scores(w)

    def self_sum(self, e: Vector) -> Vector:
        """Return the sum over items of `e * psi(i, i)`."""
        return self.pairs.self_sum(e)
