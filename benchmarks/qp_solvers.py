"""Solvers of the working-set program on the same programs: clarabel on the dual and on the primal (what the package
uses), a dense interior point method (Mehrotra, 1992) and coordinate (SMO) steps, both only here.

The planes are those of a descent on a structural risk in 50 dimensions with losses up to 100; T = 20 to 1000 planes,
C = 1 and 1e4. Gaps are relative to the value. All run on one thread, as
clarabel does in the package: with more, the times of the dense factorisation depend on what else the cores do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from common import best_of, save
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from netclust.kernels.jit import kernel
from netclust.learners.qp import solve_qp

Array = NDArray[np.float64]
SWEEPS = 100  # of as many pair steps as there are planes
STAY_INSIDE = 0.995  # share of the way to the boundary


def planes(T: int, C: float = 1e4, dimension: int = 50, seed: int = 0) -> tuple[Array, Array]:
    """Planes of a convex risk: the loss-augmented maximum over 40 outputs of 30 examples, along a descent."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(30, 40, dimension)) * 0.3
    loss = rng.uniform(20, 100, (30, 40))
    vectors, losses, w = np.zeros((T, dimension)), np.zeros(T), np.zeros(dimension)
    for t in range(T):
        worst = (loss - features @ w).argmax(axis=1)
        vectors[t] = features[np.arange(30), worst].mean(axis=0)
        losses[t] = loss[np.arange(30), worst].mean()
        w = w + C / (t + 1) * (vectors[t] - w / C)  # a subgradient step: w stays in the region that matters
    return vectors, losses


def by_interior_point(G: Array, losses: Array, C: float) -> Array:
    return _interior_point(G * (C / 100), losses / 100, np.zeros(len(losses), np.int64), np.ones(1)) * C


def by_smo(G: Array, losses: Array, C: float) -> Array:
    alpha = np.zeros(len(losses))
    _smo(G, losses, C, alpha, 1e-9 * C, SWEEPS)
    return alpha


@kernel
def _smo(G: Array, losses: Array, C: float, alpha: Array, tolerance: float, sweeps: int) -> None:
    """The pair (or the plane and what is left of C) of the largest violation, until the gap is below the tolerance."""
    T = len(losses)
    gradient = losses.copy()
    left = C
    for _ in range(sweeps * T):
        up, low = 0, -1
        for t in range(T):
            if gradient[t] > gradient[up]:
                up = t
            if alpha[t] > 0 and (low < 0 or gradient[t] < gradient[low]):
                low = t
        gap = C * max(gradient[up], 0.0)
        for t in range(T):
            gap -= alpha[t] * gradient[t]
        if gap <= tolerance:
            return
        rest = 0.0 if left > 0 else np.inf  # what is left of C is a plane with gradient 0
        if low >= 0 and gradient[low] < rest:
            curve = G[up, up] + G[low, low] - 2 * G[up, low]
            if gradient[up] <= 0:  # give back
                step = min(alpha[low], -gradient[low] / max(G[low, low], 1e-12))
                alpha[low] -= step
                left += step
                for t in range(T):
                    gradient[t] += step * G[t, low]
                continue
            step = min(alpha[low], (gradient[up] - gradient[low]) / max(curve, 1e-12))
            alpha[up] += step
            alpha[low] -= step
            for t in range(T):
                gradient[t] -= step * (G[t, up] - G[t, low])
        else:
            step = min(left, gradient[up] / max(G[up, up], 1e-12))
            alpha[up] += step
            left -= step
            for t in range(T):
                gradient[t] -= step * G[t, up]


def _interior_point(G: Array, ell: Array, group: NDArray[np.int64], cap: Array) -> Array:
    """Predictor-corrector steps on a (planes), s = cap - sum a (groups) and their prices z and xi."""
    same = group[:, None] == group
    a = (cap / (2 * np.bincount(group, minlength=len(cap))))[group]
    s = cap / 2
    force = ell - G @ a
    xi = np.zeros(len(cap))
    np.maximum.at(xi, group, force)
    xi += 0.1 + 0.1 * float(np.abs(force).max())
    z = xi[group] - force
    M = np.empty_like(G)
    for _ in range(100):
        mu = float(a @ z + s @ xi) / (len(a) + len(s))
        if mu * (len(a) + len(s)) <= 1e-11 * max(1e-6, abs(float(ell @ a) - float(a @ (G @ a)) / 2)):
            break
        np.multiply(same, (xi / s)[group], out=M)
        M += G
        M[np.diag_indices_from(M)] += z / a
        try:
            factor = scipy.linalg.cho_factor(M, lower=True, check_finite=False)
        except np.linalg.LinAlgError:  # as exact as float64 allows: the gap that is reported tells how far
            break
        drift = G @ a - ell - z + xi[group]  # 0 but for rounding

        da, ds, dz, dx = _newton(factor, drift, (a, s, z, xi), group, -a * z, -s * xi)
        reach = min(_reach(a, da), _reach(s, ds), _reach(z, dz), _reach(xi, dx))
        ahead = float((a + reach * da) @ (z + reach * dz) + (s + reach * ds) @ (xi + reach * dx)) / (len(a) + len(s))
        centre = (ahead / mu) ** 3 * mu
        da, ds, dz, dx = _newton(
            factor, drift, (a, s, z, xi), group, centre - a * z - da * dz, centre - s * xi - ds * dx
        )
        reach = STAY_INSIDE * min(_reach(a, da), _reach(s, ds), _reach(z, dz), _reach(xi, dx))
        reach = min(1.0, reach)
        if not np.isfinite(reach) or reach < 1e-10:
            break
        a, s, z, xi = a + reach * da, s + reach * ds, z + reach * dz, xi + reach * dx
    return a


def _newton(
    factor: Any, drift: Array, now: tuple[Array, ...], group: NDArray[np.int64], az: Array, sx: Array
) -> tuple[Array, ...]:
    """The step that makes a*z and s*xi change by az and sx."""
    a, s, z, xi = now
    da = scipy.linalg.cho_solve(factor, az / a - (sx / s)[group] - drift, check_finite=False)
    ds = -np.bincount(group, da, len(s))
    return da, ds, (az - z * da) / a, (sx - xi * ds) / s


def _reach(value: Array, change: Array) -> float:
    """How far one can go before something gets negative, at most 1 / STAY_INSIDE."""
    falling = change < 0
    return float(np.min(-value[falling] / change[falling], initial=1 / STAY_INSIDE))


def relative_gap(G: Array, losses: Array, C: float, alpha: Array) -> float:
    alpha = alpha * min(1.0, C / max(alpha.sum(), 1e-300))
    margins = G @ alpha
    dual = losses @ alpha - alpha @ margins / 2
    primal = alpha @ margins / 2 + C * max(0.0, (losses - margins).max())
    return float((primal - dual) / primal)


def main() -> None:
    rows: list[dict[str, Any]] = []
    for C in (1.0, 1e4):
        for T in (20, 100, 300, 1000):
            vectors, losses = planes(T)
            G, group, caps = vectors @ vectors.T, np.zeros(T, np.int64), np.array([C])
            solvers: dict[str, Callable[[], Array]] = {
                "clarabel_dual": partial(_alpha, G, losses, group, caps),
                "interior_point": partial(by_interior_point, G, losses, C),
                "smo": partial(by_smo, G, losses, C),
            }
            if vectors.shape[1] * 2 < T:
                solvers["clarabel_primal"] = partial(_alpha, G, losses, group, caps, vectors)
            row: dict[str, Any] = {"planes": T, "C": C}
            for name, run in solvers.items():
                gap = relative_gap(G, losses, C, run())
                row[name] = {"ms": round(1000 * best_of(run, 3), 2), "relative_gap": float(f"{gap:.1e}")}
            row["dual_to_interior_point"] = round(row["clarabel_dual"]["ms"] / row["interior_point"]["ms"], 1)
            rows.append(row)
    load = [round(x, 2) for x in os.getloadavg()]
    save("qp_solvers", {"programs": rows, "smo_sweeps_at_most": SWEEPS, "threads": 1, "load_average": load})


def _alpha(*program: Array) -> Array:
    return solve_qp(*program).alpha


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
