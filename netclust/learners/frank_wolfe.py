"""Block-coordinate Frank-Wolfe: the n-slack program with margin rescaling, a step an oracle call, and no solver.

The dual variables of an example are kept as one vector w_i and one number l_i; w is the sum of the vectors. A call of
the oracle gives the corner (C/n)(g, Delta), and the best step towards it has a closed form. What the corners could
still gain, summed over the examples at one w, is the duality gap: training stops when it is at most epsilon * C. Memory
is a vector an example, and relaxed outputs are as good as any. Cutting planes reach a small gap sooner where the oracle
is costly or C is large; this is for cheap oracles and many examples.

>>> from netclust.problems.base import TreeProblem
>>> phi = np.zeros((3, 4, 2))  # [distance, root] of every arc
>>> phi[:, 0, 1] = 1
>>> phi[1, 1, 0], phi[2, 1, 0], phi[2, 2, 0] = 0.2, 1.0, 0.8
>>> fit = FrankWolfe(C=1.0, epsilon=0.01).fit(TreeProblem(2), [(phi, np.array([1, 1, 2]))])
>>> fit.converged, bool(fit.gap <= 0.01)
(True, True)

S. Lacoste-Julien, M. Jaggi, M. Schmidt, P. Pletscher, "Block-coordinate Frank-Wolfe optimization for structural SVMs",
ICML 2013.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from netclust.errors import InputError
from netclust.foundation.container import require_array
from netclust.learners.cutting_plane import (
    Constraints,
    IterationReport,
    Matrix,
    OnIteration,
    SvmFit,
    check_rule,
    checkpoint_file,
    pack_reports,
    unpack_reports,
)
from netclust.learners.working_set import Planes
from netclust.problems.base import Problem, Vector, signed_weights
from netclust.problems.sparse_features import in_full, sparse_dot

__all__ = ["FrankWolfe"]

X = TypeVar("X")
Y = TypeVar("Y")
H = TypeVar("H")


@dataclass(frozen=True)
class FrankWolfe:
    """Passes over the examples in a seeded random order; the gap costs a pass and is taken every `check_every`."""

    C: float = 1.0
    epsilon: float = 0.1
    max_iterations: int = 1000
    check_every: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse settings that cannot be meant."""
        check_rule(self)
        if self.check_every < 1:
            raise InputError(f"check_every is {self.check_every}: it must be at least 1")

    def fit(
        self,
        problem: Problem[X, Y, H],
        examples: Sequence[tuple[X, Y]],
        *,
        on_iteration: OnIteration | None = None,
        checkpoint: Path | None = None,
        checkpoint_every: int = 10,
        jobs: int = 1,
    ) -> SvmFit:
        """Train on examples (x, y); arguments as of `OneSlack.fit`, threads only for the passes that take the gap.

        The fit's one plane is a one-slack plane, so that `OneSlack` can go on from it.
        """
        n, D = len(examples), problem.dimension
        if len(signed_weights(problem)):
            raise InputError(
                "Frank-Wolfe does not keep weights from falling below 0: use the one-slack or n-slack learner"
            )
        constraints = Constraints(problem, examples, "margin", np.zeros(D), jobs)
        file = checkpoint_file(self, problem, n, checkpoint, checkpoint_every)
        blocks = DualBlocks(np.zeros((n, D)), np.zeros(n), np.zeros(D), self.C / n)
        best, best_w, reports = math.inf, blocks.w.copy(), list[IterationReport]()
        found = file.load() if file is not None else None
        if file is not None and found is not None:
            arrays, where = found[0], str(file.path)
            file.check_gold(arrays, constraints.mean_gold)
            blocks.vectors = require_array(arrays, "vectors", np.float64, (n, D), where)
            blocks.losses = require_array(arrays, "losses", np.float64, (n,), where)
            blocks.w = require_array(arrays, "w", np.float64, (D,), where)
            best_w = require_array(arrays, "best_w", np.float64, (D,), where)
            reports = unpack_reports(arrays, where)
            best = reports[-1].primal
        converged = stopped = False
        while len(reports) < self.max_iterations and not (converged or stopped):
            started, passes = time.perf_counter(), len(reports) + 1
            # An order of its own for every pass: a run that goes on needs no state of the generator.
            order = np.random.default_rng([self.seed, passes]).permutation(n)
            gains = 0.0
            for i in order.tolist():
                change, loss = constraints.worst(i, blocks.w)
                gains += blocks.step(i, in_full(change, D), loss)
            violation, xi = math.nan, float((blocks.losses.sum() - blocks.w @ blocks.w) / self.C)
            due = gains <= self.epsilon * self.C or passes % self.check_every == 0 or passes == self.max_iterations
            if due:
                gap, needed = blocks.gap(constraints)
                violation = needed / self.C
                primal = float(blocks.w @ blocks.w) / 2 + needed
                if primal < best:
                    best, best_w = primal, blocks.w.copy()
                converged = gap <= self.epsilon * self.C
            seconds = time.perf_counter() - started
            violation = violation if due else reports[-1].violation if reports else 0.0
            report = IterationReport(passes, n, violation, xi, best, blocks.dual, best - blocks.dual, seconds, 0.0)
            reports.append(report)
            stopped = bool(on_iteration is not None and on_iteration(report)) and not converged
            if file is not None and not converged and (stopped or passes % file.every == 0):
                state = {"vectors": blocks.vectors, "losses": blocks.losses, "w": blocks.w, "best_w": best_w}
                kept = {"gold": constraints.mean_gold, "reports": pack_reports(reports)}
                file.save({**state, **kept}, {"iteration": passes})
        w = blocks.w if not math.isfinite(best) else best_w
        plane = Planes(
            blocks.w[None] / self.C,
            np.array([blocks.losses.sum() / self.C]),
            np.zeros(1, np.int64),
            constraints.mean_gold[None],
            "margin",
        )
        slack = max(0.0, float(plane.losses[0] - plane.vectors[0] @ w))
        gap = best - blocks.dual
        return SvmFit(w.copy(), slack, best, blocks.dual, gap, len(reports), converged, plane, reports=reports)


@dataclass(eq=False)
class DualBlocks:
    """The dual variables: a vector and a number an example, in units of the objective, and the sum of the vectors."""

    vectors: Matrix
    losses: Vector
    w: Vector
    cap: float

    @property
    def dual(self) -> float:
        """The dual value: a lower bound of the objective."""
        return float(self.losses.sum()) - float(self.w @ self.w) / 2

    def step(self, i: int, g: Vector, loss: float) -> float:
        """Move example i towards a corner as far as the dual grows; what the corner promised."""
        away, more = self.cap * g - self.vectors[i], self.cap * loss - self.losses[i]
        gain, curve = float(more - self.w @ away), float(away @ away)
        if gain > 0:
            share = 1.0 if gain >= curve else gain / curve
            self.vectors[i] += share * away
            self.losses[i] += share * more
            self.w += share * away
        return max(gain, 0.0)

    def gap(self, constraints: Constraints[X, Y, H]) -> tuple[float, float]:
        """The duality gap at w, and sum_i cap xi_i there: every example's worst output with w left alone."""
        needed = 0.0
        for g, loss in constraints.all_worst(self.w):
            needed += self.cap * max(0.0, loss - sparse_dot(self.w, g))
        return needed + float(self.w @ self.w) - float(self.losses.sum()), needed
