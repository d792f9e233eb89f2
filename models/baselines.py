"""Clusterers that learn nothing about pairs, or little: what a supervised clusterer is set beside.

Each has a name, `fit` on training sets (items' features and labels) and `cluster` for a new set.

>>> from netclust.datasets.synthetic_sets import irrelevant_features
>>> train, (X, labels) = [irrelevant_features(60, 1, seed=s) for s in range(3)], irrelevant_features(60, 1, seed=9)
>>> found = NeighbourhoodKMeans().fit(train).cluster(X, 2)
>>> bool(len(set(zip(found.tolist(), labels.tolist()))) == 2)  # it finds which dimension matters
True
>>> sorted(BASELINES)
['agglomerative', 'canopies', 'kmeans', 'nca']

References: J. Goldberger, S. Roweis, G. Hinton and R. Salakhutdinov, "Neighbourhood components analysis", NIPS 2004;
A. McCallum, K. Nigam and L. Ungar, "Efficient clustering of high-dimensional data sets", KDD 2000. k-means,
agglomerative clustering and NCA are scikit-learn's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.losses.partition import pairwise_loss
from netclust.optional import require_optional
from netclust.structures.partition import Labels, canonical

__all__ = ["BASELINES", "Agglomerative", "Baseline", "Canopies", "NeighbourhoodKMeans", "PlainKMeans"]

TrainingSet = tuple[Any, NDArray[Any]]
"""Items' features [items, features], an array or a CSR matrix, and the items' labels."""
Linkage = Literal["average", "complete", "single"]
Metric = Literal["euclidean", "cosine"]

_THRESHOLDS = 40  # that are tried: so many quantiles of the distances in training sets
_DENSE_FEATURES = 200  # a set with more features is reduced to so many before NCA


class Baseline(Protocol):
    """A clusterer to compare with."""

    @property
    def name(self) -> str:
        """What a table calls it."""

    def fit(self, train: Sequence[TrainingSet]) -> Self:
        """The same clusterer, after training."""

    def cluster(self, X: Any, k: int | None = None) -> Labels:
        """The partition of a set, into k clusters where that is given and the method can."""


@dataclass(frozen=True)
class PlainKMeans:
    """k-means on the items' own features, best of some restarts; it learns nothing and must be told k."""

    restarts: int = 10
    seed: int = 0
    name: str = "kmeans"

    def fit(self, train: Sequence[TrainingSet]) -> Self:
        """Nothing to learn."""
        return self

    def cluster(self, X: Any, k: int | None = None) -> Labels:
        """The best of all restarts."""
        _check(X, k, "k-means")
        means = require_optional("sklearn.cluster", "k-means").KMeans(k, n_init=self.restarts, random_state=self.seed)
        with _quiet():  # fewer distinct items than k
            return canonical(means.fit_predict(X))


@dataclass(frozen=True)
class Agglomerative:
    """Merge the closest clusters until there are k, or until they are further apart than the threshold.

    Without a threshold, `fit` takes the one that does best on the training sets by the pairwise loss.
    """

    linkage: Linkage = "average"
    metric: Metric = "euclidean"
    threshold: float | None = None
    name: str = "agglomerative"

    def fit(self, train: Sequence[TrainingSet]) -> Self:
        """Choose the threshold."""
        found = [(_distances(X, self.metric), labels) for X, labels in train]
        return replace(self, threshold=_best_threshold(found, lambda d, at: self._merge(d, None, at)))

    def cluster(self, X: Any, k: int | None = None) -> Labels:
        """Into k clusters, or by the threshold if k is not given."""
        if k is None and self.threshold is None:
            raise InputError("agglomerative clustering needs k, a threshold, or training sets to choose one by")
        _check(X, k, "agglomerative clustering", needs_k=False)
        return self._merge(_distances(X, self.metric), k, self.threshold)

    def _merge(self, distances: NDArray[np.float64], k: int | None, threshold: float | None) -> Labels:
        if len(distances) < 2:
            return np.zeros(len(distances), np.int64)
        merge = require_optional("sklearn.cluster", "agglomerative clustering").AgglomerativeClustering(
            n_clusters=k,
            distance_threshold=threshold if k is None else None,
            metric="precomputed",
            linkage=self.linkage,
        )
        return canonical(merge.fit_predict(distances))


