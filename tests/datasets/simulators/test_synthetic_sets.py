"""Synthetic sets show what they are made to show."""

from __future__ import annotations

import numpy as np
import pytest

from netclust.datasets.simulators.synthetic_sets import (
    coreference_like,
    marbles,
    news_like,
    sets_with_irrelevant_features,
    stars,
)
from netclust.errors import InputError
from netclust.losses.partition_loss import mitre_loss, pairwise_loss
from netclust.models.clustering.pairwise import PairClassifier
from netclust.structures.pairs import ComputedPairs, StoredPairs, same_cluster
from netclust.structures.partition import PairScores


def greedy(pairs: StoredPairs, w: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """Merge the two clusters of the highest sum of scores while it is above 0."""
    between = PairScores(pairs.items, pairs.scores(w)).matrix()
    labels = np.arange(pairs.items)
    np.fill_diagonal(between, -np.inf)
    while True:
        a, b = np.unravel_index(np.argmax(between), between.shape)
        if between[a, b] <= 0:
            return labels
        labels[labels == b] = a
        between[a] += between[b]
        between[:, a] = between[a]
        between[a, a] = -np.inf
        between[b] = between[:, b] = -np.inf


@pytest.mark.parametrize("make", [coreference_like, stars, news_like])
def test_pair_sets_are_the_same_for_a_seed_and_differ_between_seeds(make) -> None:  # type: ignore[no-untyped-def]
    (a, y), (b, z), (c, _) = make(seed=1), make(seed=1), make(seed=2)
    assert np.array_equal(a.psi, b.psi)
    assert np.array_equal(y, z)
    assert a.psi.shape != c.psi.shape or not np.array_equal(a.psi, c.psi)
    assert a.items == len(y)
    assert (a.psi[:, -1] == 1).all()


def test_documents_of_chains_are_as_long_as_the_catalogue_says() -> None:
    sets = [coreference_like(seed=seed) for seed in range(20)]
    assert 140 < np.mean([pairs.items for pairs, _ in sets]) < 165
    assert all(len(set(labels.tolist())) == 100 for _, labels in sets)
    share = np.mean([same_cluster(labels, None).mean() for _, labels in sets])
    assert 0.005 < share < 0.02


def test_a_pair_classifier_breaks_chains_that_other_weights_keep() -> None:
    train = [coreference_like(50, seed=seed) for seed in range(6)]
    test = [coreference_like(50, seed=seed) for seed in range(10, 16)]
    w = PairClassifier(C=1.0).fit(train)
    chaining = np.array([1.0] * 5 + [0.0] * 5 + [-2.0])  # what shares no cue is less against it than cues are for it
    pcc, better = (
        np.mean([(pairwise_loss(y, z), mitre_loss(y, z)) for p, y in test for z in [greedy(p, v)]], axis=0)
        for v in (w, chaining)
    )
    assert better[0] < 0.95 * pcc[0]
    assert better[1] < 0.75 * pcc[1]


def test_stars_are_whole_for_weights_that_use_transitivity() -> None:
    train = [stars(seed=seed) for seed in range(6)]
    test = [stars(seed=seed) for seed in range(10, 16)]
    pcc = PairClassifier(C=1.0).fit(train)
    transitive = np.array([1.0, 0.0, -0.08])  # a spoke outweighs the rim pairs that come with it
    loss = [np.mean([pairwise_loss(y, greedy(p, v)) for p, y in test]) for v in (pcc, transitive)]
    assert loss[1] < 0.8 * loss[0]


def test_news_are_told_apart_by_words_and_sites_by_trigrams() -> None:
    train = [news_like(seed=seed) for seed in range(3)]
    pairs, labels = news_like(seed=9)
    assert (pairs.items, pairs.dimension) == (150, 4)
    assert pairwise_loss(labels, np.arange(150)) == pytest.approx(9.396, abs=0.001)  # all singletons
    w = PairClassifier(C=10.0).fit(train)
    assert w[2] < 0 < w[0]  # alike in trigrams: the same boilerplate
    assert pairwise_loss(labels, greedy(pairs, w)) < 2


def test_one_dimension_decides_and_the_others_are_as_bimodal() -> None:
    X, labels = sets_with_irrelevant_features(2000, 3, seed=1)
    assert X.shape == (2000, 4)
    assert ((X[:, 0] > 0) == labels).mean() > 0.99
    assert all(abs(((X[:, d] > 0) == labels).mean() - 0.5) < 0.05 for d in (1, 2, 3))
    assert np.allclose(X.std(axis=0), X[:, 0].std(), rtol=0.05)
    assert ComputedPairs(X[:20], "gaussian").dimension == 5


def test_marbles_of_new_colours_are_grouped_by_a_learned_difference_of_hue() -> None:
    X, y = marbles(seed=1)
    w = PairClassifier(C=10.0).fit([(ComputedPairs(X), y)])
    X, y = marbles((60, 180, 300), seed=2)
    pairs = ComputedPairs(X)
    found = greedy(StoredPairs(pairs.items, pairs.dense()), w)
    assert pairwise_loss(y, found) == 0
    assert min(-w[:2]) > 5 * max(abs(w[2:5]))


def test_sets_without_items_are_refused() -> None:
    for bad in (
        lambda: coreference_like(0),
        lambda: stars(0),
        lambda: news_like(sites=0),
        lambda: sets_with_irrelevant_features(0),
        lambda: sets_with_irrelevant_features(5, -1),
        lambda: marbles(each=0),
    ):
        with pytest.raises(InputError, match="expected"):
            bad()
