"""The linear program of correlation clustering, whose rows come and go: what `relaxed` and `exact` share.

Variables are the pairs of one set, e in [0, 1]; triangle rows e_ij + e_jk - e_ik <= 1 (all rotations) are added when a
solution violates them, and HiGHS goes on from the last basis by its dual simplex method, or where that takes many steps
by its interior point method. Of every pair as e_ik only
the worst j is added in a round. No other rotation of that triple can be violated: the sum of two would be 2 e > 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import NetclustError
from netclust.foundation.optional import require_optional
from netclust.structures.pairs import Indices, PairIndex, Vector, all_pairs
from netclust.structures.partition import PairScores, partition_square

__all__ = ["TriangleProgram", "restricted", "triangle_components"]

SNAP = 1e-9
"""Togetherness so close to 0 or 1 is 0 or 1."""
SIMPLEX_STEPS = 5000
"""Steps of the simplex method in a round after which a program counts as hard (measured: benchmarks/lazy_triangles)."""


class TriangleProgram:
    """One set's program. Costs are scaled to at most 1, so that the solver's tolerances fit scores of any size."""

    def __init__(self, scores: PairScores, tolerance: float) -> None:
        highspy = require_optional("highspy", "the LP relaxation")
        self.scores, self.tolerance = scores, tolerance
        self.scale = float(np.abs(scores.values).max(initial=0.0)) or 1.0
        self.rows = _Rows()
        self.low, self.high = np.zeros(len(scores.values)), np.ones(len(scores.values))
        self._separate = _Complete(scores.items) if scores.index is None else _Stored(scores.items, scores.index)
        self._status = highspy.HighsModelStatus
        self.interior, self.late = False, False
        self.solver = highspy.Highs()
        self.solver.silent()
        for name, value in (
            ("run_crossover", "off"),
            ("threads", 1),  # the same answer on any machine
            ("primal_feasibility_tolerance", min(1e-7, max(1e-10, tolerance / 10))),
        ):
            self.solver.setOptionValue(name, value)
        pairs = len(scores.values)
        self.solver.addVars(pairs, self.low, self.high)
        self.solver.changeColsCost(pairs, np.arange(pairs, dtype=np.int32), -scores.values / self.scale)

    def solve(self) -> Vector:
        """How far every pair is together, where nothing is fixed: then there is always a solution.

        A program that the simplex method finds hard is left to the interior point method from then on (`interior`),
        whose solution is no corner; `corner` moves on to one. Its rows are chosen anew: those that cut off corners are
        many, those that cut off the middle of a face are few.
        """
        if not self.interior:
            if self._run("simplex", SIMPLEX_STEPS) == self._status.kOptimal:
                return self._together()
            self.interior = True
            self.drop(np.arange(self.rows.count, dtype=np.int32))
            return (self.scores.values > 0).astype(np.float64)
        status = self._run("ipm")
        if status == self._status.kOptimal:
            return self._together()
        # Near the best is enough to choose rows by, but it must satisfy those that are there.
        met = self.solver.getInfo().max_primal_infeasibility <= self.tolerance / 10
        return self._together() if status == self._status.kUnknown and met else self.corner()

    def corner(self) -> Vector:
        """A solution that is a corner of the program, as the simplex method finds it."""
        self.solver.setOptionValue("run_crossover", "on")
        status = self._run("ipm") if self.interior else self._run("simplex")
        self.solver.setOptionValue("run_crossover", "off")
        if status != self._status.kOptimal:
            status = self._run("simplex")
        if status != self._status.kOptimal:
            raise NetclustError(f"the linear program ended as {self.solver.modelStatusToString(status)}")
        return self._together()

    def solve_within(self, seconds: float | None) -> Vector | None:
        """The corner within the bounds; None if they leave nothing, or time is out (`late` tells)."""
        limit = np.inf if seconds is None else self.solver.getRunTime() + max(seconds, 0.0)
        self.solver.setOptionValue("time_limit", limit)
        status = self._run("simplex")
        self.late = status == self._status.kTimeLimit
        if self.late or status == self._status.kInfeasible:
            return None
        if status != self._status.kOptimal:
            raise NetclustError(f"the linear program ended as {self.solver.modelStatusToString(status)}")
        return self._together()

    def _run(self, method: str, steps: int = 2**31 - 1) -> Any:
        self.solver.setOptionValue("solver", method)
        self.solver.setOptionValue("simplex_iteration_limit", steps)
        if method == "ipm":
            self.solver.clearSolver()  # with a basis HiGHS would go on by the simplex method
        self.solver.run()
        return self.solver.getModelStatus()

    def _together(self) -> Vector:
        e = np.clip(np.asarray(self.solver.getSolution().col_value), 0.0, 1.0)
        return np.asarray(np.where(e < SNAP, 0.0, np.where(e > 1 - SNAP, 1.0, e)))

    def violated(self, e: Vector) -> NDArray[np.int32]:
        """Rows (first, second, closing pair) that e violates by more than the tolerance, the worst of every pair."""
        return self._separate(e, self.tolerance)

    def add_triangles(self, triangles: NDArray[np.int32]) -> None:
        """Add e_first + e_second - e_closing <= 1."""
        signs = np.tile([1.0, 1.0, -1.0], len(triangles))
        starts = 3 * np.arange(len(triangles), dtype=np.int32)
        self.add(starts, triangles.ravel(), signs)

    def add(self, starts: NDArray[np.int32], columns: NDArray[np.int32], signs: Vector) -> None:
        """Add rows sum of sign * e <= 1, each from its start on."""
        count = len(starts)
        self.solver.addRows(count, np.full(count, -np.inf), np.ones(count), len(columns), starts, columns, signs)
        self.rows.add(starts, columns, signs)

    def drop_slack(self) -> None:
        """Forget rows that are not tight: they come back if they are violated again."""
        slack = np.flatnonzero(np.asarray(self.solver.getSolution().row_value) < 1 - 1e-3).astype(np.int32)
        if len(slack):
            self.drop(slack)

    def drop(self, rows: NDArray[np.int32]) -> None:
        """Forget these rows."""
        self.solver.deleteRows(len(rows), rows)
        self.rows.drop(rows)

    def bind(self, low: Vector, high: Vector) -> None:
        """Set every pair's bounds: equal ones fix it."""
        changed = np.flatnonzero((low != self.low) | (high != self.high)).astype(np.int32)
        if len(changed):
            self.solver.changeColsBounds(len(changed), changed, low[changed], high[changed])
            self.low, self.high = low.copy(), high.copy()

    def bound(self) -> float:
        """A bound on the objective within the bounds, by weak duality: sum of prices + best of what they leave open.

        It holds whatever the prices are, so rounding errors of the solver can make it looser, never wrong.
        """
        prices = np.maximum(-np.asarray(self.solver.getSolution().row_dual), 0.0) * self.scale
        left = self.scores.values - self.rows.priced(prices, len(self.low))
        return float(prices.sum() + np.maximum(left * self.low, left * self.high).sum())