@dataclass(frozen=True)
class NeighbourhoodKMeans:
    """Learn a metric in which items' neighbours are of their own cluster, then k-means in it.

    `average` learns one metric a training set and takes their mean. `pool` learns one from the items of all sets, with
    (set, cluster) as the class: it holds apart what is alike but in two sets, so it is for sets that do not overlap.
    Many features are first reduced.
    """

    dimensions: int | None = None
    """Of the learned space; None: as many as the features."""
    combine: Literal["average", "pool"] = "average"
    iterations: int = 50
    restarts: int = 10
    seed: int = 0
    name: str = "nca"
    reduction: Any = field(default=None, repr=False)
    transform: NDArray[np.float64] | None = field(default=None, repr=False)

    def fit(self, train: Sequence[TrainingSet]) -> Self:
        """Learn the metric."""
        if not train:
            raise InputError("no training sets to learn a metric from")
        reduction = _reduction([X for X, _ in train], self.seed)
        sets = [(_reduced(X, reduction), canonical(np.asarray(labels))) for X, labels in train]
        if self.combine == "pool":
            first = np.cumsum([0, *(int(labels.max(initial=-1)) + 1 for _, labels in sets)])
            classes = [labels + start for (_, labels), start in zip(sets, first[:-1], strict=True)]
            sets = [(np.concatenate([X for X, _ in sets]), np.concatenate(classes))]
        learned = [self._components(X, labels) for X, labels in sets if len(set(labels.tolist())) > 1]
        if not learned:
            raise InputError("no training set of two clusters to learn a metric from")
        mean = np.mean([A.T @ A for A in learned], axis=0)
        value, vector = np.linalg.eigh(mean)
        chosen = np.argsort(-value, kind="stable")[: self.dimensions]
        return replace(self, reduction=reduction, transform=vector[:, chosen] * np.sqrt(np.maximum(value[chosen], 0)))

    def cluster(self, X: Any, k: int | None = None) -> Labels:
        """k-means of the transformed items."""
        if self.transform is None:
            raise InputError("NCA learns its metric from training sets: fit it first")
        _check(X, k, "NCA with k-means")
        return PlainKMeans(self.restarts, self.seed).cluster(_reduced(X, self.reduction) @ self.transform, k)

    def _components(self, X: NDArray[np.float64], labels: Labels) -> NDArray[np.float64]:
        analysis = require_optional("sklearn.neighbors", "learning a metric").NeighborhoodComponentsAnalysis(
            n_components=self.dimensions and min(self.dimensions, X.shape[1]),
            max_iter=self.iterations,
            random_state=self.seed,
        )
        with _quiet():  # it stops at max_iter
            return np.asarray(analysis.fit(X, labels).components_, np.float64)


@dataclass(frozen=True)
class Canopies:
    """Cheap clusters: an item that is in none yet starts one, and what is close to it cannot start another.

    Items go to the centre that is closest. `k` is not asked for: `tight`, the distance within which an item starts no
    canopy of its own, is chosen in training if it is not given.
    """

    tight: float | None = None
    metric: Metric = "cosine"
    name: str = "canopies"

    def fit(self, train: Sequence[TrainingSet]) -> Self:
        """Choose the distance."""
        found = [(_distances(X, self.metric), labels) for X, labels in train]
        return replace(self, tight=_best_threshold(found, _canopies))

    def cluster(self, X: Any, k: int | None = None) -> Labels:
        """By the closest centre."""
        if self.tight is None:
            raise InputError("canopies need a distance, or training sets to choose one by")
        _check(X, None, "canopies", needs_k=False)
        return _canopies(_distances(X, self.metric), self.tight)


BASELINES: dict[str, Callable[[], Baseline]] = {
    "kmeans": PlainKMeans,
    "agglomerative": Agglomerative,
    "nca": NeighbourhoodKMeans,
    "canopies": Canopies,
}


def _canopies(distances: NDArray[np.float64], tight: float) -> Labels:
    centres: list[int] = []
    free = np.ones(len(distances), bool)
    for i in range(len(distances)):
        if free[i]:
            centres.append(i)
            free &= distances[i] > tight
            free[i] = False
    return canonical(np.argmin(distances[:, centres], axis=1)) if centres else np.zeros(0, np.int64)


def _best_threshold(
    train: Sequence[tuple[NDArray[np.float64], NDArray[Any]]], cut: Callable[[NDArray[np.float64], float], Labels]
) -> float:
    """Of some quantiles of all distances, the one of the lowest mean pairwise loss; the first of equals."""
    known = [d[np.triu_indices(len(d), 1)] for d, _ in train]
    distances = np.concatenate([*known, np.zeros(0)])
    if not len(distances):
        raise InputError("no training set of two items to choose a threshold by")
    tried = np.unique(np.quantile(distances, np.linspace(0, 1, _THRESHOLDS)))
    losses = [np.mean([pairwise_loss(labels, cut(d, at)) for d, labels in train]) for at in tried]
    return float(tried[int(np.argmin(losses))])


def _distances(X: Any, metric: Metric) -> NDArray[np.float64]:
    measure = require_optional("sklearn.metrics", "comparing items").pairwise_distances
    return np.asarray(measure(X, metric=metric), np.float64)


def _reduction(parts: Sequence[Any], seed: int) -> Any:
    """What makes few features of many; None: there are few."""
    if parts[0].shape[1] <= _DENSE_FEATURES:
        return None
    X = _pooled(parts)
    decomposition = require_optional("sklearn.decomposition", "reducing features")
    return decomposition.TruncatedSVD(min(_DENSE_FEATURES, X.shape[0]), random_state=seed).fit(X)


def _reduced(X: Any, reduction: Any) -> NDArray[np.float64]:
    if reduction is not None:
        X = reduction.transform(X)
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), np.float64)


def _pooled(parts: Sequence[Any]) -> Any:
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return require_optional("scipy.sparse", "sparse items").vstack(parts).tocsr()


def _check(X: Any, k: int | None, what: str, *, needs_k: bool = True) -> None:
    if k is None and needs_k:
        raise InputError(f"{what} must be told k")
    if k is not None and not 1 <= k <= X.shape[0]:
        raise InputError(f"{what} of {X.shape[0]} items into {k} clusters: needs 1 <= k <= items")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warning that something has not converged."""
    category = require_optional("sklearn.exceptions", "clustering").ConvergenceWarning
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield
