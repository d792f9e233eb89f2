"""Learning to cluster through a relaxation, as one convex program: the LP and SDP min-max learners.

Weights w score a pair by w . psi, a partition by the sum over pairs within clusters. The learner asks that the true
partition beats every relaxed one by its loss, the number of pairs on which they differ (no percent, no 1 / m^2: the
convention of the source, every pair once):

    min 0.5 |w|^2 + C sum of xi_i,   xi_i = max over relaxed mu of [w . psi(mu) + loss(mu)] - w . psi(y_i)

The maximum is replaced by its dual program, so that all is one quadratic program, solved from its dual side:

    max over mu of sum of loss(mu_i) - (C / 2) |sum of (y_i - mu_i) psi|^2,   w = C sum of (y_i - mu_i) psi

>>> from netclust.pairs import StoredPairs
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
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.optional import need
from netclust.pairs import PairFeatures, Vector, all_pairs, check_numbers, same_cluster
from netclust.structures.partition import square
from netclust.structures.sdp import clarabel_solution, sdp_certificate, semidefinite_rows
from netclust.structures.sizes import Method, check_size

__all__ = ["LpMinMax", "MinMaxFit", "SdpMinMax", "triangle_rows"]

Example = tuple[PairFeatures, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class MinMaxFit:
    """Learned weights, with primal and dual values of the learning program: its solution is within `gap` of the best.

    The slacks are certified from above: each is what the prices prove, so it is at least the example's loss.
    """

    w: Vector
    slacks: Vector
    together: list[Vector]
    """The relaxed partition of every example that w is the difference to, in the order of `pdist`."""
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """How far the primal value may be from the best."""
        return self.primal - self.dual


@dataclass(frozen=True)
class _Set:
    """An example as the program sees it: all pairs, features [pairs, dimension], truth and loss a pair."""

    items: int
    psi: NDArray[np.float64]
    same: Vector

    @property
    def loss(self) -> Vector:
        """What joining a pair adds to the loss."""
        return 1.0 - 2.0 * self.same


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
        sparse = need("scipy.sparse", "a min-max learner")
        every = self._sets(examples)
        sets = [one for one in every if len(one.same)]  # a set without pairs has one partition: slack 0
        dimension = sets[0].psi.shape[1]
        pairs = [len(one.same) for one in sets]
        parts = [self._relaxed(one.items) for one in sets]
        # Variables (w / C, mu_1, mu_2, ...): minimise (C / 2) |w / C|^2 - loss . mu with w / C + psi' mu = psi' y.
        truth = np.sum([one.psi.T @ one.same for one in sets], axis=0)
        link = sparse.hstack([sparse.identity(dimension), *(sparse.csc_matrix(one.psi.T) for one in sets)])
        blocks = sparse.block_diag([rows for rows, _, _ in parts])
        padding = sparse.csc_matrix((blocks.shape[0], dimension))
        A = sparse.vstack([link, sparse.hstack([padding, blocks])], format="csc")
        b = np.concatenate([truth, *(sides for _, sides, _ in parts)])
        P = sparse.diags(np.concatenate([np.full(dimension, self.C), np.zeros(sum(pairs))]), format="csc")
        q = np.concatenate([np.zeros(dimension), *(-one.loss for one in sets)])
        clarabel = need("clarabel", "a min-max learner")
        cones = [clarabel.ZeroConeT(dimension), *(cone for _, _, own in parts for cone in own)]
        solution = clarabel_solution(P, q, A, b, cones)
        mu = np.split(np.clip(np.asarray(solution.x)[dimension:], 0.0, 1.0), np.cumsum(pairs)[:-1])
        rows = np.cumsum([len(sides) for _, sides, _ in parts])[:-1]
        prices = np.split(np.asarray(solution.z)[dimension:], rows)
        w = self.C * np.sum([one.psi.T @ (one.same - own) for one, own in zip(sets, mu, strict=True)], axis=0)
        slacks = np.array([self._slack(one, w, own) for one, own in zip(sets, prices, strict=True)])
        loss = sum(float(one.same.sum() + one.loss @ own) for one, own in zip(sets, mu, strict=True))
        half = 0.5 * float(w @ w)
        each = np.zeros(len(every))
        each[[len(one.same) > 0 for one in every]] = slacks
        rest = iter(mu)
        together = [next(rest) if len(one.same) else np.zeros(0) for one in every]
        return MinMaxFit(w, each, together, half + self.C * float(slacks.sum()), self.C * loss - half)

    def _sets(self, examples: Sequence[Example]) -> list[_Set]:
        if not examples:
            raise InputError("no examples to learn from")
        for pairs, _ in examples:
            check_size(pairs.items, self._method(), largest=self.largest)
            if pairs.dimension != examples[0][0].dimension:
                raise InputError(f"sets have {examples[0][0].dimension} and {pairs.dimension} features a pair")
        sets = [_dense(pairs, labels) for pairs, labels in examples]
        if not any(len(one.same) for one in sets):
            raise InputError("no set has a pair of items: there is nothing to learn from")
        return sets

    def _slack(self, one: _Set, w: Vector, prices: Vector) -> float:
        scores = one.psi @ w
        return float(one.same.sum() + self._bound(one.items, scores + one.loss, prices) - scores @ one.same)

    @abstractmethod
    def _method(self) -> Method:
        """The name of the program's size."""

    @abstractmethod
    def _relaxed(self, items: int) -> tuple[Any, Vector, list[Any]]:
        """Rows, right sides and cones of the relaxed partitions of so many items."""

    @abstractmethod
    def _bound(self, items: int, scores: Vector, prices: Vector) -> float:
        """The bound on every relaxed partition's sum of scores that the prices of the rows prove."""