class _Rows:
    """A copy of the solver's rows, as entries (row, column, sign)."""

    def __init__(self) -> None:
        self.count = 0
        self.row: Indices = np.zeros(0, np.int64)
        self.column: Indices = np.zeros(0, np.int64)
        self.sign = np.zeros(0)

    def add(self, starts: NDArray[np.int32], columns: NDArray[np.int32], signs: Vector) -> None:
        sizes = np.diff(np.append(starts, len(columns)))
        self.row = np.concatenate([self.row, self.count + np.repeat(np.arange(len(starts)), sizes)])
        self.column = np.concatenate([self.column, columns.astype(np.int64)])
        self.sign = np.concatenate([self.sign, signs])
        self.count += len(starts)

    def drop(self, rows: NDArray[np.int32]) -> None:
        kept = np.ones(self.count, np.bool_)
        kept[rows] = False
        entries = kept[self.row]
        self.row = (np.cumsum(kept) - 1)[self.row[entries]]
        self.column, self.sign = self.column[entries], self.sign[entries]
        self.count = int(kept.sum())

    def priced(self, prices: Vector, columns: int) -> Vector:
        return np.asarray(np.bincount(self.column, self.sign * prices[self.row], columns), np.float64)


class _Complete:
    """Separation where every pair is stored."""

    def __init__(self, items: int) -> None:
        self.items = items
        self.left, self.right = all_pairs(items)
        self.number = partition_square(np.arange(len(self.left), dtype=np.float64), items).astype(np.int32)

    def __call__(self, e: Vector, tolerance: float) -> NDArray[np.int32]:
        from netclust.models.clustering.partitions.triangles_kernels import worst_triangles

        middle, excess = np.empty(len(e), np.int64), np.empty(len(e))
        worst_triangles(partition_square(e, self.items), middle, excess)
        closing = np.flatnonzero(excess > tolerance)
        j = middle[closing]
        sides = self.number[self.left[closing], j], self.number[j, self.right[closing]]
        return np.column_stack([*sides, closing]).astype(np.int32)


