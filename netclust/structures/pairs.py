"""Features of the pairs of a set's items: dense, sparse, or computed when they are needed.

A supervised clusterer scores a pair by `w . psi(i, j)` and learns from sums of psi over pairs; it never needs more. So
a set of pair features is whatever can do these two things. Pairs are those of `index`, or all i < j, in the order of
scipy's `pdist`: (0, 1), (0, 2), ..., (1, 2), ...

>>> X = np.array([[0.0, 1.0], [0.0, 3.0], [2.0, 3.0]])
>>> pairs = ComputedPairs(X, relation="difference")  # |x_i - x_j| and a constant
>>> pairs.scores(np.array([-1.0, -1.0, 3.0])).tolist()
[1.0, -1.0, 1.0]
>>> pairs.weighted_sum(np.array([1.0, 0.0, 1.0])).tolist()  # the pairs (0, 1) and (1, 2)
[2.0, 2.0, 2.0]
>>> StoredPairs(3, pairs.dense()).scores(np.array([-1.0, -1.0, 3.0])).tolist()
[1.0, -1.0, 1.0]

The constant feature is the learned threshold between joining and not joining: leave it out only if psi has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from netclust.errors import InputError

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]
Relation = Literal["product", "difference", "gaussian"]

CHUNK = 1 << 16
"""Stored pairs whose features are computed at a time."""

_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda a, b: a * b,
    "difference": lambda a, b: np.abs(a - b),
    "gaussian": lambda a, b: np.exp(-((a - b) ** 2)),
}


class PairIndex(NamedTuple):
    """Which pairs there are: left < right, no pair twice."""

    left: Indices
    right: Indices


class PairFeatures(Protocol):
    """Features psi of the pairs of one set. Pairs that `index` leaves out score 0: neither for nor against."""

    @property
    def items(self) -> int:
        """How many items the set has."""

    @property
    def dimension(self) -> int:
        """How many features a pair has."""

    @property
    def index(self) -> PairIndex | None:
        """The pairs that are stored; None: all of them, in the order of `pdist`."""

    def scores(self, w: Vector) -> Vector:
        """Return `w . psi` of every pair."""

    def weighted_sum(self, e: Vector) -> Vector:
        """Return the sum over pairs of `e * psi`."""

    def self_scores(self, w: Vector) -> Vector:
        """Return `w . psi(i, i)` of every item: what a k-means objective has on its diagonal."""

    def self_sum(self, e: Vector) -> Vector:
        """Return the sum over items of `e * psi(i, i)`."""


def pair_count(items: int) -> int:
    """How many pairs so many items have.

    >>> pair_count(5)
    10
    """
    return items * (items - 1) // 2


def all_pairs(items: int) -> PairIndex:
    """Every pair i < j, in the order of `pdist`."""
    left, right = np.triu_indices(items, 1)
    return PairIndex(left.astype(np.int64), right.astype(np.int64))


def pair_index(items: int, left: ArrayLike, right: ArrayLike) -> PairIndex:
    """An index from pairs in any order; what is no pair of two items, or there twice, is refused.

    >>> pair_index(3, [2, 0], [0, 1]).left.tolist()
    [0, 0]
    """
    a, b = np.asarray(left, np.int64), np.asarray(right, np.int64)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"pairs need as many left items as right ones, not {a.shape} and {b.shape}")
    low, high = np.minimum(a, b), np.maximum(a, b)
    if len(low) and (low.min() < 0 or high.max() >= items):
        raise InputError(f"a pair names an item that is none of the {items} items")
    if (low == high).any():
        raise InputError(f"item {int(low[low == high][0])} is paired with itself")
    key = low * items + high
    if len(np.unique(key)) < len(key):
        raise InputError("a pair is given twice")
    return PairIndex(low, high)


def pairs_of(pairs: PairFeatures) -> PairIndex:
    """The stored pairs, also where that is all of them."""
    return all_pairs(pairs.items) if pairs.index is None else pairs.index


def same_cluster(labels: NDArray[Any], index: PairIndex | None) -> NDArray[np.bool_]:
    """Which pairs are in one cluster.

    >>> same_cluster(np.array([4, 4, 7]), None).tolist()
    [True, False, False]
    """
    left, right = all_pairs(len(labels)) if index is None else index
    return np.asarray(labels[left] == labels[right], np.bool_)


def check_numbers(values: NDArray[Any], what: str) -> None:
    """Refuse NaN and infinity, naming the first."""
    if not np.isfinite(values).all():
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(values))[0])
        raise InputError(f"{what} {list(at)} is {values[at]}: every feature must be a finite number")


@dataclass(frozen=True, eq=False)
class StoredPairs:
    """Features in an array [pairs, dimension], or in a scipy CSR matrix of that shape."""

    items: int
    psi: Any
    index: PairIndex | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        _check_rows(self.psi.shape, self.items, self.index)
        sparse = not isinstance(self.psi, np.ndarray)
        check_numbers(self.psi.data if sparse else self.psi, "pair features")

    @property
    def dimension(self) -> int:
        """How many features a pair has."""
        return int(self.psi.shape[1])

    def scores(self, w: Vector) -> Vector:
        """Return `w . psi` of every pair."""
        return np.asarray(self.psi @ w, np.float64)

    def weighted_sum(self, e: Vector) -> Vector:
        """Return the sum over pairs of `e * psi`."""
        return np.asarray(self.psi.T @ e, np.float64)

    def self_scores(self, w: Vector) -> Vector:
        """Zeros: an item has no features with itself."""
        return np.zeros(self.items)

    def self_sum(self, e: Vector) -> Vector:
        """Zeros: an item has no features with itself."""
        return np.zeros(self.dimension)


@dataclass(frozen=True, eq=False)
class ComputedPairs:
    """Features computed from two items' own, attribute by attribute: memory stays linear in items.

    `product` is x_i * x_j, `difference` |x_i - x_j|, `gaussian` exp(-(x_i - x_j)^2); `constant` adds a feature that
    is always 1 (of an item with itself it is 0, so that it counts pairs alone).
    """

    X: NDArray[np.float64]
    relation: Relation = "difference"
    constant: bool = True
    index: PairIndex | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        if self.relation not in _RELATIONS:
            raise InputError(f"relation {self.relation!r} is not known: one of {', '.join(_RELATIONS)}")
        if self.X.ndim != 2:
            raise InputError(f"items have one row of features each: an array [items, features], not {self.X.shape}")
        check_numbers(self.X, "item features")

    @property
    def items(self) -> int:
        """How many items the set has."""
        return len(self.X)

    @property
    def dimension(self) -> int:
        """How many features a pair has."""
        return int(self.X.shape[1]) + self.constant

    def scores(self, w: Vector) -> Vector:
        """Return `w . psi` of every pair."""
        own = w[: self.X.shape[1]]
        found = [psi @ own for psi in self._chunks()]
        base = float(w[-1]) if self.constant else 0.0
        return np.concatenate(found) + base if found else np.zeros(0)

    def weighted_sum(self, e: Vector) -> Vector:
        """Return the sum over pairs of `e * psi`."""
        total, at = np.zeros(self.X.shape[1]), 0
        for psi in self._chunks():
            total += e[at : at + len(psi)] @ psi
            at += len(psi)
        return np.append(total, e.sum()) if self.constant else total

    def self_scores(self, w: Vector) -> Vector:
        """Return `w . psi(i, i)` of every item."""
        return np.asarray(self._relate(self.X, self.X) @ w[: self.X.shape[1]], np.float64)

    def self_sum(self, e: Vector) -> Vector:
        """Return the sum over items of `e * psi(i, i)`."""
        total = np.asarray(e @ self._relate(self.X, self.X), np.float64)
        return np.append(total, 0.0) if self.constant else total

    def dense(self) -> NDArray[np.float64]:
        """All features at once, [pairs, dimension]: quicker than computing them again where they have room."""
        psi = np.concatenate([*self._chunks(), np.zeros((0, self.X.shape[1]))])
        return np.column_stack([psi, np.ones(len(psi))]) if self.constant else psi

    def _relate(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(_RELATIONS[self.relation](a, b), np.float64)

    def _chunks(self) -> Iterator[NDArray[np.float64]]:
        if self.index is None:
            for i in range(len(self.X) - 1):
                yield self._relate(self.X[i], self.X[i + 1 :])
            return
        left, right = self.index
        for at in range(0, len(left), CHUNK):
            chosen = slice(at, at + CHUNK)
            yield self._relate(self.X[left[chosen]], self.X[right[chosen]])


@dataclass(frozen=True, eq=False)
class StackedPairs:
    """Several kinds of features of the same pairs, one after the other."""

    parts: Sequence[PairFeatures]

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        if not self.parts:
            raise InputError("no pair features to stack")
        for part in self.parts[1:]:
            if part.items != self.items or not _same_pairs(part.index, self.index):
                raise InputError("features that are stacked must be of the same items and pairs")

    @property
    def items(self) -> int:
        """How many items the set has."""
        return self.parts[0].items

    @property
    def dimension(self) -> int:
        """How many features a pair has."""
        return sum(part.dimension for part in self.parts)

    @property
    def index(self) -> PairIndex | None:
        """The pairs that are stored."""
        return self.parts[0].index

    def scores(self, w: Vector) -> Vector:
        """Return `w . psi` of every pair."""
        return self._over_weights(w, lambda part, own: part.scores(own))

    def weighted_sum(self, e: Vector) -> Vector:
        """Return the sum over pairs of `e * psi`."""
        return np.concatenate([part.weighted_sum(e) for part in self.parts])

    def self_scores(self, w: Vector) -> Vector:
        """Return `w . psi(i, i)` of every item."""
        return self._over_weights(w, lambda part, own: part.self_scores(own))

    def self_sum(self, e: Vector) -> Vector:
        """Return the sum over items of `e * psi(i, i)`."""
        return np.concatenate([part.self_sum(e) for part in self.parts])

    def _over_weights(self, w: Vector, score: Callable[[PairFeatures, Vector], Vector]) -> Vector:
        ends = np.cumsum([part.dimension for part in self.parts])[:-1]
        shares = np.split(w, ends)
        return np.asarray(sum(score(part, own) for part, own in zip(self.parts, shares, strict=True)))


def _same_pairs(a: PairIndex | None, b: PairIndex | None) -> bool:
    if a is None or b is None:
        return a is b
    return bool(np.array_equal(a.left, b.left) and np.array_equal(a.right, b.right))


def _check_rows(shape: tuple[int, ...], items: int, index: PairIndex | None) -> None:
    rows = pair_count(items) if index is None else len(index.left)
    if len(shape) != 2 or shape[0] != rows:
        raise InputError(f"pair features have shape {list(shape)}, expected {rows} rows: one a pair of {items} items")
