"""Structured problems whose outputs can be enumerated, so that every claim about a learner can be checked in full."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from netclust.learners.qp import solve_qp
from netclust.losses.partition_loss import pairwise_loss


@dataclass(frozen=True)
class Example:
    """All outputs of one input: features [K, D] and losses [K], the gold one first; some are for relaxations only."""

    features: np.ndarray
    losses: np.ndarray
    real: np.ndarray  # False: an output that only an over-generating oracle knows


@dataclass(frozen=True)
class Enumerated:
    """x is an `Example`, y is 0, h the place of an output. `search` names what the oracle looks at.

    `exact` all real outputs; `over` also the relaxed ones; `under` every second one. `rho` below 1 makes the oracle
    the worst one that is a rho-approximation.
    """

    dimension: int
    search: str = "exact"
    rho: float = 1.0
    calls: list = field(default_factory=list)

    def joint_features(self, x, h):
        return x.features[h]

    def candidates(self, x):
        if self.search == "over":
            return np.arange(len(x.losses))
        real = np.flatnonzero(x.real)
        return real if self.search == "exact" else real[::2]

    def predict(self, x, w):
        among = self.candidates(x)
        return int(among[(x.features[among] @ w).argmax()])

    def max_violating(self, x, y, w, C):
        self.calls.append(1)
        among = self.candidates(x)
        value = x.features[among] @ w + C * x.losses[among]
        best = value.max()
        if self.rho < 1 and best > 0:
            value = np.where(value >= self.rho * best, -value, -np.inf)
        h = int(among[value.argmax()])
        return h, float(x.losses[h])

    def max_violating_slack(self, x, y, w):
        self.calls.append(1)
        among = self.candidates(x)
        value = x.losses[among] * (1 + (x.features[among] - x.features[0]) @ w)
        h = int(among[value.argmax()])
        return h, float(x.losses[h])

    def gold(self, x, y, w):
        return 0

    def loss(self, y, h):
        raise AssertionError("the loss comes with the max-violating output")

    def searching(self, search):
        return replace(self, search=search, calls=[])


def random_examples(seed=0, n=6, K=8, D=3, relaxed=0, signal=1.0):
    """Outputs whose loss grows with the distance from the gold one in one direction of features, and noise."""
    rng = np.random.default_rng(seed)
    examples = []
    for _ in range(n):
        losses = np.concatenate([[0.0], rng.uniform(5, 100, K - 1 + relaxed)])
        features = rng.normal(size=(K + relaxed, D))
        features[:, 0] -= signal * losses / 50
        examples.append((Example(features, losses, np.arange(K + relaxed) < K), 0))
    return examples


def required(x, w, rescaling="margin", real_only=True):
    """H of every output: the slack that it needs at w."""
    margin = (x.features[0] - x.features) @ w
    value = x.losses - margin if rescaling == "margin" else x.losses * (1 - margin)
    return value[x.real] if real_only else value


def full_optimum(examples, C, rescaling="margin", real_only=True):
    """The optimum of the n-slack program with every constraint in it."""
    vectors, losses, group = [], [], []
    for i, (x, _) in enumerate(examples):
        scale = np.ones(len(x.losses)) if rescaling == "margin" else x.losses
        use = np.flatnonzero(x.real) if real_only else np.arange(len(x.losses))
        vectors.append((scale[:, None] * (x.features[0] - x.features))[use])
        losses.append(x.losses[use])
        group.append(np.full(len(use), i))
    vectors, n = np.concatenate(vectors), len(examples)
    solution = solve_qp(vectors @ vectors.T, np.concatenate(losses), np.concatenate(group), np.full(n, C / n))
    assert solution.gap <= 1e-7 * max(1.0, solution.value)
    return solution.value, solution.alpha @ vectors


def largest(examples):
    """(R, D): the longest difference of features and the largest loss."""
    R = max(np.linalg.norm(x.features[0] - x.features, axis=1).max() for x, _ in examples)
    return R, max(x.losses.max() for x, _ in examples)


THREE_ITEMS = [np.array(z) for z in ([0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2])]


@dataclass(frozen=True)
class ThreeItems:
    """Correlation clustering of three items by enumeration: x is phi [3 pairs, D], y and h are labels."""

    dimension: int
    asked: list = field(default_factory=list)

    def joint_features(self, x, h):
        together = np.array([h[0] == h[1], h[0] == h[2], h[1] == h[2]])
        return together @ x / 9

    def predict(self, x, w):
        return max(THREE_ITEMS, key=lambda z: self.joint_features(x, z) @ w)

    def max_violating(self, x, y, w, C):
        h = max(THREE_ITEMS, key=lambda z: self.joint_features(x, z) @ w + C * pairwise_loss(y, z))
        self.asked.append(h.tolist())
        return h, pairwise_loss(y, h)

    def gold(self, x, y, w):
        return y

    def loss(self, y, h):
        return pairwise_loss(y, h)


def latent_trees(seed=0, examples=4, n=8):
    """Arc features [|a - b|, |c - d|, noise, root] of points in wide clusters: which link explains one is latent."""
    rng = np.random.default_rng(seed)
    data = []
    for _ in range(examples):
        y = rng.integers(0, 3, n)
        place = y * 2.0 + rng.uniform(-0.8, 0.8, n)
        other = rng.normal(size=n)
        phi = np.zeros((n, n + 1, 4))
        phi[:, 0, 3] = 1.0
        for j in range(n):
            for i in range(j):
                phi[j, i + 1, :3] = abs(place[i] - place[j]), abs(other[i] - other[j]), rng.normal()
        data.append((phi, y))
    return data
