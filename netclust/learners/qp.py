"""The quadratic program over a working set of cutting planes: multipliers of the planes, value and gap.

    dual    max_a  l.a - a'Ga/2         with  a >= 0  and, in every group k, the sum of its a <= cap_k
    primal  min_w  |w|^2/2 + sum_k cap_k xi_k  with  xi_k >= 0  and  l_t - w.g_t <= xi_k  for every t in group k

One group with cap C is the one-slack program; a group an example, with cap C/n, the n-slack one. A slack-rescaled
plane is scaled by its loss beforehand, so that both scalings are this one program. `value` is the dual's at the
`alpha` that is returned, so a lower bound; `gap` is what the primal at `w = sum_t alpha_t g_t` is above it.

Weights that must not be below 0 (`nonnegative`) are planes of loss 0 and without a cap, `-w_j <= 0`, in the dual. Their
best multipliers have a closed form, so that w is `sum_t alpha_t g_t` with 0 for those that would be below it.

>>> g = np.array([[1.0, 2.0]]) / 25  # one constraint of loss 100 over five items
>>> solution = solve_qp(g @ g.T, np.array([100.0]), np.zeros(1, np.int64), np.array([1000.0]))
>>> w = solution.alpha @ g
>>> w.round(6).tolist(), round(float(100 - g[0] @ w), 6)
([40.0, 80.0], 92.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.foundation.optional import require_optional

__all__ = ["QpSolution", "solve_qp"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Groups = NDArray[np.int64]
Indices = NDArray[np.int64]
NONE: Indices = np.zeros(0, np.int64)

# Why clarabel (benchmarks/qp_solvers.py): a kept library, with a relative gap below 1e-11 in every program there. It is
# not the quickest on the dual: a dense interior point method of our own is up to 8 times as quick (6 ms for 51 at 300
# planes), with a gap up to 4e-9 at C = 1e4. On the primal clarabel is 3 to 4 times as quick as that at 1000 planes in
# 50 dimensions. Coordinate steps are instant at C = 1 and stay at a gap of 1e-5 at C = 1e4.
TOLERANCE = 1e-11  # gap relative to the value, or to the largest cap times the largest loss


@dataclass(frozen=True, eq=False)
class QpSolution:
    """Multipliers within their caps, the dual value there and the gap to the primal one."""

    alpha: Vector
    value: float
    gap: float


def solve_qp(
    gram: Matrix,
    losses: Vector,
    group: Groups,
    caps: Vector,
    vectors: Matrix | None = None,
    nonnegative: Indices = NONE,
) -> QpSolution:
    """Solve the program; repeated or dependent planes do no harm. `group` holds the place of every plane's cap.

    Where there are more than twice as many planes as dimensions and `vectors` are given, clarabel gets the primal.
    Places of weights that must not be below 0 need `vectors`.
    """
    if not len(losses):
        return QpSolution(np.zeros(0), 0.0, 0.0)
    used, at = np.unique(group, return_inverse=True)
    at = at.ravel()
    # Units in which multipliers and offsets are about 1: a = unit * b, value = unit * height * (value in b).
    unit, height = float(caps[used].max()), float(np.abs(losses).max()) or 1.0
    cap, ell, G = caps[used] / unit, losses / height, gram * (unit / height)
    signed = np.zeros((len(losses), 0))  # the parts of planes that the signs of weights are about
    if len(nonnegative):
        if vectors is None:
            raise ValueError("weights that must not be below 0 need the planes' vectors")
        signed = vectors[:, nonnegative] * np.sqrt(unit / height)
    if vectors is not None and len(losses) > 2 * vectors.shape[1]:
        alpha = _by_primal(vectors * np.sqrt(unit / height), ell, at, cap, nonnegative)
    else:
        alpha = _by_dual(G, ell, at, cap, signed)
    alpha = np.maximum(alpha, 0.0)
    total = np.bincount(at, alpha, len(cap))
    alpha *= np.minimum(1.0, cap / np.maximum(total, cap))[at]  # rounding must not exceed a cap
    below = np.minimum(alpha @ signed, 0.0)
    margins = G @ alpha - signed @ below
    curve = (float(alpha @ (G @ alpha)) - float(below @ below)) / 2
    value = float(ell @ alpha) - curve
    slack = np.zeros(len(cap))
    np.maximum.at(slack, at, ell - margins)
    scale = unit * height
    return QpSolution(alpha * unit, scale * value, scale * (curve + float(cap @ slack) - value))


def _by_dual(G: Matrix, ell: Vector, group: Groups, cap: Vector, signed: Matrix) -> Vector:
    """The alpha of the program as it stands at the top, with a multiplier for every weight that has a sign."""
    sparse = require_optional("scipy.sparse", "training a structural SVM")
    (T, J), K = signed.shape, len(cap)
    sums = sparse.csr_array((np.ones(T), (group, np.arange(T))), shape=(K, T + J))
    rows = sparse.vstack([-sparse.eye_array(T + J), sums], format="csc")
    bounds = np.concatenate([np.zeros(T + J), cap])
    curve = np.triu(np.block([[G, signed], [signed.T, np.eye(J)]]))
    slope = np.concatenate([-ell, np.zeros(J)])
    return np.array(_clarabel(sparse.csc_array(curve), slope, rows, bounds).x)[:T]


def _by_primal(vectors: Matrix, ell: Vector, group: Groups, cap: Vector, nonnegative: Indices) -> Vector:
    """The alpha as the prices of the planes in the program over w and xi."""
    sparse = require_optional("scipy.sparse", "training a structural SVM")
    (T, D), K, J = vectors.shape, len(cap), len(nonnegative)
    pick = sparse.csr_array((-np.ones(T), (np.arange(T), group)), shape=(T, K))
    signs = sparse.csr_array((-np.ones(J), (np.arange(J), nonnegative)), shape=(J, D + K))
    slack = sparse.block_array([[sparse.csr_array(-vectors), pick], [None, -sparse.eye_array(K)]])
    rows = sparse.vstack([slack, signs], format="csc")
    curve = sparse.csc_array(sparse.diags_array(np.concatenate([np.ones(D), np.zeros(K)])))
    solution = _clarabel(curve, np.concatenate([np.zeros(D), cap]), rows, np.concatenate([-ell, np.zeros(K + J)]))
    return np.array(solution.z)[:T]


def _clarabel(curve: Any, slope: Vector, rows: Any, bounds: Vector) -> Any:
    """min x'Px/2 + q.x with rows x <= bounds, on one thread so that it is the same every time."""
    clarabel = require_optional("clarabel", "training a structural SVM")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    cones = [clarabel.NonnegativeConeT(len(bounds))]
    return clarabel.DefaultSolver(_plain(curve), slope, _plain(rows), bounds, cones, settings).solve()


def _plain(matrix: Any) -> Any:
    """The class of sparse matrices that clarabel knows, with sorted indices."""
    sparse = require_optional("scipy.sparse", "training a structural SVM")
    matrix = sparse.csc_matrix(matrix)
    matrix.sort_indices()
    return matrix
