"""The one-slack structural SVM: one constraint an iteration, over all examples together.

    min |w|^2/2 + C xi   with   mean_i [Delta_i - w.(Phi(x_i, h*_i) - Phi(x_i, h_i))] <= xi   for every choice of h

Every iteration adds the plane (g, l) of the most violating outputs; training stops when its violation `l - w.g` is at
most `max(0, the violation of the planes so far) + epsilon`. The number of iterations does not grow with the number of
examples. `epsilon` is on the scale of the loss: 0.1 of 100 percent, 0.01 for final runs.

>>> from netclust.problems.base import TreeProblem
>>> phi = np.zeros((3, 4, 2))  # [distance, root] of every arc
>>> phi[:, 0, 1] = 1
>>> phi[1, 1, 0], phi[2, 1, 0], phi[2, 2, 0] = 0.2, 1.0, 0.8
>>> fit = OneSlack(C=100.0, epsilon=0.01).fit(TreeProblem(2), [(phi, np.array([1, 1, 2]))])
>>> fit.converged, fit.w.round(2).tolist(), bool(fit.gap <= 0.01 * 100)
(True, [-5.0, -3.0], True)

T. Joachims, T. Finley, C.-N. Yu, "Cutting-plane training of structural SVMs", Machine Learning 77, 2009; T. Finley,
"Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009, Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from netclust.learners.cutting_plane import (
    Constraints,
    Found,
    Matrix,
    OnIteration,
    Rescaling,
    State,
    SvmFit,
    check_rule,
    train_cutting_plane,
)
from netclust.problems.base import Problem, Vector
from netclust.problems.sparse_features import add_sparse

__all__ = ["OneSlack"]

X = TypeVar("X")
Y = TypeVar("Y")
H = TypeVar("H")


@dataclass(frozen=True)
class OneSlack:
    """Algorithm 2, with margin or slack rescaling; a plane that was idle in `purge_after` solutions is forgotten."""

    C: float = 1.0
    epsilon: float = 0.1
    rescaling: Rescaling = "margin"
    max_iterations: int = 1000
    purge_after: int = 50

    def __post_init__(self) -> None:
        """Refuse settings that cannot be meant."""
        check_rule(self)

    def fit(
        self,
        problem: Problem[X, Y, H],
        examples: Sequence[tuple[X, Y]],
        *,
        warm: SvmFit | None = None,
        on_iteration: OnIteration | None = None,
        checkpoint: Path | None = None,
        checkpoint_every: int = 10,
        jobs: int = 1,
    ) -> SvmFit:
        """Train on examples (x, y); gold structures are those under w = 0 (for latent ones see `LatentSvm`).

        `warm` is an earlier fit on the same examples, with any C. If the file `checkpoint` exists, training goes on
        from it and ends as if it had not been interrupted. The oracle is called by `jobs` threads.
        """
        return train_cutting_plane(self, problem, examples, warm, on_iteration, checkpoint, checkpoint_every, jobs)

    def caps(self, examples: int) -> Vector:
        """C, for the one slack."""
        return np.array([self.C])

    def group_gold(self, constraints: Constraints[Any, Any, Any]) -> Matrix:
        """The mean of the examples' gold features."""
        return constraints.mean_gold[None]

    def look(self, constraints: Constraints[Any, Any, Any], state: State) -> Found:
        """The plane of the most violating outputs, added if its violation is above the slack by more than epsilon."""
        planes, n = state.planes, len(constraints.examples)
        w, g, loss = planes.w, np.zeros(len(planes.w)), 0.0
        for vector, part in constraints.all_worst(w):
            add_sparse(g, vector)
            loss += part
        g, loss = g / n, loss / n
        violation, xi = loss - float(w @ g), float(planes.slacks(w)[0])
        added = violation > xi + self.epsilon or not state.minimiser
        if added:
            planes.add(g, loss)
        return Found(violation, xi, self.C * max(violation, xi), added)
