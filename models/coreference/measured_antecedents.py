"""Antecedent trees with a measure of their clustering: what perceptrons with a learned loss train on hashed pairs.

The truth of an example is a `Truth`, so that spurious and missed items count; the measure is any function of the truth
and the clusters, in percent.

>>> from netclust.learners.rho import LspRho, LspRhoJoint, collect_regression
>>> from netclust.problems.loss_learning import fit_loss
>>> x = HashedPairs.of_rows(4, 3, [1, 2, 3], [[0, 1], [0, 2], [0, 2], [0, 2], [0, 2], [0, 1]])
>>> y = Truth.of_labels([0, 0, 1, 1])  # slot 1 is there where a pair is right, slot 2 where it is wrong
>>> def b3(truth: Truth, clusters: NDArray[np.int64]) -> float:
...     return float(nine_features(truth, clusters)[5])
>>> task = MeasuredAntecedents(AntecedentProblem(3), b3)
>>> seen = collect_regression(task, [(x, y)])
>>> loss = fit_loss(seen.features, seen.targets)
>>> fitted = LspRho(loss).fit(task, [(x, y)], epochs=10)
>>> task.metric(y, task.predict(x, fitted.last))
100.0
>>> joint = LspRhoJoint().fit(task, [(x, y)], epochs=10)
>>> task.metric(y, task.predict(x, joint.fitted.last))
100.0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from netclust.losses.learned_loss import LearnedLoss, Truth, nine_features
from netclust.models.coreference.antecedent_links import Antecedents
from netclust.models.coreference.antecedent_problem import AntecedentProblem
from netclust.models.coreference.global_loss import violating_tree
from netclust.problems.sparse_features import SparseVector
from netclust.structures.hashed_pairs import HashedPairs
from netclust.structures.pairs import Vector

__all__ = ["Measure", "MeasuredAntecedents"]

Measure = Callable[[Truth, NDArray[np.int64]], float]
"""What the clusters of the items are worth against the truth, in percent."""


@dataclass(frozen=True)
class MeasuredAntecedents:
    """`AntecedentProblem` on truths, with the nine features and a measure; `scaled` as in `violating_tree`."""

    problem: AntecedentProblem
    measure: Measure
    scaled: bool = True

    @property
    def dimension(self) -> int:
        """The length of w."""
        return self.problem.dimension

    def joint_features(self, x: HashedPairs, h: Antecedents) -> Vector:
        """Return the sum of the features of the links."""
        return self.problem.joint_features(x, h)

    def difference(self, x: HashedPairs, a: Antecedents, b: Antecedents) -> SparseVector:
        """Return the features of a's links minus those of b's."""
        return self.problem.difference(x, a, b)

    def predict(self, x: HashedPairs, w: Vector) -> Antecedents:
        """Return every item's best candidate above 0."""
        return self.problem.predict(x, w)

    def max_violating(self, x: HashedPairs, y: Truth, w: Vector, C: float) -> tuple[Antecedents, float]:
        """Return the tree of Algorithm 5 and its edge loss."""
        return self.problem.max_violating(x, y.labels, w, C)

    def gold(self, x: HashedPairs, y: Truth, w: Vector) -> Antecedents:
        """Return the best links that induce the truth; spurious items stay alone."""
        return self.problem.gold(x, y.labels, w)

    def loss(self, y: Truth, h: Antecedents) -> float:
        """Return the edge loss of a tree."""
        return self.problem.loss(y.labels, h)

    def features(self, y: Truth, h: Antecedents) -> Vector:
        """Return the nine features of the tree's clustering."""
        return nine_features(y, h.clusters())

    def metric(self, y: Truth, h: Antecedents) -> float:
        """Return the measure of the tree's clustering."""
        return self.measure(y, h.clusters())

    def weight(self, y: Truth) -> float:
        """Return how many items are no spurious ones."""
        return y.detected

    def violating(self, x: HashedPairs, y: Truth, w: Vector, C: float, loss: LearnedLoss) -> tuple[Antecedents, float]:
        """Return the tree of Algorithm 6 and its Delta'."""
        found = violating_tree(x.starts, x.scores(w), y, loss, C=C, scaled=self.scaled)
        return found.tree, found.delta

    def alone(self, x: HashedPairs) -> tuple[MeasuredAntecedents, HashedPairs]:
        """Return the task and the example with the slots that the example has."""
        small = x.with_slots(np.unique(x.slots).astype(np.int64))
        return replace(self, problem=replace(self.problem, dimension=small.dimension)), small
