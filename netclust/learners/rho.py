"""Perceptrons with a learned loss: LSP_rho with a loss that is given, and two that learn the loss as they go.

A task that has features of its outputs and a measure of them (`MeasuredProblem`) becomes one with the learned loss
(`LossProblem`), which every learner of structures can train; here it is Algorithm 2.

* `collect_regression` gathers outputs with their measure, for `netclust.problems.loss_learning.fit_loss`;
* `LspRho` trains with the loss that came out;
* `LspRhoJoint` (Algorithm 3) learns the loss anew after each epoch, from all outputs so far;
* `LspRhoOnline` (Algorithm 4) moves the loss at every output, until an epoch makes it worse.

Both joint learners begin with the task's own loss. See `netclust.models.coreference.measured_antecedents` for an
example.

I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018; chapter 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from netclust.learners.perceptron import Fitted, Lsp, OnEpoch
from netclust.losses.learned_loss import LearnedLoss
from netclust.problems.base import Problem, Vector, problem_difference
from netclust.problems.loss_learning import OnlineRegressor, RegressionSet, Regressor, fit_loss
from netclust.problems.sparse_features import Change

__all__ = [
    "FittedLoss",
    "LossProblem",
    "LspRho",
    "LspRhoJoint",
    "LspRhoOnline",
    "MeasuredProblem",
    "collect_regression",
]

X = TypeVar("X")
Y = TypeVar("Y")
H = TypeVar("H")

LEAST_LOSS = 1e-12
"""What a wrong output costs at least: an estimate can call it perfect, but it is to be learned from all the same."""


class MeasuredProblem(Problem[X, Y, H], Protocol[X, Y, H]):
    """A task whose outputs have a measure in percent, and features from which a learned loss estimates it."""

    def features(self, y: Y, h: H) -> Vector:
        """Return Psi(y, h), in percent and always equally many."""

    def metric(self, y: Y, h: H) -> float:
        """Return the measure of h, in percent; more is better."""

    def weight(self, y: Y) -> float:
        """Return c, how much the example weighs: Delta' is c/100 of Delta_rho; for clusterings, the right items."""

    def violating(self, x: X, y: Y, w: Vector, C: float, loss: LearnedLoss) -> tuple[H, float]:
        """Return a structure of high `w.Phi(x, h) + C*Delta'(y, h)` under the learned loss, and its Delta'."""

    def alone(self, x: X) -> tuple[MeasuredProblem[X, Y, H], X]:
        """Return the task and example with no more weights than the example needs; (self, x) is right, too."""


class LossProblem(Generic[X, Y, H]):
    """A measured task with a learned loss in place of its own (None: its own); `watch` sees every violating tree."""

    def __init__(
        self,
        problem: MeasuredProblem[X, Y, H],
        loss: LearnedLoss | None,
        watch: Callable[[Y, H], None] | None = None,
    ) -> None:
        self.problem = problem
        self.learned = loss
        self.watch = watch

    @property
    def dimension(self) -> int:
        """The length of w."""
        return self.problem.dimension

    def joint_features(self, x: X, h: H) -> Vector:
        """Return Phi(x, h)."""
        return self.problem.joint_features(x, h)

    def difference(self, x: X, a: H, b: H) -> Change:
        """Return Phi(x, a) - Phi(x, b)."""
        return problem_difference(self.problem, x, a, b)

    def predict(self, x: X, w: Vector) -> H:
        """Return the structure of the highest score."""
        return self.problem.predict(x, w)

    def gold(self, x: X, y: Y, w: Vector) -> H:
        """Return the best structure that induces y."""
        return self.problem.gold(x, y, w)

    def max_violating(self, x: X, y: Y, w: Vector, C: float) -> tuple[H, float]:
        """Return a structure of high score plus C times the loss, and its loss; that is 0 only where it induces y."""
        if self.learned is None:
            h, loss = self.problem.max_violating(x, y, w, C)
        else:
            h, delta = self.problem.violating(x, y, w, C, self.learned)
            loss = self._of_wrong(y, h, delta)
        if self.watch is not None:
            self.watch(y, h)
        return h, loss

    def loss(self, y: Y, h: H) -> float:
        """Return the loss in use, Delta' for a learned one."""
        if self.learned is None:
            return self.problem.loss(y, h)
        delta = self.learned.scaled(self.problem.features(y, h), self.problem.weight(y))
        return self._of_wrong(y, h, delta)

    def _of_wrong(self, y: Y, h: H, delta: float) -> float:
        return max(delta, LEAST_LOSS) if self.problem.loss(y, h) > 0 else 0.0


