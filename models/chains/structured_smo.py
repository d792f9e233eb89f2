"""Structured SMO: the dual of max-margin chains by marginals, one example at a time, with kernels on places.

The dual variables of an example are a distribution over its labellings, kept as the marginals of places and of
neighbours (spec 2.4); the distribution of the highest entropy that has them is what they stand for. A step moves mass
from a labelling that lacks score to the best one, and never makes the dual worse. The program is that of `OneSlack` and
`FrankWolfe` on `ChainProblem`, with the same C and the same losses:

    min |w|^2/2 + C mean_i xi_i    (Taskar's C, which weights a sum, is C / examples)

so a linear kernel gives their weights. Training stops when the duality gap is at most epsilon * C.

>>> x, y = np.array([[1.0, 0.0], [0.1, 0.0], [0.0, 1.0]]), np.array([0, 0, 1])
>>> fit = StructuredSmo(C=0.1, epsilon=0.001).fit(ChainProblem(2, 2), [(x, y)])
>>> fit.converged, fit.model.predict(x).tolist(), bool(fit.primal - fit.dual <= 0.001 * 0.1)
(True, [0, 0, 1], True)
>>> squares = StructuredSmo(C=0.1, kernel=NodeKernel("polynomial", degree=2)).fit(ChainProblem(2, 2), [(x, y)])
>>> squares.model.predict(x).tolist(), len(squares.model.support)
([0, 0, 1], 3)

A step is O(L K^2) and moves what the likeliest labelling of a clique has, so this is for sequences of some ten places;
long ones are for the cutting-plane learners.

Reference: B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University,
2004; chapter 6, with the largest of the violations (weighted by mass) taken instead of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.chains.chain_inference import Labelling, best_chain, with_price
from netclust.models.chains.chain_problem import ChainExample, ChainProblem
from netclust.models.chains.node_products import NodeKernel
from netclust.problems.base import Vector

__all__ = ["ChainModel", "SmoFit", "SmoPass", "StructuredSmo"]

Matrix = NDArray[np.float64]
Select = Literal["largest", "weighted", "shared"]
_SELECT: tuple[Select, ...] = ("largest", "weighted", "shared")  # as the kernel numbers them
TOLERANCE = 1e-9
"""A labelling that lacks less than this of the best score is as good as the best."""
FRESH_EVERY = 10
"""Scores are made anew from the marginals after so many passes: what steps add to them gathers rounding."""
MAX_PLACES = 20_000
"""With a kernel the products of all pairs of training places are kept: 3 GB at this number."""


@dataclass(frozen=True, eq=False)
class ChainModel:
    """What labels sequences: support places with the weights of their products, and transitions."""

    kernel: NodeKernel
    support: Matrix
    weights: Matrix
    """[support, K]: of the products with a support place, in the score of a label."""
    start: Vector
    edge: Matrix

    def scores(self, x: Matrix) -> Matrix:
        """Of the labels of every place of a sequence by itself."""
        found = np.asarray(self.kernel(x, self.support) @ self.weights, np.float64)
        if len(found):
            found[0] += self.start
        return found

    def predict(self, x: Matrix) -> Labelling:
        """The best labels."""
        return best_chain(self.scores(x), self.edge)


@dataclass(frozen=True)
class SmoPass:
    """One pass over the examples: the dual objective after it, the mean gap as it was met, and steps made."""

    number: int
    dual: float
    gap: float
    steps: int


@dataclass(frozen=True, eq=False)
class SmoFit:
    """The model, both objectives, and whether they met."""

    model: ChainModel
    w: Vector | None
    """The weights of the problem, for a linear kernel."""
    primal: float
    dual: float
    converged: bool
    passes: list[SmoPass] = field(default_factory=list)


@dataclass(frozen=True)
class StructuredSmo:
    """Passes over the examples in a seeded order, `inner` steps a visit.

    `select`: what gives mass to the best labels. Of the clique values (labels of two neighbours), the one that lacks
    most score (largest) or score times mass (weighted) is taken, and the likeliest labelling with it gives: as printed.
    With `shared`, all labellings with it give, each by its share, or all there are, whichever gains more: mass spreads
    over ever more labellings, and what any one of them has to give becomes ever less.
    """

    C: float = 1.0
    epsilon: float = 0.1
    kernel: NodeKernel = field(default_factory=NodeKernel)
    select: Select = "shared"
    inner: int = 10
    max_passes: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse settings that cannot be meant."""
        if not (0 < self.C < np.inf and 0 < self.epsilon < np.inf):
            raise InputError(f"C and epsilon must be above 0, not {self.C} and {self.epsilon}")
        if self.inner < 1 or self.max_passes < 1:
            raise InputError("structured SMO needs at least one pass, and one step a visit")

    def fit(
        self,
        problem: ChainProblem,
        examples: Sequence[ChainExample],
        *,
        on_pass: Callable[[SmoPass], bool | None] | None = None,
    ) -> SmoFit:
        """Train; `on_pass` may end it by returning True."""
        dual = _Dual(self, problem, examples)
        passes: list[SmoPass] = []
        converged, primal = False, np.inf
        while len(passes) < self.max_passes and not converged:
            order = np.random.default_rng([self.seed, len(passes)]).permutation(len(dual.spans))
            gap, steps = 0.0, 0
            for i in order.tolist():
                own, made = dual.visit(i)
                gap += own
                steps += made
            if len(passes) % FRESH_EVERY == FRESH_EVERY - 1:
                dual.refresh()
            passes.append(SmoPass(len(passes) + 1, dual.objective(), gap / dual.examples, steps))
            if gap / dual.examples <= self.epsilon or len(passes) == self.max_passes:
                # what was met on the way is not the gap of where it ended
                dual.refresh()
                primal = dual.primal()
                converged = primal - dual.objective() <= self.epsilon * self.C
            if on_pass is not None and on_pass(passes[-1]):
                break
        if not np.isfinite(primal):
            dual.refresh()
            primal = dual.primal()
        return SmoFit(dual.model(), dual.linear_weights(), primal, dual.objective(), converged, passes)


