"""Online learners of latent structures: the perceptron LSP and its passive-aggressive twin LSPA.

Both walk over the examples in their order and move w from the max-violating structure towards the gold one:
LSP by the difference of their features, LSPA just far enough that the gold structure wins by the loss.

>>> from netclust.problems.base import TreeProblem
>>> a, colour, y = [0.0, 0.2, 1.0], [0, 0, 1], np.array([1, 1, 2])
>>> phi = np.zeros((3, 4, 3))  # [same colour, distance, root]
>>> phi[:, 0] = [0, 0, 1]
>>> for j in range(3):
...     for i in range(j):
...         phi[j, i + 1] = [colour[i] == colour[j], abs(a[i] - a[j]), 0]
>>> problem = TreeProblem(3)
>>> fitted = Lsp().fit(problem, [(phi, y)], epochs=5)
>>> fitted.last.round(6).tolist(), fitted.averaged.round(6).tolist()
([3.0, -2.0, 0.0], [2.4, -1.48, -0.2])
>>> fitted.losses, fitted.steps, fitted.updates
((3.0, 3.0, 2.0, 1.0, 0.0), 5, 4)
>>> problem.predict(phi, fitted.averaged).tolist()
[0, 1, 0]
>>> Lspa().fit(problem, [(phi, y)], epochs=1).last.round(6).tolist()
[1.829268, -1.463415, 0.0]

Where the problem can say the difference of two structures' features (`SparseProblem`), a step costs what it touches,
however long w is. There is no stopping rule: choose the number of epochs on held-out data; `on_epoch` sees the model
after each.

Reference: I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of
Trento, 2018; section 2.2 (Algorithm 2) and 2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from netclust.problems.base import Problem, Vector, problem_difference
from netclust.problems.sparse_features import Change, add_sparse, sparse_dot, squared_length, times

X = TypeVar("X")
Y = TypeVar("Y")
H = TypeVar("H")

TAU_MIN = 1e-12
"""Steps no longer than this are not made: a tie at the margin would give endless steps of length 0."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a learner found: the last weights, their average over all steps, and how training went.

    `losses` holds, for each epoch, the sum of the losses of the max-violating structures.
    """

    last: Vector
    averaged: Vector
    steps: int
    updates: int
    losses: tuple[float, ...]


OnEpoch = Callable[[Fitted], bool | None]
"""Called after each epoch with the model so far; returning True ends the training."""


@dataclass(frozen=True)
class Lsp:
    """Algorithm 2: where the max-violating structure does not induce y, add Phi(x, h*) - Phi(x, h^) to w."""

    def fit(
        self,
        problem: Problem[X, Y, H],
        examples: Sequence[tuple[X, Y]],
        *,
        epochs: int,
        C: float = 1.0,
        w0: Vector | None = None,
        on_epoch: OnEpoch | None = None,
        seed: int | None = None,
    ) -> Fitted:
        """Train on the examples in their order, or with a seed in another one each epoch.

        C multiplies the loss in the search for h^.
        """

        def step(x: X, y: Y, w: Vector) -> tuple[Change | None, float]:
            h_hat, loss = problem.max_violating(x, y, w, C)
            if loss <= 0:
                return None, loss
            return problem_difference(problem, x, problem.gold(x, y, w), h_hat), loss

        return _run(step, examples, _start(problem.dimension, w0), epochs, on_epoch, seed)


@dataclass(frozen=True)
class Lspa:
    """Section 2.3: add tau*g to w, g = Phi(x, h*) - Phi(x, h^), so that `w.g = C*Delta`; tau <= `cap`."""

    cap: float | None = None

    def fit(
        self,
        problem: Problem[X, Y, H],
        examples: Sequence[tuple[X, Y]],
        *,
        epochs: int,
        C: float = 1.0,
        w0: Vector | None = None,
        on_epoch: OnEpoch | None = None,
        seed: int | None = None,
    ) -> Fitted:
        """Train on the examples in their order, or with a seed in another one each epoch.

        C multiplies the loss, in the search for h^ and in tau.
        """

        def step(x: X, y: Y, w: Vector) -> tuple[Change | None, float]:
            h_hat, loss = problem.max_violating(x, y, w, C)
            g = problem_difference(problem, x, problem.gold(x, y, w), h_hat)
            length = squared_length(g)
            if length == 0:
                return None, loss
            tau = (C * loss - sparse_dot(w, g)) / length
            if self.cap is not None:
                tau = min(tau, self.cap)
            return (times(g, tau) if tau > TAU_MIN else None), loss

        return _run(step, examples, _start(problem.dimension, w0), epochs, on_epoch, seed)


def _start(dimension: int, w0: Vector | None) -> Vector:
    w = np.zeros(dimension) if w0 is None else np.array(w0, np.float64)
    if w.shape != (dimension,):
        raise ValueError(f"w0 has shape {w.shape}, expected {(dimension,)}")
    return w


def _run(
    step: Callable[[X, Y, Vector], tuple[Change | None, float]],
    examples: Sequence[tuple[X, Y]],
    w: Vector,
    epochs: int,
    on_epoch: OnEpoch | None,
    seed: int | None,
) -> Fitted:
    """Make one step per example and epoch, and average the vectors after each step, changed or not."""
    if epochs < 1 or not examples:
        raise ValueError(f"nothing to train on: {len(examples)} examples, {epochs} epochs; both must be at least 1")
    u = np.zeros_like(w)
    t = updates = 0
    losses: list[float] = []
    for epoch in range(epochs):
        losses.append(0.0)
        for i in _order(len(examples), seed, epoch):
            change, loss = step(*examples[i], w)
            losses[-1] += loss
            if change is not None:
                # an increment made at step t+1 is missing from the t vectors before it
                add_sparse(u, change, t)
                add_sparse(w, change)
                updates += 1
            t += 1
        # w is changed in place, so a model is a copy: as many of them as somebody looks at
        if on_epoch is not None and on_epoch(_model(w, u, t, updates, losses)):
            break
    return _model(w, u, t, updates, losses)


def _model(w: Vector, u: Vector, t: int, updates: int, losses: list[float]) -> Fitted:
    return Fitted(w.copy(), w - u / t, t, updates, tuple(losses))


def _order(examples: int, seed: int | None, epoch: int) -> Iterable[int]:
    """The order of an epoch; one of its own for every epoch, so that it does not depend on the epochs before."""
    if seed is None:
        return range(examples)
    order: list[int] = np.random.default_rng([seed, epoch]).permutation(examples).tolist()
    return order
