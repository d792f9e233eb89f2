"""The semidefinite relaxation of correlation clustering: every item a unit vector, none at an obtuse angle.

    max sum of s_jk X_jk over j < k,  X positive semidefinite, X_jj = 1, X >= 0

In a partition the items of a cluster share a vector and clusters are orthogonal. The bound is neither better nor worse
than the linear one in general: of a star of m leaves (see `netclust.models.clustering.partitions.relaxed`) it is
sqrt(m) and not m / 2.

>>> star = PairScores(6, np.array([1.0] * 5 + [-1.0] * 10))
>>> relaxed = relax_sdp(star)
>>> round(relaxed.value, 4), relaxed.solver
(2.2361, 'clarabel')

Small sets are solved by an interior point method (Clarabel), larger ones by the alternating direction method of
multipliers, which needs one eigendecomposition a step. `bound` is certified either way: any prices give a bound.

B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University, 2004,
section 11.1.2; C. Swamy, "Correlation clustering: maximizing agreements via semidefinite programming", SODA 2004.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, NetclustError
from netclust.foundation.optional import require_optional
from netclust.structures.pairs import Vector
from netclust.structures.partition import PairScores, RelaxedPartition, check_partition_scores, partition_square
from netclust.structures.sizes import INTERIOR_ITEMS, check_size

__all__ = ["InfeasibleError", "SdpRelaxed", "clarabel_solution", "relax_sdp", "sdp_certificate", "semidefinite_rows"]

Matrix = NDArray[np.float64]
STEPS = 20_000
RELAXATION = 1.6  # over-relaxation of the steps
CHECKED_EVERY = 25


class InfeasibleError(NetclustError):
    """No point satisfies the program's rows."""


@dataclass(frozen=True, eq=False)
class SdpRelaxed(RelaxedPartition):
    """A feasible relaxed partition, and the dual solution that bounds every one: half the sum of `diagonal`.

    Diag(diagonal) - S - (prices as a matrix) is positive semidefinite, and prices are not negative.
    """

    bound: float
    diagonal: Vector
    prices: Vector
    solver: str
    steps: int


def relax_sdp(
    scores: PairScores,
    *,
    solver: Literal["auto", "clarabel", "admm"] = "auto",
    tolerance: float = 1e-6,
    largest: int | None = None,
) -> SdpRelaxed:
    """Solve the relaxation until bound and value differ by less than the tolerance, as a share of the sum of |s|.

    The tolerance is the method of multipliers'; the interior point method reaches about 1e-8. Pairs that are not
    stored have score 0.
    """
    check_partition_scores(scores)
    if solver not in ("auto", "clarabel", "admm"):
        raise InputError(f"solver {solver!r} is not known: auto, clarabel or admm")
    check_size(scores.items, "sdp", largest=largest)
    S = scores.matrix()
    pairs = np.triu_indices(scores.items, 1) if scores.index is None else scores.index
    scale = float(np.abs(S).max(initial=0.0))
    if not scale:
        zeros = np.zeros(len(scores.values))
        return SdpRelaxed(zeros, 0.0, 0.0, np.zeros(scores.items), zeros, "none", 0, index=scores.index)
    chosen = solver if solver != "auto" else ("clarabel" if scores.items <= INTERIOR_ITEMS else "admm")
    solve = _interior_point if chosen == "clarabel" else _multipliers
    # Small matrices: more threads are far slower.
    threads = require_optional("threadpoolctl", "the semidefinite relaxation")
    with threads.threadpool_limits(1):
        X, prices, diagonal, steps = solve(S / scale, tolerance)
        diagonal, bound = sdp_certificate(S, prices * scale, diagonal * scale)
    value = float((S * X).sum() / 2)
    return SdpRelaxed(X[pairs], value, bound, diagonal, scale * prices[pairs], chosen, steps, index=scores.index)


def sdp_certificate(S: Matrix, prices: Matrix, diagonal: Vector) -> tuple[Vector, float]:
    """A diagonal that is dual feasible with prices >= 0, near the given one, and its bound on the relaxation."""
    lowest = float(np.linalg.eigvalsh(np.diag(diagonal) - S - prices)[0])
    raised = diagonal - min(lowest, 0.0)
    return raised, float(raised.sum() / 2)


def _feasible(X: Matrix) -> Matrix:
    """Return the nearest semidefinite mixture with the identity of a matrix X >= 0 with unit diagonal."""
    short = max(-float(np.linalg.eigvalsh(X)[0]), 0.0)
    return np.asarray((X + short * np.eye(len(X))) / (1 + short))


