"""The latent structural SVM: the gold output is known, the gold structure behind it is not (CCCP).

    min |w|^2/2 + C mean_i [max_h (w.Phi(x_i, h) + Delta(y_i, h)) - max_{h that induce y_i} w.Phi(x_i, h)]

The second maximum makes it non-convex. Every round fixes the gold structures that are best under the current w, which
gives a convex program that touches the objective there and is above it elsewhere, and solves that one: the objective
never rises. Training stops when a round gains less than `tolerance * C`. The planes of a round are carried over to the
next: only their gold part changes.

>>> from netclust.problems.base import TreeProblem
>>> def example(places, y):  # arcs [distance, root]
...     phi = np.zeros((len(y), len(y) + 1, 2))
...     phi[:, 0, 1] = 1
...     phi[:, 1:, 0] = np.abs(np.subtract.outer(places, places))
...     return phi, np.array(y)
>>> examples = [example([0.0, 1.5, 1.0, 2.2], [1, 1, 1, 1]), example([0.0, 3.0, 2.6], [1, 2, 2])]
>>> fit = LatentSvm(OneSlack(C=10.0, epsilon=0.01), tolerance=0.01).fit(TreeProblem(2), examples)
>>> fit.converged, [round(objective, 2) for objective in fit.rounds]
(True, [14.38, 10.31])
>>> TreeProblem(2).predict(examples[0][0], fit.w).tolist()
[0, 1, 2, 2]

C.-N. Yu, T. Joachims, "Learning structural SVMs with latent variables", ICML 2009.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from netclust.errors import InputError
from netclust.foundation.container import require_array
from netclust.learners.cutting_plane import OnIteration, State, SvmFit, Training, checkpoint_file
from netclust.learners.n_slack import NSlack
from netclust.learners.one_slack import OneSlack
from netclust.problems.base import Problem

__all__ = ["LatentSvm"]

X = TypeVar("X")
Y = TypeVar("Y")
H = TypeVar("H")


@dataclass(frozen=True)
class LatentSvm:
    """CCCP around a convex learner with margin rescaling; every round has that learner's `max_iterations`."""

    convex: OneSlack | NSlack = field(default_factory=OneSlack)
    tolerance: float = 0.1
    max_rounds: int = 50

    def __post_init__(self) -> None:
        """Refuse settings that cannot be meant."""
        if self.convex.rescaling != "margin":
            raise InputError("a latent structural SVM needs margin rescaling: with slack rescaling no round is convex")
        if not (math.isfinite(self.tolerance) and self.tolerance >= 0) or self.max_rounds < 1:
            raise InputError("tolerance is a number from 0 on, and max_rounds at least 1")

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
        """Train from w = 0 or that of an earlier fit; `warm`, `checkpoint` and `jobs` are as in `OneSlack.fit`.

        `rounds` of the fit are the objectives after every round; `dual` and `gap` are those of the last convex program.
        """
        file = checkpoint_file(self, problem, len(examples), checkpoint, checkpoint_every)
        if warm is not None and warm.w.shape != (problem.dimension,):
            raise InputError(f"the warm start has {len(warm.w)} weights, this problem {problem.dimension}")
        w = np.zeros(problem.dimension) if warm is None else warm.w
        objectives: list[float] = []
        found = file.load() if file is not None else None
        if file is not None and found is not None:
            w = require_array(found[0], "start_w", np.float64, (problem.dimension,), str(file.path))
            objectives = require_array(found[0], "objectives", np.float64, (None,), str(file.path)).tolist()
        training = Training(self.convex, problem, examples, w, jobs)
        if file is not None and found is not None:
            state = training.restore(file, *found)
        else:
            state = self._first(training, warm)
        while True:
            also = {"start_w": w, "objectives": np.array(objectives)}
            fit, stopped = training.run(state, on_iteration, file, also, len(objectives) + 1)
            if stopped and not fit.converged:
                return replace(fit, rounds=tuple(objectives))
            following = Training(self.convex, problem, examples, fit.w, jobs)
            # What the gold structures gain by being chosen anew is what the objective is below the convex one.
            objective = fit.objective - float(training.caps @ ((following.gold - training.gold) @ fit.w))
            if objectives and objective >= objectives[-1]:  # within the convex learner's epsilon: the start was better
                kept = training.fit_at(w, objectives[-1], state, fit.converged)
                return replace(kept, rounds=tuple(objectives))
            gain = objectives[-1] - objective if objectives else math.inf
            objectives.append(objective)
            settled = gain <= self.tolerance * self.convex.C
            if settled or len(objectives) == self.max_rounds:
                rounds = tuple(objectives)
                return replace(fit, objective=objective, converged=fit.converged and settled, rounds=rounds)
            w, reports = fit.w, state.reports
            state = following.start(w, fit.planes.with_gold(following.gold))
            state.reports = reports
            training = following
            if file is not None:  # a round may be shorter than the time between two checkpoints
                also = {"start_w": w, "objectives": np.array(objectives)}
                training.save(file, state, also, len(objectives) + 1)
            if stopped:
                return replace(fit, objective=objective, converged=False, rounds=tuple(objectives))

    @staticmethod
    def _first(training: Training[X, Y, H], warm: SvmFit | None) -> State:
        """The first round's start: planes of an earlier fit of the same kind, moved to today's gold structures."""
        if warm is None:
            return training.start()
        planes = warm.planes
        if planes.gold.shape != training.gold.shape or planes.rescaling != "margin":
            return training.start(warm.w)
        return training.start(warm.w, planes.with_gold(training.gold))
