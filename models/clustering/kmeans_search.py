"""k-means as a problem on a matrix of similarities, and three ways to solve it: Iterative, Spectral and Discrete.

A clustering into k is a matrix Y [m, k] with Y'Y = I (`kmeans_indicator`); the best one has the highest tr(Y'MY), which
is sum_c (1/|c|) sum_{i, j in c} M_ij. With M_ij = x_i . x_j that is k-means itself; M may as well be indefinite, as it
is when similarities are learned. `iterative_kmeans` is a local search over clusterings. `spectral_kmeans` drops all but
Y'Y = I and so gets at least the value of any clustering, but no clustering; `discrete_kmeans` makes one of it.

>>> M = np.kron(np.eye(2), np.ones((3, 3))) - 0.5
>>> iterative_kmeans(M, 2).tolist(), discrete_kmeans(M, 2).tolist(), choose_k(M, 5)
([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], 2)
>>> round(kmeans_objective(M, iterative_kmeans(M, 2)), 9), round(kmeans_objective(M, spectral_kmeans(M, 2)), 9)
(3.0, 3.0)
>>> kmeans_indicator(np.array([0, 1, 0, 1, 1])).round(3).tolist()
[[0.707, 0.0], [0.0, 0.577], [0.707, 0.0], [0.0, 0.577], [0.0, 0.577]]

T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009; chapter 4. F. Bach and
M. Jordan, "Learning Spectral Clustering", NIPS 2003, for the rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.structures.pairs import PairFeatures, Vector, pairs_of
from netclust.structures.partition import Labels, canonical_partition, partition_square

__all__ = [
    "MOST_ITEMS",
    "Clustering",
    "choose_k",
    "discrete_kmeans",
    "iterative_kmeans",
    "kmeans_indicator",
    "kmeans_joint_features",
    "kmeans_objective",
    "kmeans_similarity",
    "spectral_kmeans",
]

Matrix = NDArray[np.float64]
Clustering = NDArray[Any]
"""Labels [m], or a relaxed Y [m, k]."""

MOST_ITEMS = 20_000
"""A set's similarities are a dense matrix: of more items than this it is refused before it is made."""

RELATIVE_GAIN = 1e-9
"""A move must gain more than this part of the largest entry: less may be rounding, and could be undone for ever."""


def iterative_kmeans(
    M: ArrayLike, k: int, *, seed: int = 0, restarts: int = 1, start: NDArray[Any] | None = None
) -> Labels:
    """Search locally: random clusters, then points move one at a time while that raises the objective.

    The best of `restarts` searches; the first one begins at `start` where that is given. Clusters are never emptied.
    The same (seed, items, k) start the same way, so that an oracle has no state.
    """
    from netclust.models.clustering.kmeans_kernels import climb_kmeans

    matrix = _checked(M, k)
    m = len(matrix)
    if restarts < 1:
        raise InputError(f"restarts is {restarts}: at least one search is needed")
    least = RELATIVE_GAIN * float(np.abs(matrix).max(initial=0.0))
    best, highest = np.zeros(m, np.int64), -np.inf
    for turn in range(restarts):
        order, z = _random_start(m, k, seed, turn)
        if start is not None and turn == 0:
            z = _given_start(start, m, k)
        climb_kmeans(matrix, z, order, least, np.zeros((k, m)), np.zeros(k), np.zeros(k, np.int64))
        value = kmeans_objective(matrix, z)
        if value > highest:
            best, highest = z, value
    return canonical_partition(best)


def spectral_kmeans(M: ArrayLike, k: int) -> Matrix:
    """Return the relaxed optimum Y [m, k], Y'Y = I: eigenvectors of the k algebraically largest eigenvalues."""
    matrix = _checked(M, k)
    m = len(matrix)
    _, vectors = require_optional("scipy.linalg", "spectral clustering").eigh(matrix, subset_by_index=[m - k, m - 1])
    return np.asarray(vectors, np.float64)


def discrete_kmeans(M: ArrayLike, k: int, *, seed: int = 0, restarts: int = 1) -> Labels:
    """Return the clustering nearest to the relaxed one: `iterative_kmeans` on Y Y'."""
    Y = spectral_kmeans(M, k)
    return iterative_kmeans(Y @ Y.T, k, seed=seed, restarts=restarts)


