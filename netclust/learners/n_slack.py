"""The n-slack structural SVM: a slack and a working set for every example.

    min |w|^2/2 + (C/n) sum_i xi_i   with   Delta_i(h) - w.(Phi(x_i, h*_i) - Phi(x_i, h)) <= xi_i   for every i and h

A pass asks the oracle for the worst output of every example and adds it where it is violated by more than
`xi_i + epsilon`; training stops after a pass that added nothing. The program is solved once a pass, or after every
`batch` additions. `slack_norm="sum"` puts C in the place of C/n.

>>> from netclust.problems.base import TreeProblem
>>> phi = np.zeros((3, 4, 2))  # [distance, root] of every arc
>>> phi[:, 0, 1] = 1
>>> phi[1, 1, 0], phi[2, 1, 0], phi[2, 2, 0] = 0.2, 1.0, 0.8
>>> fit = NSlack(C=100.0, epsilon=0.01).fit(TreeProblem(2), [(phi, np.array([1, 1, 2]))])
>>> fit.converged, fit.w.round(2).tolist(), fit.slacks.round(2).tolist()
(True, [-5.0, -3.0], [0.0])

I. Tsochantaridis, T. Joachims, T. Hofmann, Y. Altun, "Large margin methods for structured and interdependent output
variables", JMLR 6, 2005; T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, 2009, Algorithm 1.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from netclust.errors import InputError
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
from netclust.problems.sparse_features import in_full

__all__ = ["NSlack"]

X = TypeVar("X")
Y = TypeVar("Y")
H = TypeVar("H")


@dataclass(frozen=True)
class NSlack:
    """Algorithm 1, with margin or slack rescaling; `batch` None solves the program once a pass."""

    C: float = 1.0
    epsilon: float = 0.1
    rescaling: Rescaling = "margin"
    max_iterations: int = 1000
    purge_after: int = 50
    batch: int | None = None
    slack_norm: Literal["mean", "sum"] = "mean"

    def __post_init__(self) -> None:
        """Refuse settings that cannot be meant."""
        check_rule(self)
        if self.slack_norm not in ("mean", "sum"):
            raise InputError(f"slack_norm is {self.slack_norm!r}: use 'mean' (C/n) or 'sum' (C)")

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
        """Train on examples (x, y), as `OneSlack.fit`; threads are of use only where `batch` is None."""
        return train_cutting_plane(self, problem, examples, warm, on_iteration, checkpoint, checkpoint_every, jobs)

    def caps(self, examples: int) -> Vector:
        """C/n or C, for every example's slack."""
        return np.full(examples, self.C / examples if self.slack_norm == "mean" else self.C)

    def group_gold(self, constraints: Constraints[Any, Any, Any]) -> Matrix:
        """The gold features of every example."""
        return constraints.gold

    def look(self, constraints: Constraints[Any, Any, Any], state: State) -> Found:
        """One pass: the worst output of every example, added if it is above its slack by more than epsilon."""
        planes, n = state.planes, len(constraints.examples)
        start, tested = planes.w, state.minimiser
        xi = planes.slacks(start)
        violation, needed, slack = np.zeros(n), np.zeros(n), np.zeros(n)
        waiting, any_added, qp_seconds = 0, False, 0.0
        in_turn = constraints.all_worst(start) if self.batch is None else None
        for i in range(n):
            change, loss = next(in_turn) if in_turn is not None else constraints.worst(i, planes.w)
            g = in_full(change, len(start))
            violation[i] = loss - float(planes.w @ g)
            slack[i], needed[i] = xi[i], max(violation[i], xi[i])
            if violation[i] > xi[i] + self.epsilon or not tested:
                planes.add(g, loss, i)
                any_added = True
                waiting += 1
                if waiting == self.batch and i + 1 < n:
                    before = time.perf_counter()
                    planes.solve()
                    qp_seconds += time.perf_counter() - before
                    xi, waiting = planes.slacks(planes.w), 0
        risk = float(state.planes.caps @ needed) if planes.w is start else None
        return Found(float(violation.mean()), float(slack.mean()), risk, any_added, qp_seconds)
