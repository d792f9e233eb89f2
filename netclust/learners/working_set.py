"""The cutting planes of a run: vectors, losses, Gram matrix, multipliers, and how long a plane has been idle.

A plane (g, l) of group k says `l - w.g <= xi_k`. The Gram matrix grows by a row a plane; the minimiser over the planes
is `w = sum_t alpha_t g_t`, with 0 for weights that must not be below it and would be.

>>> planes = WorkingSet(2, np.array([1000.0]))
>>> planes.add(np.array([1.0, 2.0]) / 25, 100.0)
>>> planes.solve()
>>> planes.w.round(6).tolist(), planes.slacks(planes.w).round(6).tolist(), round(planes.dual, 3)
([40.0, 80.0], [92.0], 96000.0)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netclust.foundation.container import Arrays, require_array
from netclust.learners.qp import NONE, Indices, solve_qp
from netclust.problems.base import Vector

__all__ = ["Planes", "WorkingSet"]

IDLE = 1e-8  # a plane whose alpha is below this share of its cap has done nothing


@dataclass(frozen=True, eq=False)
class Planes:
    """What a fit leaves for the next one: planes do not depend on C, so they hold at any other.

    `gold` are the features of the gold structures that the vectors were made with: a row an example, or their mean
    where one slack is shared. `group` is the example of a plane, or 0.
    """

    vectors: NDArray[np.float64]
    losses: Vector
    group: NDArray[np.int64]
    gold: NDArray[np.float64]
    rescaling: str

    def __len__(self) -> int:
        """How many planes there are."""
        return len(self.losses)

    def with_gold(self, gold: NDArray[np.float64]) -> Planes:
        """The margin-rescaled planes of the same outputs against other gold structures."""
        return Planes(self.vectors + (gold - self.gold)[self.group], self.losses, self.group, gold, self.rescaling)


class WorkingSet:
    """Planes with one cap a group, and the solution over them."""

    def __init__(self, dimension: int, caps: Vector, nonnegative: Indices = NONE) -> None:
        self.caps, self.nonnegative = caps, nonnegative
        self.count = 0
        self._vectors = np.zeros((16, dimension))
        self._gram = np.zeros((16, 16))
        self.losses = np.zeros(0)
        self.group = np.zeros(0, np.int64)
        self.alpha = np.zeros(0)
        self.age = np.zeros(0, np.int64)  # solutions in a row in which the plane was idle
        self.w: Vector = np.zeros(dimension)
        self.dual = 0.0

    @property
    def vectors(self) -> NDArray[np.float64]:
        """The planes' vectors, a row each."""
        return self._vectors[: self.count]

    @property
    def gram(self) -> NDArray[np.float64]:
        """The inner products of the vectors."""
        return self._gram[: self.count, : self.count]

    def add(self, vector: Vector, loss: float, group: int = 0) -> None:
        """Add one plane; it counts from the next `solve`."""
        t = self.count
        if t == len(self._vectors):
            vectors = np.zeros((2 * t, self._vectors.shape[1]))  # rows that nobody writes take no memory
            vectors[:t] = self._vectors
            self._vectors = vectors
            gram = np.zeros((2 * t, 2 * t))
            gram[:t, :t] = self._gram
            self._gram = gram
        self._vectors[t] = vector
        self.count += 1
        self._gram[t, : t + 1] = self._gram[: t + 1, t] = self.vectors @ vector
        self.losses = np.append(self.losses, loss)
        self.group = np.append(self.group, group)
        self.alpha = np.append(self.alpha, 0.0)
        self.age = np.append(self.age, 0)

    def solve(self) -> None:
        """The minimiser over all planes: `w`, `alpha` and the value `dual`, below which no solution can be."""
        solution = solve_qp(self.gram, self.losses, self.group, self.caps, self.vectors, self.nonnegative)
        self.alpha, self.dual = solution.alpha, solution.value
        self.w = self.alpha @ self.vectors
        self.w[self.nonnegative] = np.maximum(self.w[self.nonnegative], 0.0)
        self.age = np.where(self.alpha <= IDLE * self.caps[self.group], self.age + 1, 0)

    def purge(self, after: int) -> None:
        """Forget the planes that were idle in so many solutions in a row: the value over the others is the same."""
        live = self.age < after
        n = int(live.sum())
        if n == self.count:
            return
        # the last planes take the places of the forgotten ones: a vector may be long, and few have to move
        keep, free, last = np.arange(n), np.flatnonzero(~live[:n]), np.flatnonzero(live[n:]) + n
        keep[free] = last
        self._gram[:n, :n] = self._gram[np.ix_(keep, keep)]
        self._vectors[free] = self._vectors[last]
        self.count = n
        self.losses, self.group = self.losses[keep], self.group[keep]
        self.alpha, self.age = self.alpha[keep], self.age[keep]

    def slacks(self, w: Vector) -> Vector:
        """xi of every group at w: what its worst plane asks for, at least 0."""
        xi = np.zeros(len(self.caps))
        np.maximum.at(xi, self.group, self.losses - self.vectors @ w)
        return xi

    def planes(self, gold: NDArray[np.float64], rescaling: str) -> Planes:
        """A copy of the planes for another fit."""
        return Planes(self.vectors.copy(), self.losses.copy(), self.group.copy(), gold, rescaling)

    def arrays(self) -> Arrays:
        """Everything that decides how training goes on, bit for bit."""
        return {
            "vectors": self.vectors,
            "gram": self.gram,
            "losses": self.losses,
            "group": self.group,
            "alpha": self.alpha,
            "age": self.age,
            "w": self.w,
            "dual": np.array([self.dual]),
        }

    @staticmethod
    def from_arrays(
        arrays: Arrays, dimension: int, caps: Vector, where: str, nonnegative: Indices = NONE
    ) -> WorkingSet:
        """The working set of a checkpoint."""
        losses = require_array(arrays, "losses", np.float64, (None,), where)
        T = len(losses)
        made = WorkingSet(dimension, caps, nonnegative)
        made.count, made.losses = T, losses
        room = max(16, T)
        made._vectors, made._gram = np.zeros((room, dimension)), np.zeros((room, room))
        made._vectors[:T] = require_array(arrays, "vectors", np.float64, (T, dimension), where)
        made._gram[:T, :T] = require_array(arrays, "gram", np.float64, (T, T), where)
        made.group = require_array(arrays, "group", np.int64, (T,), where)
        made.alpha = require_array(arrays, "alpha", np.float64, (T,), where)
        made.age = require_array(arrays, "age", np.int64, (T,), where)
        made.w = require_array(arrays, "w", np.float64, (dimension,), where)
        made.dual = float(require_array(arrays, "dual", np.float64, (1,), where)[0])
        return made