def choose_k(M: ArrayLike, most: int) -> int:
    """A number of clusters, 2 to `most`, where none is given: the one before the largest relative gap of eigenvalues.

    A constant added to M changes no clustering's rank, so rows and columns are centred first: k clusters then have
    k - 1 eigenvalues l_1 >= l_2 >= ... that stand out. The gap after l_i is (l_i - l_{i+1}) / (l_i - lowest), which
    neither the scale nor the diagonal's level changes. It is 1 where no pair differs from another, and at most half the
    number of items: noise must have eigenvalues of its own to be told from clusters.
    """
    matrix = _checked(M, 1)
    if most < 2:
        raise InputError(f"at most {most} clusters leave nothing to choose: `most` is 2 or more")
    m = len(matrix)
    if m < 3:
        return 1
    centred = matrix - matrix.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    linalg = require_optional("scipy.linalg", "choosing the number of clusters")
    values = linalg.eigvalsh(_without_constant(centred))[::-1]
    above = values[:-1] - values[-1]
    if above[0] <= RELATIVE_GAIN * float(np.abs(matrix).max()):
        return 1
    gap = np.where(above > RELATIVE_GAIN * above[0], (values[:-1] - values[1:]) / np.maximum(above, 1e-300), 0.0)
    return 2 + int(np.argmax(gap[: min(most, max(2, m // 2)) - 1]))


def kmeans_indicator(labels: NDArray[Any]) -> Matrix:
    """Return Y [m, k] of a clustering: |c|^(-1/2) where a point is in c, else 0."""
    z = canonical_partition(labels)
    sizes = np.bincount(z)
    Y = np.zeros((len(z), len(sizes)))
    Y[np.arange(len(z)), z] = 1 / np.sqrt(sizes[z])
    return Y


def kmeans_objective(M: NDArray[Any], h: Clustering) -> float:
    """Return tr(Y'MY), of labels or of a relaxed Y."""
    Y = kmeans_indicator(h) if h.ndim == 1 else h
    return float(np.sum(Y * (M @ Y)))


def kmeans_similarity(pairs: PairFeatures, w: Vector) -> Matrix:
    """Return K [m, m] with K_ij = w . psi_ij, the diagonal from `self_scores`; 0 for pairs that are not stored."""
    check_size(pairs.items)
    K = partition_square(pairs.scores(w), pairs.items, pairs.index)
    np.fill_diagonal(K, pairs.self_scores(w))
    return K


def kmeans_joint_features(pairs: PairFeatures, h: Clustering) -> Vector:
    """Return Psi = sum_ij (YY')_ij psi_ij over all ordered pairs and the diagonal; w . Psi = tr(Y'KY)."""
    left, right = pairs_of(pairs)
    if h.ndim == 1:
        part = 1.0 / np.bincount(canonical_partition(h))[canonical_partition(h)]
        together, own = np.where(h[left] == h[right], part[left], 0.0), part
    else:
        P = h @ h.T
        together, own = P[left, right], np.diag(P)
    return pairs.weighted_sum(2.0 * together) + pairs.self_sum(own)


def check_size(items: int) -> None:
    """Refuse a set whose matrix would not fit, before it is made."""
    if items > MOST_ITEMS:
        need_bytes = 8 * items * items / 1e9
        raise InputError(
            f"a set of {items} items needs {need_bytes:.0f} GB for its similarities, at most {MOST_ITEMS} items are "
            "clustered at once: split it, or use correlation clustering on stored pairs"
        )


def _checked(M: ArrayLike, k: int) -> Matrix:
    matrix = np.ascontiguousarray(M, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise InputError(f"similarities have shape {list(matrix.shape)}, expected a square matrix of one item or more")
    if not np.isfinite(matrix).all():
        raise InputError("similarities must be finite numbers, some are not: look at weights and features")
    apart = float(np.abs(matrix - matrix.T).max())
    if apart > 1e-9 * float(np.abs(matrix).max()):
        raise InputError(
            f"similarities must be symmetric, some differ by {apart:g}: use (M + M.T) / 2 if that is meant"
        )
    if not 1 <= k <= len(matrix):
        raise InputError(f"{k} clusters of {len(matrix)} items: k is 1 to the number of items")
    return matrix


def _random_start(m: int, k: int, seed: int, turn: int) -> tuple[Labels, Labels]:
    """The order of the points and their first clusters, none of them empty."""
    rng = np.random.default_rng([seed, m, k, turn])
    order = rng.permutation(m).astype(np.int64)
    z = rng.integers(0, k, m)
    z[rng.permutation(m)[:k]] = np.arange(k)
    return order, z


def _given_start(start: NDArray[Any], m: int, k: int) -> Labels:
    z = canonical_partition(np.asarray(start))
    if z.shape != (m,) or int(z.max()) + 1 != k:
        raise InputError(f"a start needs {m} labels and {k} clusters, not {len(z)} and {len(np.unique(z))}")
    return z


def _without_constant(centred: Matrix) -> Matrix:
    """A centred matrix on the m - 1 directions that are orthogonal to the constant one (Householder)."""
    m = len(centred)
    v = np.full(m, 1 / np.sqrt(m))
    v[0] += 1
    v /= np.linalg.norm(v)
    half = centred - 2 * np.outer(centred @ v, v)
    return np.asarray((half - 2 * np.outer(v, v @ half))[1:, 1:], np.float64)
