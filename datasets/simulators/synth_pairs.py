"""Sets of points whose pairs tell, noisily, which two clusters they lie in: the data Synth of supervised k-means.

Every unordered pair of clusters has its own features, and a pair of points switches on a few of those of the two
clusters that they are in. With probability `noise` a point's cluster is replaced by a random one first. No single
feature is about a point, and all weights equal say nothing at all.

>>> sets = synth_pairs(sets=2, k=3, points=12, features=10, active=2)
>>> sets[0].labels.tolist(), sets[0].pairs.psi.shape
([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], (66, 60))
>>> set(sets[0].pairs.scores(np.ones(60)).tolist())
{2.0}

T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009; section 4.5.1. With the
noise of 0.2 that it names the data are nearly free of noise for a learner; 0.46 comes near the printed losses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.structures.pairs import StoredPairs, all_pairs

__all__ = ["SynthSet", "region_count", "region_of", "synth_pairs"]

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SynthSet:
    """Pair features (sparse) and the true clusters."""

    pairs: StoredPairs
    labels: Indices


def synth_pairs(
    *,
    sets: int = 5,
    k: int = 5,
    points: int = 100,
    features: int = 50,
    active: int = 5,
    noise: float = 0.2,
    seed: int = 0,
) -> list[SynthSet]:
    """Sets of `points` points in k even clusters, with `features` for every pair of clusters, `active` of them on."""
    if not (sets >= 1 and 1 <= k <= points):
        raise InputError(f"{sets} sets of {points} points in {k} clusters: one set and one point a cluster at least")
    if not 1 <= active <= features:
        raise InputError(f"{active} of {features} features on: at least one, and no more than there are")
    if not 0 <= noise <= 1:
        raise InputError(f"noise is {noise}: it is a probability, 0 to 1")
    rng = np.random.default_rng(seed)
    labels = np.arange(points) * k // points
    return [SynthSet(_pairs(rng, labels, k, features, active, noise), labels) for _ in range(sets)]


def region_count(k: int) -> int:
    """Unordered pairs of clusters, a cluster with itself included.

    >>> region_count(5)
    15
    """
    return k * (k + 1) // 2


def region_of(a: Indices, b: Indices, k: int) -> Indices:
    """The number of the unordered pair of clusters (a, b): (0, 0), (0, 1), ..., (1, 1), ...

    >>> region_of(np.array([0, 1, 1, 2]), np.array([2, 0, 1, 2]), 3).tolist()
    [2, 1, 3, 5]
    """
    low, high = np.minimum(a, b), np.maximum(a, b)
    return np.asarray(low * k - low * (low - 1) // 2 + high - low, np.int64)


def _pairs(rng: np.random.Generator, labels: Indices, k: int, features: int, active: int, noise: float) -> StoredPairs:
    left, right = all_pairs(len(labels))
    ends = []
    for end in (left, right):
        replaced = rng.random(len(end)) < noise
        ends.append(np.where(replaced, rng.integers(0, k, len(end)), labels[end]))
    on = np.argpartition(rng.random((len(left), features)), active - 1, axis=1)[:, :active]
    columns = np.sort(on, axis=1) + features * region_of(ends[0], ends[1], k)[:, None]
    starts = np.arange(len(left) + 1) * active
    psi = require_optional("scipy.sparse", "making sparse pair features").csr_matrix(
        (np.ones(columns.size), columns.ravel(), starts), shape=(len(left), features * region_count(k))
    )
    return StoredPairs(len(labels), psi)
