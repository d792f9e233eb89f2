"""The min-max compiler: inference as a linear (or conic) program, in; the joint convex program of learning, out.

An example's loss-augmented inference is `d + max of (F w + c) . mu` over mu in a relaxed set; F has a row of features a
variable, c is what choosing it adds to the loss, d the loss of choosing none. The largest value is that of the dual
program, so "the truth beats every mu by its loss, but for a slack" becomes one quadratic program, (4.12) of the source:

    min 0.5 |w|^2 + C sum of xi_i   with   w . F'y + xi >= d + b . lambda,  A' lambda >= F w + c,  lambda >= 0

It is solved from its dual side, `max of sum of c . mu - (C / 2) |sum of F'(y - mu)|^2`, w being C times that sum; the
prices of the rows are lambda. A choice of two, where the second is right:

>>> choice = linear_set(np.array([[1.0, 1.0]]), np.ones(1), equal=1)  # mu_0 + mu_1 = 1
>>> example = Inference(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 0.0]), 0.0, np.array([0.0, 1.0]), choice)
>>> learned = min_max([example], C=10.0)
>>> learned.w.round(4).tolist(), learned.primal.__round__(4), learned.gap < 1e-6
([-0.5, 0.5], 0.25, True)

Where the relaxed set has corners that are no outputs, the program guards against those too: what is learned suits the
relaxed inference. Weights that inference needs at 0 or above (`nonnegative`: the attraction of a network) are kept so.

B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University, 2004,
sections 4.1.1 and 4.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.structures.pairs import Vector, check_numbers
from netclust.structures.sdp import clarabel_solution

__all__ = ["Inference", "MinMaxFit", "RelaxedSet", "linear_set", "min_max"]

WHAT = "a min-max learner"


@dataclass(frozen=True, eq=False)
class RelaxedSet:
    """The mu with `sides - rows mu` in the cones: all in [0, 1], every output among them."""

    rows: Any
    """Sparse, [rows, variables]."""
    sides: Vector
    cones: list[Any]
    bound: Callable[[Vector, Vector], float]
    """(scores, prices of the rows): no mu has a sum of scores above it, whatever the prices."""


@dataclass(frozen=True, eq=False)
class Inference:
    """An example: features and loss of the variables, the loss of none, the true output, what it is chosen from."""

    features: NDArray[np.float64]
    loss: Vector
    constant: float
    truth: Vector
    relaxed: RelaxedSet

    def __post_init__(self) -> None:
        """Refuse parts that do not fit together."""
        variables = self.relaxed.rows.shape[1]
        if any(len(part) != variables for part in (self.features, self.loss, self.truth)):
            sizes = f"{len(self.features)}, {len(self.loss)} and {len(self.truth)}"
            raise InputError(f"an example has {sizes} features, losses and truths for {variables} variables")
        check_numbers(self.features, "features")


@dataclass(frozen=True, eq=False)
class MinMaxFit:
    """Learned weights, with primal and dual values of the learning program: its solution is within `gap` of the best.

    The slacks are certified from above: each is what the prices prove, so it is at least the example's loss.
    """

    w: Vector
    slacks: Vector
    mu: list[Vector]
    """The relaxed output of every example that w is the difference to."""
    prices: list[Vector]
    """Of the rows of every example."""
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """How far the primal value may be from the best."""
        return self.primal - self.dual


def linear_set(A: Any, b: Vector, *, equal: int = 0) -> RelaxedSet:
    """The mu >= 0 with A mu <= b, the first `equal` rows with equality. The rows must keep every mu at 1 or below."""
    clarabel, sparse = require_optional("clarabel", WHAT), require_optional("scipy.sparse", WHAT)
    own = sparse.csc_matrix(A)
    count, variables = own.shape
    rows = sparse.vstack([own, -sparse.identity(variables)], format="csc")
    sides = np.concatenate([np.asarray(b, np.float64), np.zeros(variables)])
    cones = [clarabel.ZeroConeT(equal)] if equal else []
    cones.append(clarabel.NonnegativeConeT(count - equal + variables))

    def bound(scores: Vector, prices: Vector) -> float:
        paid = np.concatenate([prices[:equal], np.maximum(prices[equal:count], 0.0)])
        return float(sides[:count] @ paid + np.maximum(scores - own.T @ paid, 0.0).sum())

    return RelaxedSet(rows, sides, cones, bound)


def min_max(examples: Sequence[Inference], C: float, *, nonnegative: Sequence[int] = ()) -> MinMaxFit:
    """Learn from examples of the same features."""
    if not (np.isfinite(C) and C > 0):
        raise InputError(f"C is {C}: it must be a positive number")
    if not examples:
        raise InputError("no examples to learn from")
    dimension = examples[0].features.shape[1]
    if any(one.features.shape[1] != dimension for one in examples):
        raise InputError("examples have different numbers of features")
    clarabel, sparse = require_optional("clarabel", WHAT), require_optional("scipy.sparse", WHAT)
    free = np.setdiff1d(np.arange(dimension), np.asarray(nonnegative, np.int64))
    first = np.concatenate([free, np.asarray(nonnegative, np.int64)])  # equations, then v >= F'(y - mu)
    # Variables (v = w / C, mu_1, mu_2, ...): minimise (C / 2) |v|^2 - loss . mu with v + F'mu = F'y.
    truth = np.sum([one.features.T @ one.truth for one in examples], axis=0)
    link = sparse.hstack([sparse.identity(dimension), *(sparse.csc_matrix(one.features.T) for one in examples)])
    sign = np.where(np.isin(first, free), 1.0, -1.0)
    link = sparse.diags(sign) @ link.tocsr()[first]
    blocks = sparse.block_diag([one.relaxed.rows for one in examples])
    padding = sparse.csc_matrix((blocks.shape[0], dimension))
    A = sparse.vstack([link, sparse.hstack([padding, blocks])], format="csc")
    b = np.concatenate([sign * truth[first], *(one.relaxed.sides for one in examples)])
    sizes = [len(one.loss) for one in examples]
    P = sparse.diags(np.concatenate([np.full(dimension, C), np.zeros(sum(sizes))]), format="csc")
    q = np.concatenate([np.zeros(dimension), *(-one.loss for one in examples)])
    own = [clarabel.ZeroConeT(len(free))] if len(free) else []
    own += [clarabel.NonnegativeConeT(dimension - len(free))] if len(free) < dimension else []
    solution = clarabel_solution(P, q, A, b, [*own, *(cone for one in examples for cone in one.relaxed.cones)])
    found = np.clip(np.asarray(solution.x)[dimension:], 0.0, 1.0)
    mu = np.split(found, np.cumsum(sizes)[:-1])
    ends = np.cumsum([len(one.relaxed.sides) for one in examples])[:-1]
    prices = np.split(np.asarray(solution.z)[dimension:], ends)
    w = C * np.sum([one.features.T @ (one.truth - m) for one, m in zip(examples, mu, strict=True)], axis=0)
    w[first[len(free) :]] = np.maximum(w[first[len(free) :]], 0.0)
    slacks = np.array([_slack(one, w, price) for one, price in zip(examples, prices, strict=True)])
    loss = sum(float(one.constant + one.loss @ m) for one, m in zip(examples, mu, strict=True))
    half = 0.5 * float(w @ w)
    return MinMaxFit(w, slacks, mu, prices, half + C * float(slacks.sum()), C * loss - half)


def _slack(one: Inference, w: Vector, prices: Vector) -> float:
    scores = one.features @ w
    return float(one.constant + one.relaxed.bound(scores + one.loss, prices) - scores @ one.truth)
