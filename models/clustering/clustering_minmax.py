"""Learning to cluster through a relaxation, as one convex program: the LP and SDP min-max learners.

Weights w score a pair by w . psi, a partition by the sum over pairs within clusters. The learner asks that the true
partition beats every relaxed one by its loss, the number of pairs on which they differ (no percent, no 1 / m^2: the
convention of the source, every pair once):

    min 0.5 |w|^2 + C sum of xi_i,   xi_i = max over relaxed mu of [w . psi(mu) + loss(mu)] - w . psi(y_i)

The maximum is replaced by its dual program, so that all is one quadratic program, solved from its dual side:

    max over mu of sum of loss(mu_i) - (C / 2) |sum of (y_i - mu_i) psi|^2,   w = C sum of (y_i - mu_i) psi

That is the min-max compiler (`netclust.learners.minmax`) on the relaxed partitions.

>>> from netclust.structures.pairs import StoredPairs
>>> near, far = [0.1, 1.0], [2.0, 1.0]  # a distance and a constant
>>> pairs = StoredPairs(3, np.array([near, far, far]))
>>> learned = LpMinMax(C=10.0).fit([(pairs, np.array([0, 0, 1]))])
>>> pairs.scores(learned.w).round(3).tolist(), learned.gap < 1e-5
([1.0, -1.0, -1.0], True)

For small sets: the programs hold all triangles, or a dense semidefinite cone. A source that sums over ordered pairs has
half of this C.

B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University, 2004,
chapter 11, programs (11.7), (11.9) and (11.10).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.learners.minmax import Inference, MinMaxFit, RelaxedSet, linear_set, min_max
from netclust.structures.pairs import PairFeatures, Vector, all_pairs, check_numbers, same_cluster
from netclust.structures.partition import partition_square
from netclust.structures.sdp import sdp_certificate, semidefinite_rows
from netclust.structures.sizes import Method, check_size

__all__ = ["LpMinMax", "MinMaxFit", "SdpMinMax", "triangle_rows"]

Example = tuple[PairFeatures, NDArray[Any]]


@dataclass(frozen=True)
class _MinMax(ABC):
    """What both learners share: they differ in the cone of relaxed partitions."""

    C: float
    largest: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        if not (np.isfinite(self.C) and self.C > 0):
            raise InputError(f"C is {self.C}: it must be a positive number")

    def fit(self, examples: Sequence[Example]) -> MinMaxFit:
        """Learn from sets with their true partitions. Pairs that are not stored have features 0."""
        sets = self._sets(examples)
        used = [len(one.loss) > 0 for one in sets]  # a set without pairs has one partition: slack 0
        fit = min_max([one for one, own in zip(sets, used, strict=True) if own], self.C)
        slacks, mu, prices = np.zeros(len(sets)), iter(fit.mu), iter(fit.prices)
        slacks[used] = fit.slacks
        return replace(
            fit,
            slacks=slacks,
            mu=[next(mu) if own else np.zeros(0) for own in used],
            prices=[next(prices) if own else np.zeros(0) for own in used],
        )

    def _sets(self, examples: Sequence[Example]) -> list[Inference]:
        if not examples:
            raise InputError("no examples to learn from")
        for pairs, _ in examples:
            check_size(pairs.items, self._method(), largest=self.largest)
            if pairs.dimension != examples[0][0].dimension:
                raise InputError(f"sets have {examples[0][0].dimension} and {pairs.dimension} features a pair")
        sets = [self._inference(pairs, labels) for pairs, labels in examples]
        if not any(len(one.loss) for one in sets):
            raise InputError("no set has a pair of items: there is nothing to learn from")
        return sets

    def _inference(self, pairs: PairFeatures, labels: NDArray[Any]) -> Inference:
        psi = _dense(pairs, labels)
        same = same_cluster(np.asarray(labels), None).astype(np.float64)
        return Inference(psi, 1.0 - 2.0 * same, float(same.sum()), same, self._relaxed(pairs.items))

    @abstractmethod
    def _method(self) -> Method:
        """The name of the program's size."""

    @abstractmethod
    def _relaxed(self, items: int) -> RelaxedSet:
        """The relaxed partitions of so many items."""


