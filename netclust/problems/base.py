"""Problem: what a structured task must be able to do so that every learner can train it.

The four verbs of structural SVMs are joint features, predict, max-violating and loss; latent structures add a
fifth, the best structure that agrees with the gold clustering. `TreeProblem` does them for trees with one
feature vector per arc:

>>> phi = np.zeros((2, 3, 2))  # arc (i, j) at phi[j-1, i]: [similarity, root]
>>> phi[:, 0] = [0, 1]
>>> phi[1, 1] = [0.9, 0]
>>> problem, w, y = TreeProblem(2), np.array([1.0, 0.5]), np.array([1, 1])
>>> problem.predict(phi, w).tolist(), problem.gold(phi, y, w).tolist()
([0, 1], [0, 1])
>>> h, loss = problem.max_violating(phi, y, w, C=1.0)
>>> h.tolist(), loss, problem.joint_features(phi, h).tolist()
([0, 0], 2.0, [0.0, 2.0])

Reference: I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of
Trento, 2018; equations (2.1) to (2.9).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from netclust.losses.edge_loss import EdgeLoss, delta_f
from netclust.problems.sparse_features import Change
from netclust.structures.tree import Labels, Matrix, Parents, best_tree, gold_tree

Vector = NDArray[np.float64]
ArcFeatures = NDArray[np.float64]

X_contra = TypeVar("X_contra", contravariant=True)
Y_contra = TypeVar("Y_contra", contravariant=True)
X = TypeVar("X")
Y = TypeVar("Y")
H = TypeVar("H")


class Problem(Protocol[X_contra, Y_contra, H]):
    """A structured task: examples x, gold outputs y, latent structures h that each induce an output."""

    @property
    def dimension(self) -> int:
        """The length of w and of the joint features."""

    def joint_features(self, x: X_contra, h: H) -> Vector:
        """Return Phi(x, h), in which the score `w.Phi` is linear (2.9)."""

    def predict(self, x: X_contra, w: Vector) -> H:
        """Return the structure of the highest score (2.1)."""

    def max_violating(self, x: X_contra, y: Y_contra, w: Vector, C: float) -> tuple[H, float]:
        """Return h^, the structure of the highest `w.Phi(x, h) + C*Delta(y, h)`, and its Delta."""

    def gold(self, x: X_contra, y: Y_contra, w: Vector) -> H:
        """Return h*, the structure of the highest score among those that induce y."""

    def loss(self, y: Y_contra, h: H) -> float:
        """Return Delta(y, h): exactly 0 where h induces y, above 0 elsewhere."""


class SlackProblem(Problem[X_contra, Y_contra, H], Protocol[X_contra, Y_contra, H]):
    """A task that can also be trained with slack rescaling: the loss multiplies the margin instead of adding to it."""

    def max_violating_slack(self, x: X_contra, y: Y_contra, w: Vector) -> tuple[H, float]:
        """Return h^, the structure of the highest `Delta(y, h) * (1 + w.Phi(x, h) - w.Phi(x, h*))`, and its Delta."""


@runtime_checkable
class SparseProblem(Protocol):
    """A task that can say by how much the features of two structures differ without making both in full."""

    def difference(self, x: Any, a: Any, b: Any) -> Change:
        """Return Phi(x, a) - Phi(x, b): a `SparseVector`, or a vector where x has dense features."""


@runtime_checkable
class SignedProblem(Protocol):
    """A task some of whose weights must not be below 0: cutting-plane learners keep them so."""

    @property
    def nonnegative(self) -> NDArray[np.int64]:
        """The places of these weights."""


def signed_weights(problem: Any) -> NDArray[np.int64]:
    """The places of the weights that must not be below 0; of most tasks none."""
    return problem.nonnegative if isinstance(problem, SignedProblem) else np.zeros(0, np.int64)


def problem_difference(problem: Problem[X, Y, H], x: X, a: H, b: H) -> Change:
    """Return Phi(x, a) - Phi(x, b), in the cheapest way that the problem knows."""
    if isinstance(problem, SparseProblem):
        return problem.difference(x, a, b)
    return problem.joint_features(x, a) - problem.joint_features(x, b)


@dataclass(frozen=True)
class TreeProblem:
    """Supervised clustering by E trees: x holds arc features [n, n+1, D], y gold labels, h parents."""

    dimension: int
    edge_loss: EdgeLoss = delta_f

    def joint_features(self, x: ArcFeatures, h: Parents) -> Vector:
        """Return the sum of the features of the tree's arcs."""
        return np.asarray(x[np.arange(len(h)), h].sum(axis=0), np.float64)

    def predict(self, x: ArcFeatures, w: Vector) -> Parents:
        """Return the tree of best earlier links."""
        return best_tree(self._scores(x, w))

    def max_violating(self, x: ArcFeatures, y: Labels, w: Vector, C: float) -> tuple[Parents, float]:
        """Return the tree of Algorithm 5 and its loss."""
        loss = self.edge_loss(y)
        h = best_tree(self._scores(x, w) + C * loss.arcs)
        return h, loss.total(h)

    def gold(self, x: ArcFeatures, y: Labels, w: Vector) -> Parents:
        """Return the best tree that induces y."""
        return gold_tree(self._scores(x, w), y)

    def loss(self, y: Labels, h: Parents) -> float:
        """Return the edge loss of a tree."""
        return self.edge_loss(y).total(h)

    def _scores(self, x: ArcFeatures, w: Vector) -> Matrix:
        n = len(x)
        if x.shape != (n, n + 1, self.dimension):
            raise ValueError(f"arc features have shape {x.shape}, expected {(n, n + 1, self.dimension)}")
        return np.asarray(x @ w, np.float64)
