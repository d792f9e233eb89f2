"""Conditional random fields on chains: the likelihood of labels, maximised; the baseline of max-margin chains.

    min |w|^2/2 + C mean_i [log Z_i - w.Phi(x_i, y_i)]

with the features and the layout of weights of `ChainProblem` and L-BFGS. With C = 1e6 there is as good as no prior.

>>> x, y = np.array([[1.0, 0.0], [0.1, 0.0], [0.0, 1.0]]), np.array([0, 0, 1])
>>> fit = train_crf(ChainProblem(2, 2), [(x, y)], C=10.0)
>>> fit.converged, ChainProblem(2, 2).predict(x, fit.w).tolist()
(True, [0, 0, 1])

Reference: J. Lafferty, A. McCallum, F. Pereira, "Conditional random fields", ICML 2001; B. Taskar, PhD thesis, 2004,
section 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.models.chains.chain_inference import MAX_SPREAD, chain_probabilities
from netclust.models.chains.chain_problem import ChainExample, ChainProblem, ChainWeights
from netclust.problems.base import Vector

__all__ = ["CrfFit", "Likelihood", "train_crf"]


@dataclass(frozen=True, eq=False)
class CrfFit:
    """Weights as `ChainProblem` lays them out, and the objective that they reach."""

    w: Vector
    objective: float
    iterations: int
    converged: bool


class Likelihood:
    """The objective and its gradient `w - C mean_i [Phi(x_i, y_i) - E Phi(x_i, .)]`, over all sequences at once."""

    def __init__(self, problem: ChainProblem, examples: Sequence[ChainExample], C: float) -> None:
        used = [(x, y) for x, y in examples if len(y)]
        if not used or not 0 < C < np.inf:
            raise InputError("a CRF needs a sequence to train on, and a C above 0")
        self.problem, self.C = problem, C / len(examples)
        self.x = np.concatenate([np.asarray(x, np.float64) for x, _ in used])
        self.y = np.concatenate([np.asarray(y, np.int64) for _, y in used])
        lengths = [len(y) for _, y in used] if problem.transitions else [1] * len(self.y)
        self.offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.first = self.offsets[:-1]
        self.gold = np.sum([problem.joint_features(x, y) for x, y in used], axis=0)

    def __call__(self, w: Vector) -> tuple[float, Vector]:
        """The objective at w, and its gradient."""
        parts = self.problem.weights(w)
        node = self.x @ parts.node.T
        node[self.first] += parts.start
        if np.ptp(parts.edge) > MAX_SPREAD:  # a step of the line search that went far too far
            return np.inf, w.copy()
        found = chain_probabilities(node, parts.edge, self.offsets)
        expected = np.zeros(len(w))
        own = ChainWeights.of(
            expected, self.problem.labels, self.problem.features, transitions=self.problem.transitions
        )
        own.node[:] = found.node.T @ self.x
        own.start[:] = found.node[self.first].sum(axis=0)
        own.edge[:] = found.pairs
        value = float(w @ w) / 2 + self.C * (float(found.log_z.sum()) - float(w @ self.gold))
        return value, w + self.C * (expected - self.gold)


def train_crf(
    problem: ChainProblem,
    examples: Sequence[ChainExample],
    *,
    C: float = 1.0,
    max_iterations: int = 500,
    tolerance: float = 1e-6,
    on_iteration: Callable[[Any], None] | None = None,
) -> CrfFit:
    """Maximise the likelihood; stops when the objective falls by less than this share of it."""
    optimize = require_optional("scipy.optimize", "a CRF")
    objective = Likelihood(problem, examples, C)
    found = optimize.minimize(
        objective, np.zeros(problem.dimension), jac=True, method="L-BFGS-B", callback=on_iteration,
        options={"maxiter": max_iterations, "ftol": tolerance, "gtol": 1e-9, "maxcor": 20},
    )  # fmt: skip
    return CrfFit(np.asarray(found.x, np.float64), float(found.fun), int(found.nit), bool(found.success))
