"""Baselines: the same interface, sensible partitions, clear refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.cluster import AgglomerativeClustering, KMeans

from netclust.datasets.synthetic_sets import irrelevant_features, marbles
from netclust.errors import InputError
from netclust.losses.partition import pairwise_loss
from netclust.models.baselines import BASELINES, Agglomerative, Canopies, NeighbourhoodKMeans, PlainKMeans
from netclust.structures.partition import canonical


def blobs(seed: int, k: int = 4) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(k), 10)
    directions = np.eye(k, 6) * 5
    return directions[labels] + random.normal(0, 0.4, (10 * k, 6)), labels


@pytest.mark.parametrize("name", sorted(BASELINES))
@pytest.mark.parametrize("sparse", [False, True])
def test_easy_sets_are_clustered_by_every_baseline(name: str, sparse: bool) -> None:
    form = csr_matrix if sparse else np.asarray
    baseline = BASELINES[name]().fit([(form(X), y) for X, y in map(blobs, range(3))])
    X, labels = blobs(9)
    found = baseline.cluster(form(X), 4)
    assert baseline.name == name
    assert np.array_equal(found, canonical(labels))
    assert np.array_equal(found, baseline.cluster(form(X), 4))


def test_kmeans_and_agglomerative_are_those_of_scikit_learn() -> None:
    X, _ = irrelevant_features(60, 3, seed=1)
    theirs = KMeans(3, n_init=5, random_state=2).fit_predict(X)
    assert np.array_equal(PlainKMeans(restarts=5, seed=2).cluster(X, 3), canonical(theirs))
    for linkage in ("average", "complete", "single"):
        merge = AgglomerativeClustering(5, linkage=linkage).fit_predict(X)
        assert np.array_equal(Agglomerative(linkage).cluster(X, 5), canonical(merge))
        merge = AgglomerativeClustering(None, linkage=linkage, distance_threshold=2.0).fit_predict(X)
        assert np.array_equal(Agglomerative(linkage, threshold=2.0).cluster(X), canonical(merge))


@pytest.mark.parametrize("method", [Agglomerative(), Agglomerative("complete", "cosine"), Canopies()])
def test_a_threshold_from_training_finds_the_number_of_clusters(method: Agglomerative | Canopies) -> None:
    fitted = method.fit([blobs(seed) for seed in range(3)])
    X, labels = blobs(9, k=6)  # more clusters than in training
    assert np.array_equal(fitted.cluster(X), canonical(labels))


def test_a_learned_metric_ignores_what_k_means_cannot() -> None:
    train = [irrelevant_features(80, 8, seed=seed) for seed in range(4)]
    learned = NeighbourhoodKMeans().fit(train)
    plain = PlainKMeans()
    test = [irrelevant_features(80, 8, seed=seed) for seed in range(10, 14)]
    losses = [np.mean([pairwise_loss(y, method.cluster(X, 2)) for X, y in test]) for method in (learned, plain)]
    assert losses[0] < 5
    assert losses[1] > 30


def test_pooling_overlapping_sets_is_worse_than_averaging_their_metrics() -> None:
    train = [marbles(seed=seed) for seed in range(3)]
    X, labels = marbles((60, 180, 300), seed=9)
    losses = [
        pairwise_loss(labels, NeighbourhoodKMeans(combine=how).fit(train).cluster(X, 3)) for how in ("average", "pool")
    ]
    assert losses[0] < 5 < losses[1]


def test_many_features_are_reduced_before_the_metric_is_learned() -> None:
    random = np.random.default_rng(0)
    wide = random.normal(size=(6, 400))

    def widened(seed: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
        X, y = blobs(seed)
        return X @ wide, y

    learned = NeighbourhoodKMeans(dimensions=4, iterations=10).fit([widened(seed) for seed in range(3)])
    X, labels = widened(9)
    assert np.array_equal(learned.cluster(X, 4), canonical(labels))
    assert np.array_equal(learned.cluster(csr_matrix(X), 4), canonical(labels))


def test_canopies_start_where_no_earlier_one_is_close() -> None:
    X = np.array([[0.0], [1.0], [1.9], [5.0]])
    assert Canopies(1.5, "euclidean").cluster(X).tolist() == [0, 1, 1, 2]  # 1.9 starts one, and 1.0 is nearer to it
    assert Canopies(10.0, "euclidean").cluster(X).tolist() == [0, 0, 0, 0]


def test_equal_items_in_fewer_places_than_k_do_not_warn() -> None:
    assert PlainKMeans().cluster(np.zeros((5, 2)), 2).tolist() == [0, 0, 0, 0, 0]
    assert Agglomerative(threshold=1.0).cluster(np.zeros((1, 2))).tolist() == [0]


def test_marbles_of_new_colours_are_no_matter_of_class() -> None:
    learned = NeighbourhoodKMeans().fit([marbles(seed=1)])
    X, labels = marbles((60, 180, 300), seed=2)
    assert pairwise_loss(labels, learned.cluster(X, 3)) < 10 < pairwise_loss(labels, PlainKMeans().cluster(X, 3))


def test_what_cannot_be_clustered_is_refused() -> None:
    X, labels = blobs(1)
    for bad, complaint in (
        (lambda: PlainKMeans().cluster(X), "must be told k"),
        (lambda: PlainKMeans().cluster(X, 41), "into 41 clusters"),
        (lambda: Agglomerative().cluster(X), "needs k, a threshold"),
        (lambda: Agglomerative().cluster(X, 0), "into 0 clusters"),
        (lambda: Canopies().cluster(X), "canopies need a distance"),
        (lambda: NeighbourhoodKMeans().cluster(X, 4), "fit it first"),
        (lambda: NeighbourhoodKMeans().fit([]), "no training sets"),
        (lambda: NeighbourhoodKMeans().fit([(X, labels * 0)]), "no training set of two clusters"),
        (lambda: Agglomerative().fit([(X[:1], labels[:1])]), "no training set of two items"),
    ):
        with pytest.raises(InputError, match=complaint):
            bad()
