"""The linear relaxation of a binary network, solved as it is written: one program a row, by HiGHS.

    max sum_u theta_u y_u + sum_{u<v} J_uv y_uv  with  y_uv <= y_u, y_uv <= y_v, y_u + y_v <= 1 + y_uv, all in [0, 1]

Rows that an optimum satisfies by itself are left out: the third where J_uv > 0, the first two where J_uv < 0. Corners
are half-integral, and the simplex method ends in one. `cut` finds the same by a maximum flow, far quicker.

>>> theta, pair = np.array([[1.0, 1.0, 1.0]]), -1.5 * (1 - np.eye(3))
>>> solve_rows(theta, pair).tolist()
[[0.5, 0.5, 0.5]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import NetclustError
from netclust.foundation.optional import require_optional

__all__ = ["BinaryProgram", "solve_rows"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
NEAR = 1e-6
"""So near to 0, 1/2 or 1 a value counts as that."""


class BinaryProgram:
    """The program of one network; rows differ in theta alone, so it is made once.

    Every row is solved from scratch: which corner of several best ones is found must not depend on the rows before.
    """

    def __init__(self, pair: Matrix) -> None:
        highspy = require_optional("highspy", "the LP relaxation of a binary network")
        self._status = highspy.HighsModelStatus
        self.labels = len(pair)
        left, right = np.triu_indices(self.labels, 1)
        left, right = left[pair[left, right] != 0], right[pair[left, right] != 0]
        self._pair: Vector = pair[left, right]
        columns = self.labels + len(left)
        self.solver: Any = highspy.Highs()
        self.solver.silent()
        for name, setting in (("solver", "simplex"), ("threads", 1), ("presolve", "off")):
            self.solver.setOptionValue(name, setting)
        self.solver.addVars(columns, np.zeros(columns), np.ones(columns))
        place = self.labels + np.arange(len(left))
        likes = self._pair > 0
        for end in (left, right):
            self._add(np.column_stack([place, end])[likes], (1.0, -1.0), 0.0)
        self._add(np.column_stack([left, right, place])[~likes], (1.0, 1.0, -1.0), 1.0)

    def _add(self, columns: NDArray[np.int64], signs: tuple[float, ...], most: float) -> None:
        count, width = columns.shape
        starts = width * np.arange(count, dtype=np.int32)
        values = np.tile(np.array(signs), count)
        self.solver.addRows(
            count, np.full(count, -np.inf), np.full(count, most), columns.size, starts,
            columns.ravel().astype(np.int32), values,
        )  # fmt: skip

    def solve(self, theta: Vector) -> Vector:
        """The labels of a best corner: 0, 1/2 or 1."""
        scale = max(float(np.abs(theta).max()), float(np.abs(self._pair).max(initial=0.0))) or 1.0
        cost = -np.concatenate([theta, self._pair]) / scale  # so that the solver's tolerances fit
        self.solver.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)
        self.solver.clearSolver()
        self.solver.run()
        status = self.solver.getModelStatus()
        if status != self._status.kOptimal:
            raise NetclustError(f"the linear program ended as {self.solver.modelStatusToString(status)}")
        found = np.asarray(self.solver.getSolution().col_value)[: self.labels]
        halves = np.round(2 * found) / 2
        if np.abs(found - halves).max() > NEAR:
            raise NetclustError("the linear program did not end in a corner: a label is not 0, 1/2 or 1")
        return np.asarray(np.clip(halves, 0.0, 1.0))


def solve_rows(theta: Matrix, pair: Matrix) -> Matrix:
    """The labels of every row."""
    program = BinaryProgram(pair)
    return np.stack([program.solve(row) for row in theta]) if len(theta) else np.zeros_like(theta)
