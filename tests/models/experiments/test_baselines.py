"""Baselines: the same interface, sensible partitions, clear refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from netclust.datasets.simulators.synthetic_sets import sets_with_irrelevant_features
from netclust.errors import InputError
from netclust.models.experiments.clustering.baselines import PlainKMeans
from netclust.structures.partition import canonical_partition


def blobs(seed: int, k: int = 4) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(k), 10)
    directions = np.eye(k, 6) * 5
    return directions[labels] + random.normal(0, 0.4, (10 * k, 6)), labels


def test_plain_k_means_is_that_of_scikit_learn() -> None:
    X, _ = sets_with_irrelevant_features(60, 3, seed=1)
    theirs = KMeans(3, n_init=5, random_state=2).fit_predict(X)
    assert np.array_equal(PlainKMeans(restarts=5, seed=2).cluster(X, 3), canonical_partition(theirs))


def test_equal_items_in_fewer_places_than_k_do_not_warn() -> None:
    assert PlainKMeans().cluster(np.zeros((5, 2)), 2).tolist() == [0, 0, 0, 0, 0]


def test_what_cannot_be_clustered_is_refused() -> None:
    X, _ = blobs(1)
    for bad, complaint in (
        (lambda: PlainKMeans().cluster(X), "must be told k"),
        (lambda: PlainKMeans().cluster(X, 41), "into 41 clusters"),
    ):
        with pytest.raises(InputError, match=complaint):
            bad()