class _Dual:
    """Marginals of all examples, and the scores and transition weights that follow from them."""

    def __init__(self, rule: StructuredSmo, problem: ChainProblem, examples: Sequence[ChainExample]) -> None:
        used = [(x, y) for x, y in examples if len(y)]
        if not used:
            raise InputError("no sequences to train on")
        self.rule, self.problem, self.examples = rule, problem, len(examples)
        self.C = rule.C / len(examples)
        self.x = np.concatenate([np.asarray(x, np.float64) for x, _ in used])
        self.y = np.concatenate([np.asarray(y, np.int64) for _, y in used])
        T, K = len(self.y), problem.labels
        if self.x.shape != (T, problem.features) or not (self.y.min() >= 0 and self.y.max() < K):
            raise InputError(f"features {list(self.x.shape)} of {T} places, labels up to {self.y.max()}: do not fit")
        lengths = [len(y) for _, y in used]
        self.price = np.repeat([problem.price(length) for length in lengths], lengths)
        ends = np.cumsum(lengths).tolist()
        # one span a chain; without transitions every place is a chain of its own
        self.spans = [(end - n, end) for end, n in zip(ends, lengths, strict=True)]
        if not problem.transitions:
            self.spans = [(t, t + 1) for t in range(T)]
        self.linear = rule.kernel.name == "linear"
        if not self.linear and T > MAX_PLACES:
            raise InputError(f"{T} places to train on: with a kernel {MAX_PLACES} at most, use fewer or a linear one")
        self.gram = np.zeros((0, 0)) if self.linear else rule.kernel(self.x, self.x)
        self.gold = np.zeros((T, K))
        self.gold[np.arange(T), self.y] = 1.0
        self.mu = self.gold.copy()
        self.pair = [self._gold_pairs(a, b) for a, b in self.spans]
        self.counts = sum((pair.sum(axis=0) for pair in self.pair), np.zeros((K, K)))
        self.begins = np.array([a for a, _ in self.spans])
        self.refresh()

    def _gold_pairs(self, a: int, b: int) -> Matrix:
        K = self.problem.labels
        pair = np.zeros((b - a, K, K))
        pair[np.arange(1, b - a), self.y[a : b - 1], self.y[a + 1 : b]] = 1.0
        return pair

    def refresh(self) -> None:
        """Everything that follows from the marginals, made anew (5.12: w = C sum mu Df)."""
        self.beta = self.C * (self.gold - self.mu)
        K, m = self.problem.labels, self.problem.features
        self.node = self.beta.T @ self.x if self.linear else np.zeros((K, m))
        self.scores = np.zeros((0, 0)) if self.linear else self.gram @ self.beta
        self.start, self.edge = np.zeros(K), np.zeros((K, K))
        if self.problem.transitions:
            self.start = self.beta[self.begins].sum(axis=0)
            self.edge = self.C * (self.counts - sum(pair.sum(axis=0) for pair in self.pair))

    def node_scores(self, a: int, b: int) -> Matrix:
        """Scores of a chain's places by themselves."""
        found = self.x[a:b] @ self.node.T if self.linear else self.scores[a:b].copy()
        found[0] += self.start
        return np.asarray(found, np.float64)

    def visit(self, i: int) -> tuple[float, int]:
        """Steps on one example; its gap before them (in its share of the loss), and how many were made."""
        from netclust.models.chains.chain_kernels import smo_steps

        a, b = self.spans[i]
        node = with_price(self.node_scores(a, b), self.y[a:b], self.price[a:b])
        gram = self.x[a:b] @ self.x[a:b].T if self.linear else self.gram[a:b, a:b]
        rule, before = self.rule, self.mu[a:b].copy()
        gap, made = smo_steps(
            node, self.edge, np.ascontiguousarray(gram), float(self.problem.transitions), self.mu[a:b], self.pair[i],
            self.C, rule.inner, _SELECT.index(rule.select), TOLERANCE, TOLERANCE,
        )  # fmt: skip
        if made:
            self._follow(a, b, self.C * (before - self.mu[a:b]))
        return gap, made

    def _follow(self, a: int, b: int, change: Matrix) -> None:
        self.beta[a:b] += change
        if self.problem.transitions:
            self.start += change[0]
        if self.linear:
            self.node += change.T @ self.x[a:b]
        else:
            moved = np.flatnonzero(np.abs(change).sum(axis=0))
            self.scores[:, moved] += self.gram[:, a:b] @ change[:, moved]

    def norm(self) -> float:
        """|w|^2."""
        places = (self.node**2).sum() if self.linear else (self.beta * self.scores).sum()
        return float(places + (self.start**2).sum() + (self.edge**2).sum())

    def objective(self) -> float:
        """The dual (5.12), times C."""
        losses = (self.mu * (1.0 - self.gold)).sum(axis=1) @ self.price
        return self.C * float(losses) - self.norm() / 2

    def primal(self) -> float:
        """The objective of the weights that the marginals give."""
        total = 0.0
        for a, b in self.spans:
            own = self.node_scores(a, b)
            price = with_price(own, self.y[a:b], self.price[a:b])
            h = best_chain(price, self.edge)
            y, at = self.y[a:b], np.arange(b - a)
            total += float((price[at, h] - own[at, y]).sum())
            total += float(self.edge[h[:-1], h[1:]].sum() - self.edge[y[:-1], y[1:]].sum())
        return self.C * total + self.norm() / 2

    def model(self) -> ChainModel:
        """The places that count, and their weights."""
        used = np.flatnonzero((np.abs(self.beta) > 0).any(axis=1))
        return ChainModel(self.rule.kernel, self.x[used], self.beta[used], self.start.copy(), self.edge.copy())

    def linear_weights(self) -> Vector | None:
        """As `ChainProblem` lays them out."""
        if not self.linear:
            return None
        parts = [self.node.ravel()]
        if self.problem.transitions:
            parts += [self.start, self.edge.ravel()]
        return np.concatenate(parts)
