"""A linear SVM that says of a pair whether its items belong together, and the features that it finds strongest.

    min |w|^2/2 + C sum over pairs of max(0, 1 - s w.psi)   (or its square),   s = 1 within a true cluster, else -1

It knows nothing of clusters. It serves to choose features: the slots of the largest weights do nearly as well as all
of them, in a fraction of the time.

>>> x = HashedPairs.of_rows(3, 4, [1, 2], [[0, 1], [0, 2], [0, 2, 3]])  # 0 always, 1 where colours match, 3 is noise
>>> fit = SparsePairClassifier(C=10.0, epochs=100, tolerance=1e-6).fit([(x, np.array([7, 7, 9]))])
>>> strongest_slots(fit.w, 2).tolist()
[1, 2]
>>> (x.scores(fit.w) > 0).tolist()
[True, False, False]

There is no intercept: a slot that all pairs have is one. The solver is dual coordinate descent; it needs no step size,
and a pass over the pairs costs little more than scoring them.

C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan, "A dual coordinate descent method for large-scale
linear SVM", ICML 2008. I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of
Trento, 2018; section 5.4 (feature selection).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.structures.forest import check_forest_labels
from netclust.structures.hashed_pairs import HashedPairs
from netclust.structures.pairs import Indices, Vector, same_cluster

__all__ = ["PairFit", "SparsePairClassifier", "strongest_slots"]

Examples = Sequence[tuple[HashedPairs, NDArray[Any]]]


@dataclass(frozen=True, eq=False)
class PairFit:
    """What was found: weights, the dual value (no solution is below it), and the passes that were made.

    `violation` is the largest gradient of the last pass; `converged` says that it is within the tolerance.
    """

    w: Vector
    dual: float
    violation: float
    epochs: int
    converged: bool


@dataclass(frozen=True)
class SparsePairClassifier:
    """The classifier's settings; training ends after `epochs` passes, or when no gradient is above `tolerance`."""

    C: float = 1.0
    loss: Literal["hinge", "squared_hinge"] = "squared_hinge"
    epochs: int = 5
    tolerance: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse settings that cannot be meant."""
        if not (math.isfinite(self.C) and self.C > 0) or self.epochs < 1 or not self.tolerance >= 0:
            raise InputError("C is a number above 0, epochs at least 1 and tolerance not below 0")
        if self.loss not in ("hinge", "squared_hinge"):
            raise InputError(f"loss is {self.loss!r}: use 'hinge' or 'squared_hinge'")

    def fit(self, examples: Examples) -> PairFit:
        """Train on all pairs of the examples (x, y), the examples and their pairs in a new order every pass."""
        from netclust.models.coreference.pair_classifier_kernels import descend_rows

        blocks = _blocks(examples)
        dimension = examples[0][0].dimension
        w, alphas = np.zeros(dimension), [np.zeros(len(signs)) for _, signs, _ in blocks]
        hinge = self.loss == "hinge"
        cap, diagonal = (self.C, 0.0) if hinge else (math.inf, 0.5 / self.C)
        violation, passes = math.inf, 0
        while passes < self.epochs and violation > self.tolerance:
            order, violation = np.random.default_rng([self.seed, passes]), 0.0
            for i in order.permutation(len(blocks)).tolist():
                x, signs, lengths = blocks[i]
                turn = order.permutation(len(signs))
                worst = descend_rows(x.at, x.slots, signs, lengths, turn, cap, diagonal, alphas[i], w)
                violation = max(violation, worst)
            passes += 1
        dual = sum(float(a.sum()) - diagonal / 2 * float(a @ a) for a in alphas) - float(w @ w) / 2
        return PairFit(w, dual, violation, passes, violation <= self.tolerance)

    def objective(self, examples: Examples, w: Vector) -> float:
        """The value of the program at w; what it is above `PairFit.dual` bounds the distance to the optimum."""
        total = 0.0
        for x, y in examples:
            short = np.maximum(0.0, 1.0 - _signs(x, y) * x.scores(w))
            total += float((short if self.loss == "hinge" else short**2).sum())
        return float(w @ w) / 2 + self.C * total


def strongest_slots(w: Vector, count: int) -> Indices:
    """So many slots of the largest |w|, of equal ones the first, in rising order; slots of weight 0 are never taken.

    >>> strongest_slots(np.array([0.5, -2.0, 0.0, 0.5, 1.0]), 3).tolist()
    [0, 1, 4]
    """
    if count < 0:
        raise InputError(f"{count} slots cannot be kept")
    size = np.abs(w)
    count = min(count, int(np.count_nonzero(size)))
    if not count:
        return np.zeros(0, np.int64)
    least = np.partition(size, len(size) - count)[len(size) - count]
    taken = size > least
    taken[np.flatnonzero(size == least)[: count - int(taken.sum())]] = True
    return np.flatnonzero(taken)


def _blocks(examples: Examples) -> list[tuple[HashedPairs, Vector, Vector]]:
    """The pairs of every example with their signs and squared lengths."""
    from netclust.models.coreference.pair_classifier_kernels import squared_lengths

    if not len(examples) or not any(x.starts[-1] for x, _ in examples):
        raise InputError("there are no pairs to train on")
    dimension = examples[0][0].dimension
    made, counts = [], np.zeros(dimension, np.int32)
    for place, (x, y) in enumerate(examples, start=1):
        if x.dimension != dimension:
            raise InputError(f"example {place} has {x.dimension} slots, the first one {dimension}")
        signs, lengths = _signs(x, y), np.empty(len(x.at) - 1)
        squared_lengths(x.at, x.slots, counts, lengths)
        made.append((x, signs, lengths))
    return made


def _signs(x: HashedPairs, y: NDArray[Any]) -> Vector:
    check_forest_labels(y, x.items)
    return np.where(same_cluster(y, x.index), 1.0, -1.0)