class _Stored:
    """Separation where some pairs are stored: only triples of which all three are."""

    def __init__(self, items: int, index: PairIndex) -> None:
        self.left, self.right = index
        ends, others = np.concatenate(index), np.concatenate(index[::-1])
        order = np.lexsort((others, ends))
        self.neighbour, self.edge = others[order], (order % max(len(self.left), 1)).astype(np.int64)
        self.start = np.searchsorted(ends[order], np.arange(items + 1)).astype(np.int64)

    def __call__(self, e: Vector, tolerance: float) -> NDArray[np.int32]:
        from netclust.models.clustering.partitions.triangles_kernels import worst_stored_triangles

        first, second = np.empty(len(e), np.int64), np.empty(len(e), np.int64)
        excess = np.empty(len(e))
        worst_stored_triangles(self.left, self.right, self.start, self.neighbour, self.edge, e, first, second, excess)
        closing = np.flatnonzero(excess > tolerance)
        return np.column_stack([first[closing], second[closing], closing]).astype(np.int32)


def triangle_components(scores: PairScores) -> list[Indices]:
    """Return items that positive scores connect, where there are two or more of them.

    Apart from them nothing is worth joining, in a partition or in a relaxed one: with e = 0 between components no
    triangle is violated that was not before, and the objective is no lower.
    """
    sparse = require_optional("scipy.sparse", "correlation clustering by programs")
    graph = require_optional("scipy.sparse.csgraph", "correlation clustering by programs")
    left, right = all_pairs(scores.items) if scores.index is None else scores.index
    for_joining = scores.values > 0
    ends: Any = (left[for_joining], right[for_joining])
    links = sparse.coo_matrix((np.ones(int(for_joining.sum())), ends), shape=(scores.items, scores.items))
    count, member = graph.connected_components(links, directed=False)
    order = np.argsort(member, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(member, minlength=count))[:-1])
    return [group.astype(np.int64) for group in groups if len(group) > 1]


def restricted(scores: PairScores, chosen: Indices, *, complete: bool = False) -> tuple[PairScores, Indices]:
    """The scores among chosen items, and the numbers of their pairs; `complete`: with the missing pairs, as 0."""
    place = np.full(scores.items, -1)
    place[chosen] = np.arange(len(chosen))
    left, right = all_pairs(scores.items) if scores.index is None else scores.index
    pairs = np.flatnonzero((place[left] >= 0) & (place[right] >= 0))
    values = scores.values[pairs]
    if scores.index is None:
        return PairScores(len(chosen), values), pairs
    a, b = place[left[pairs]], place[right[pairs]]
    index = PairIndex(np.minimum(a, b), np.maximum(a, b))
    if complete:
        matrix = partition_square(values, len(chosen), index)
        return PairScores(len(chosen), matrix[np.triu_indices(len(chosen), 1)]), pairs
    return PairScores(len(chosen), values, index), pairs