def collect_regression(
    problem: MeasuredProblem[X, Y, H], examples: Sequence[tuple[X, Y]], *, epochs: int = 50, C: float = 1.0
) -> RegressionSet:
    """The max-violating outputs of LSP with the task's own loss, trained on each example alone until it is right."""
    seen = RegressionSet()
    for x, y in examples:
        task, small = problem.alone(x)
        watched = LossProblem(task, None, _adding(problem, seen))
        Lsp().fit(watched, [(small, y)], epochs=epochs, C=C, on_epoch=lambda fitted: fitted.losses[-1] <= 0)
    return seen


@dataclass(frozen=True, eq=False)
class FittedLoss:
    """The weights, the loss that was learned with them, and from how many outputs or with which errors by epoch."""

    fitted: Fitted
    loss: LearnedLoss
    outputs: int
    errors: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class LspRho:
    """Algorithm 2 with a learned loss."""

    loss: LearnedLoss

    def fit(
        self,
        problem: MeasuredProblem[X, Y, H],
        examples: Sequence[tuple[X, Y]],
        *,
        epochs: int,
        C: float = 1.0,
        w0: Vector | None = None,
        on_epoch: OnEpoch | None = None,
        seed: int | None = None,
    ) -> Fitted:
        """Train on the examples in their order, or with a seed in another one each epoch."""
        task = LossProblem(problem, self.loss)
        return Lsp().fit(task, examples, epochs=epochs, C=C, w0=w0, on_epoch=on_epoch, seed=seed)


@dataclass(frozen=True)
class LspRhoJoint:
    """Algorithm 3: the regressor is fitted to the set of all outputs so far after each epoch, and used in the next."""

    regressor: Regressor = "svr"

    def fit(
        self,
        problem: MeasuredProblem[X, Y, H],
        examples: Sequence[tuple[X, Y]],
        *,
        epochs: int,
        C: float = 1.0,
        w0: Vector | None = None,
        on_epoch: OnEpoch | None = None,
        seed: int | None = None,
    ) -> FittedLoss:
        """Train the weights and the loss."""
        seen = RegressionSet()
        task = LossProblem(problem, None, _adding(problem, seen))
        known = 0

        def refit() -> LearnedLoss:
            nonlocal known
            if task.learned is None or len(seen) > known:
                known = len(seen)
                task.learned = fit_loss(seen.features, seen.targets, self.regressor)
            return task.learned

        def end(fitted: Fitted) -> bool | None:
            refit()
            return on_epoch is not None and on_epoch(fitted)

        fitted = Lsp().fit(task, examples, epochs=epochs, C=C, w0=w0, on_epoch=end, seed=seed)
        return FittedLoss(fitted, refit(), len(seen))


@dataclass(frozen=True)
class LspRhoOnline:
    """Algorithm 4: a regressor that learns from every output, used from the second epoch on while it still moves."""

    eta: float = 0.1

    def fit(
        self,
        problem: MeasuredProblem[X, Y, H],
        examples: Sequence[tuple[X, Y]],
        *,
        epochs: int,
        C: float = 1.0,
        w0: Vector | None = None,
        on_epoch: OnEpoch | None = None,
        seed: int | None = None,
    ) -> FittedLoss:
        """Train the weights and the loss."""
        online = OnlineRegressor(_feature_count(problem, examples), self.eta)
        outputs = 0

        def learn(y: Y, h: H) -> None:
            nonlocal outputs
            if not online.frozen:  # the measure takes time
                online.learn(problem.features(y, h), problem.metric(y, h))
                outputs += 1
                if task.learned is not None:
                    task.learned = online.loss

        def end(fitted: Fitted) -> bool | None:
            online.end_epoch()
            task.learned = online.loss
            return on_epoch is not None and on_epoch(fitted)

        task = LossProblem(problem, None, learn)
        fitted = Lsp().fit(task, examples, epochs=epochs, C=C, w0=w0, on_epoch=end, seed=seed)
        return FittedLoss(fitted, online.loss, outputs, tuple(online.errors))


def _feature_count(problem: MeasuredProblem[X, Y, H], examples: Sequence[tuple[X, Y]]) -> int:
    return next((len(problem.features(y, problem.predict(x, np.zeros(problem.dimension)))) for x, y in examples), 0)


def _adding(problem: MeasuredProblem[X, Y, H], seen: RegressionSet) -> Callable[[Y, H], None]:
    def add(y: Y, h: H) -> None:
        seen.add(problem.features(y, h), problem.metric(y, h))

    return add