def _interior_point(S: Matrix, tolerance: float) -> tuple[Matrix, Matrix, Vector, int]:
    clarabel = require_optional("clarabel", "the semidefinite relaxation")
    sparse = require_optional("scipy.sparse", "the semidefinite relaxation")
    items = len(S)
    values = S[np.triu_indices(items, 1)]
    pairs = len(values)
    rows, right = semidefinite_rows(items)
    A = sparse.vstack([-sparse.identity(pairs), rows], format="csc")
    cones = [clarabel.NonnegativeConeT(pairs), clarabel.PSDTriangleConeT(items)]
    solution = clarabel_solution(
        sparse.csc_matrix((pairs, pairs)), -values, A, np.concatenate([np.zeros(pairs), right]), cones
    )
    X = partition_square(np.clip(solution.x, 0.0, 1.0), items) + np.eye(items)
    z = np.asarray(solution.z)
    diagonal = 2 * z[pairs:][np.arange(items) * (np.arange(items) + 3) // 2]
    return _feasible(X), partition_square(np.maximum(z[:pairs], 0.0), items), diagonal, int(solution.iterations)


def semidefinite_rows(items: int) -> tuple[Any, Vector]:
    """Rows A and right sides b such that b - A mu is the triangle of the matrix of mu with unit diagonal.

    Clarabel takes the upper triangle column by column, off the diagonal times sqrt(2).
    """
    sparse = require_optional("scipy.sparse", "the semidefinite relaxation")
    left, right = np.triu_indices(items, 1)
    at = right * (right + 1) // 2 + left
    entries = np.full(len(left), -np.sqrt(2.0))
    shape = (items * (items + 1) // 2, len(left))
    sides = np.zeros(shape[0])
    sides[np.arange(items) * (np.arange(items) + 3) // 2] = 1.0
    return sparse.csc_matrix((entries, (at, np.arange(len(left)))), shape=shape), sides


def clarabel_solution(P: Any, q: Vector, A: Any, b: Vector, cones: list[Any]) -> Any:
    """The solution of min x'Px / 2 + q'x, Ax + s = b, s in the cones, on one thread; an error where there is none."""
    clarabel = require_optional("clarabel", "this program")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    solution = clarabel.DefaultSolver(P, q, A, b, cones, settings).solve()
    if "Infeasible" in str(solution.status):
        raise InfeasibleError(f"the program has no solution: {solution.status}")
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        raise NetclustError(f"the interior point method ended as {solution.status}")
    return solution


def _multipliers(S: Matrix, tolerance: float) -> tuple[Matrix, Matrix, Vector, int]:
    """ADMM: X semidefinite, Z >= 0 with unit diagonal, U the scaled price of X = Z."""
    items = len(S)
    rho = 1.0
    Z, U = np.eye(items), np.zeros((items, items))
    size = float(np.abs(S).sum() / 2)
    best = (np.inf, Z, U, np.zeros(items))
    for step in range(1, STEPS + 1):
        X = _semidefinite_part(Z - U + S / rho)
        mixed = RELAXATION * X + (1 - RELAXATION) * Z
        before = Z
        Z = np.maximum(mixed + U, 0.0)
        np.fill_diagonal(Z, 1.0)
        U += mixed - Z
        if step % CHECKED_EVERY and step != STEPS:
            continue
        prices = np.maximum(-rho * U, 0.0)
        np.fill_diagonal(prices, 0.0)
        diagonal, bound = sdp_certificate(S, prices, rho * np.diag(U))
        point = _feasible(Z)
        gap = bound - float((S * point).sum() / 2)
        if gap < best[0]:
            best = gap, point, prices, diagonal
        if gap <= tolerance * size:
            break
        primal, moved = float(np.linalg.norm(X - Z)), rho * float(np.linalg.norm(Z - before))
        if step <= STEPS // 2:  # later a fixed step, which converges for sure
            change = 2.0 if primal > 5 * moved else 0.5 if moved > 5 * primal else 1.0
            rho, U = rho * change, U / change
    return best[1], best[2], best[3], step


def _semidefinite_part(M: Matrix) -> Matrix:
    values, vectors = np.linalg.eigh(M)
    kept = values > 0
    part = vectors[:, kept] * values[kept]
    return np.asarray(part @ vectors[:, kept].T)
