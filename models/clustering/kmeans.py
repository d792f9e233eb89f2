"""Supervised k-means and spectral clustering: from clustered sets, learn the similarity by which k-means finds them.

A `KmeansSet` is a set with features of its pairs and a number of clusters; `KmeansProblem` is the task for any learner.
Node features come as `ComputedPairs(X, "product", constant=False)`, explicit pair features as `StoredPairs`, both as
`StackedPairs`.

>>> import numpy as np
>>> from netclust.learners.perceptron import Lsp
>>> from netclust.structures.pairs import ComputedPairs
>>> X = np.array([[1.0, 0.9], [1.1, -1.0], [-1.0, 1.0], [-0.9, -1.1]])  # the first feature tells, the second misleads
>>> x, y = KmeansSet(ComputedPairs(X, "product", constant=False), k=2), np.array([0, 0, 1, 1])
>>> problem = KmeansProblem(dimension=2)
>>> w = Lsp().fit(problem, [(x, y)], epochs=5).last
>>> problem.predict(x, w).tolist()
[0, 0, 1, 1]

T. Finley and T. Joachims, "Supervised k-Means Clustering", technical report, Cornell University, 2008; T. Finley,
"Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009; chapter 4. The joint
features are the full sum over ordered pairs, and the loss in the searched matrix is in percent: the print has neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.clustering.kmeans_search import (
    Clustering,
    Matrix,
    discrete_kmeans,
    iterative_kmeans,
    kmeans_indicator,
    kmeans_joint_features,
    kmeans_objective,
    kmeans_similarity,
    spectral_kmeans,
)
from netclust.models.clustering.trace_loss import trace_loss
from netclust.structures.pairs import PairFeatures, Vector
from netclust.structures.partition import Labels, canonical_partition

__all__ = ["KmeansProblem", "KmeansSet", "Method", "cluster_matrix"]

Method = Literal["iterative", "spectral", "discrete"]
METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True, eq=False)
class KmeansSet:
    """A set of items with features of its pairs, to be divided into k clusters."""

    pairs: PairFeatures
    k: int

    def __post_init__(self) -> None:
        """Refuse what cannot be clustered."""
        if not 1 <= self.k <= self.pairs.items:
            raise InputError(f"{self.k} clusters of {self.pairs.items} items: k is 1 to the number of items")


def cluster_matrix(M: Matrix, k: int, method: Method, *, seed: int = 0, restarts: int = 1) -> Clustering:
    """The clustering (labels, or a relaxed Y for `spectral`) that one of the methods finds."""
    if method == "spectral":
        return spectral_kmeans(M, k)
    search = iterative_kmeans if method == "iterative" else discrete_kmeans
    return search(M, k, seed=seed, restarts=restarts)


@dataclass(frozen=True)
class KmeansProblem:
    """The verbs of a structural SVM: `method` searches in training, `predictor` (None: the same) clusters new sets.

    An output is an array of labels, or with `spectral` a relaxed Y [items, k].
    """

    dimension: int
    method: Method = "iterative"
    predictor: Method | None = None
    seed: int = 0
    restarts: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        for name in (self.method, self.predictor):
            if name is not None and name not in METHODS:
                raise InputError(f"method {name!r} is not known: one of {', '.join(METHODS)}")

    def joint_features(self, x: KmeansSet, h: Clustering) -> Vector:
        """Psi = sum_ij (YY')_ij psi_ij, in which tr(Y'KY) is linear."""
        return kmeans_joint_features(x.pairs, h)

    def predict(self, x: KmeansSet, w: Vector) -> Clustering:
        """Return the clustering of the highest tr(Y'KY) that is found."""
        return self._search(self._similarity(x, w), x.k, self.predictor or self.method)

    def max_violating(self, x: KmeansSet, y: NDArray[Any], w: Vector, C: float) -> tuple[Clustering, float]:
        """Return the best clustering of M = K - C (100/k) Y*Y*', and its loss.

        A search that ends below the true clustering has found no violation: then that one is returned.
        """
        truth = kmeans_indicator(y)
        if truth.shape != (x.pairs.items, x.k):
            raise InputError(
                f"the true clustering has {truth.shape[0]} items in {truth.shape[1]} clusters, "
                f"the set {x.pairs.items} items and k = {x.k}"
            )
        M = self._similarity(x, w) - (C * 100.0 / x.k) * (truth @ truth.T)
        h = self._search(M, x.k, self.method)
        if self.method != "spectral" and kmeans_objective(M, h) < kmeans_objective(M, truth):
            return canonical_partition(y), 0.0
        return h, trace_loss(y, h)

    def gold(self, x: KmeansSet, y: NDArray[Any], w: Vector) -> Labels:
        """Return y: nothing is latent."""
        return canonical_partition(y)

    def loss(self, y: NDArray[Any], h: Clustering) -> float:
        """Return the trace loss, 0 to 100."""
        return trace_loss(y, h)

    def _similarity(self, x: KmeansSet, w: Vector) -> Matrix:
        if x.pairs.dimension != self.dimension or w.shape != (self.dimension,):
            raise InputError(f"{x.pairs.dimension} features a pair and {len(w)} weights, expected {self.dimension}")
        return kmeans_similarity(x.pairs, w)

    def _search(self, M: Matrix, k: int, method: Method) -> Clustering:
        return cluster_matrix(M, k, method, seed=self.seed, restarts=self.restarts)