@dataclass(frozen=True)
class LpMinMax(_MinMax):
    """Learns through the linear relaxation: mu within [0, 1] and all triangles."""

    def _method(self) -> Method:
        return "minmax-lp"

    def _relaxed(self, items: int) -> tuple[Any, Vector, list[Any]]:
        clarabel, sparse = need("clarabel", "a min-max learner"), need("scipy.sparse", "a min-max learner")
        triangles = triangle_rows(items)
        unit = sparse.identity(items * (items - 1) // 2)
        rows = sparse.vstack([triangles, unit, -unit], format="csc")
        sides = np.concatenate([np.ones(triangles.shape[0] + unit.shape[0]), np.zeros(unit.shape[0])])
        return rows, sides, [clarabel.NonnegativeConeT(len(sides))]

    def _bound(self, items: int, scores: Vector, prices: Vector) -> float:
        triangles = triangle_rows(items)
        positive = np.maximum(prices[: triangles.shape[0]], 0.0)
        return float(positive.sum() + np.maximum(scores - triangles.T @ positive, 0.0).sum())


@dataclass(frozen=True)
class SdpMinMax(_MinMax):
    """Learns through the semidefinite relaxation: mu >= 0, and its matrix with unit diagonal semidefinite."""

    def _method(self) -> Method:
        return "minmax-sdp"

    def _relaxed(self, items: int) -> tuple[Any, Vector, list[Any]]:
        clarabel, sparse = need("clarabel", "a min-max learner"), need("scipy.sparse", "a min-max learner")
        rows, sides = semidefinite_rows(items)
        pairs = rows.shape[1]
        cones = [clarabel.NonnegativeConeT(pairs), clarabel.PSDTriangleConeT(items)]
        return sparse.vstack([-sparse.identity(pairs), rows], format="csc"), np.append(np.zeros(pairs), sides), cones

    def _bound(self, items: int, scores: Vector, prices: Vector) -> float:
        pairs = len(scores)
        diagonal = 2 * prices[pairs:][np.arange(items) * (np.arange(items) + 3) // 2]
        free = square(np.maximum(prices[:pairs], 0.0), items)
        return sdp_certificate(square(scores, items), free, diagonal)[1]


def triangle_rows(items: int) -> Any:
    """All rows e_ij + e_jk - e_ik of a set, three a triple, as a sparse matrix [rows, pairs].

    >>> triangle_rows(3).toarray().tolist()
    [[1.0, 1.0, -1.0], [1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]]
    """
    sparse = need("scipy.sparse", "a min-max learner")
    number = square(np.arange(items * (items - 1) // 2, dtype=np.float64), items).astype(np.int64)
    i, j, k = np.array(list(combinations(range(items), 3)), np.int64).reshape(-1, 3).T
    columns = np.column_stack([number[i, j], number[i, k], number[j, k]])
    signs = np.array([[1.0, 1.0, -1.0], [1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])
    entries = np.repeat(columns[:, None, :], 3, axis=1).ravel()
    rows = np.repeat(np.arange(3 * len(i)), 3)
    shape = (3 * len(i), items * (items - 1) // 2)
    return sparse.csr_matrix((np.tile(signs.ravel(), len(i)), (rows, entries)), shape=shape)


def _dense(pairs: PairFeatures, labels: NDArray[Any]) -> _Set:
    if len(labels) != pairs.items:
        raise InputError(f"{len(labels)} labels for a set of {pairs.items} items")
    columns = [pairs.scores(unit) for unit in np.eye(pairs.dimension)]
    psi = np.column_stack(columns) if columns else np.zeros((len(labels) * (len(labels) - 1) // 2, 0))
    check_numbers(psi, "pair features")
    if pairs.index is not None:
        left, right = all_pairs(pairs.items)
        number = square(np.arange(1.0, len(psi) + 1), pairs.items, pairs.index).astype(np.int64)
        psi = np.vstack([np.zeros((1, pairs.dimension)), psi])[number[left, right]]
    return _Set(pairs.items, psi, same_cluster(np.asarray(labels), None).astype(np.float64))