@dataclass(frozen=True)
class LpMinMax(_MinMax):
    """Learns through the linear relaxation: mu within [0, 1] and all triangles."""

    def _method(self) -> Method:
        return "minmax-lp"

    def _relaxed(self, items: int) -> RelaxedSet:
        sparse = require_optional("scipy.sparse", "a min-max learner")
        rows = sparse.vstack([triangle_rows(items), sparse.identity(items * (items - 1) // 2)], format="csc")
        return linear_set(rows, np.ones(rows.shape[0]))


@dataclass(frozen=True)
class SdpMinMax(_MinMax):
    """Learns through the semidefinite relaxation: mu >= 0, and its matrix with unit diagonal semidefinite."""

    def _method(self) -> Method:
        return "minmax-sdp"

    def _relaxed(self, items: int) -> RelaxedSet:
        clarabel, sparse = (
            require_optional("clarabel", "a min-max learner"),
            require_optional("scipy.sparse", "a min-max learner"),
        )
        rows, sides = semidefinite_rows(items)
        pairs = rows.shape[1]
        cones = [clarabel.NonnegativeConeT(pairs), clarabel.PSDTriangleConeT(items)]
        whole = sparse.vstack([-sparse.identity(pairs), rows], format="csc")
        return RelaxedSet(whole, np.append(np.zeros(pairs), sides), cones, partial(_semidefinite_bound, items))


def _semidefinite_bound(items: int, scores: Vector, prices: Vector) -> float:
    pairs = len(scores)
    diagonal = 2 * prices[pairs:][np.arange(items) * (np.arange(items) + 3) // 2]
    free = partition_square(np.maximum(prices[:pairs], 0.0), items)
    return sdp_certificate(partition_square(scores, items), free, diagonal)[1]


def triangle_rows(items: int) -> Any:
    """All rows e_ij + e_jk - e_ik of a set, three a triple, as a sparse matrix [rows, pairs].

    >>> triangle_rows(3).toarray().tolist()
    [[1.0, 1.0, -1.0], [1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]]
    """
    sparse = require_optional("scipy.sparse", "a min-max learner")
    number = partition_square(np.arange(items * (items - 1) // 2, dtype=np.float64), items).astype(np.int64)
    i, j, k = np.array(list(combinations(range(items), 3)), np.int64).reshape(-1, 3).T
    columns = np.column_stack([number[i, j], number[i, k], number[j, k]])
    signs = np.array([[1.0, 1.0, -1.0], [1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])
    entries = np.repeat(columns[:, None, :], 3, axis=1).ravel()
    rows = np.repeat(np.arange(3 * len(i)), 3)
    shape = (3 * len(i), items * (items - 1) // 2)
    return sparse.csr_matrix((np.tile(signs.ravel(), len(i)), (rows, entries)), shape=shape)


def _dense(pairs: PairFeatures, labels: NDArray[Any]) -> NDArray[np.float64]:
    if len(labels) != pairs.items:
        raise InputError(f"{len(labels)} labels for a set of {pairs.items} items")
    columns = [pairs.scores(unit) for unit in np.eye(pairs.dimension)]
    psi = np.column_stack(columns) if columns else np.zeros((len(labels) * (len(labels) - 1) // 2, 0))
    check_numbers(psi, "pair features")
    if pairs.index is not None:
        left, right = all_pairs(pairs.items)
        number = partition_square(np.arange(1.0, len(psi) + 1), pairs.items, pairs.index).astype(np.int64)
        psi = np.vstack([np.zeros((1, pairs.dimension)), psi])[number[left, right]]
    return np.asarray(psi, np.float64)
