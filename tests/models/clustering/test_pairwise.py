"""The pair classifier: its weights are the SVM's, its choices of pairs are the ones described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC

from netclust.datasets.simulators.synthetic_sets import coreference_like, sets_with_irrelevant_features, stars
from netclust.errors import InputError
from netclust.models.clustering.pairwise import Canopy, PairClassifier, chain_pairs, feature_rows
from netclust.structures.pairs import (
    ComputedPairs,
    PairIndex,
    StackedPairs,
    StoredPairs,
    all_pairs,
    pair_index,
    same_cluster,
)


def test_weights_are_those_of_the_svm_with_its_bias_in_the_constant() -> None:
    pairs, labels = stars(seed=1)
    w = PairClassifier(C=0.5).fit([(pairs, labels)])
    svm = LinearSVC(C=0.5, dual="auto", intercept_scaling=10.0, max_iter=100_000, random_state=0)
    svm.fit(pairs.psi[:, :2], same_cluster(labels, None))
    np.testing.assert_allclose(pairs.scores(w), svm.decision_function(pairs.psi[:, :2]), atol=1e-9)
    moved = StoredPairs(pairs.items, pairs.psi[:, [2, 0, 1]])
    np.testing.assert_allclose(PairClassifier(C=0.5, constant=0).fit([(moved, labels)]), w[[2, 0, 1]])


def test_the_same_seed_gives_the_same_weights() -> None:
    train = [coreference_like(40, seed=seed) for seed in range(2)]
    for options in ({}, {"negatives": 2.0}, {"loss": "hinge"}):
        first, second = (PairClassifier(seed=3, **options).fit(train) for _ in range(2))  # type: ignore[arg-type]
        assert np.array_equal(first, second)


def test_dense_sparse_stacked_and_computed_features_train_alike() -> None:
    X, labels = sets_with_irrelevant_features(40, 2, seed=1)
    computed = ComputedPairs(X, "gaussian")
    psi = computed.dense()
    w = PairClassifier().fit([(computed, labels)])
    halves = StackedPairs([StoredPairs(40, psi[:, :2]), StoredPairs(40, csr_matrix(psi[:, 2:]))])
    for same in (StoredPairs(40, psi), StoredPairs(40, csr_matrix(psi)), halves, _Bare(psi)):
        np.testing.assert_allclose(PairClassifier().fit([(same, labels)]), w, rtol=1e-4, atol=1e-4)
    assert w[0] > 5 * abs(w[1:3]).max()  # the dimension that matters


@dataclass
class _Bare:
    """Pair features of which nothing is known but the protocol."""

    _psi: np.ndarray[Any, Any]
    index: PairIndex | None = None
    items: int = 40

    @property
    def dimension(self) -> int:
        return int(self._psi.shape[1])

    def scores(self, w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.asarray(self._psi @ w)

    def weighted_sum(self, e: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.asarray(e @ self._psi)

    def self_scores(self, w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.zeros(self.items)

    def self_sum(self, e: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.zeros(self.dimension)


def test_stored_pairs_alone_are_learned_from() -> None:
    pairs, labels = stars(seed=1)
    left, right = all_pairs(pairs.items)
    index = pair_index(pairs.items, left[::3], right[::3])
    some = StoredPairs(pairs.items, pairs.psi[::3], index)
    svm = LinearSVC(dual="auto", intercept_scaling=10.0, max_iter=100_000, random_state=0)
    svm.fit(pairs.psi[::3, :2], same_cluster(labels, None)[::3])
    np.testing.assert_allclose(PairClassifier().fit([(some, labels)])[:2], svm.coef_[0])
    assert feature_rows(some) is some.psi


def test_chosen_pairs_are_the_ones_described() -> None:
    pairs, labels = stars(seed=1)
    likeness, together = pairs.psi[:, 0], same_cluster(labels, None)
    band = (likeness >= 0.1) & (likeness <= 0.9)

    def svm(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        fitted = LinearSVC(dual="auto", intercept_scaling=10.0, max_iter=100_000, random_state=0)
        return np.append(*(lambda m: (m.coef_[0], m.intercept_))(fitted.fit(pairs.psi[rows, :2], together[rows])))

    by_canopy = PairClassifier(canopy=Canopy(0, 0.1, 0.9)).fit([(pairs, labels)])
    np.testing.assert_allclose(by_canopy, svm(np.flatnonzero(band)))
    sparse = StoredPairs(pairs.items, csr_matrix(pairs.psi))
    np.testing.assert_allclose(
        PairClassifier(canopy=Canopy(0, 0.1, 0.9)).fit([(sparse, labels)]), by_canopy, rtol=1e-3, atol=1e-3
    )
    shuffled = np.random.default_rng(0).permutation(labels)
    together = same_cluster(shuffled, None)
    chain = np.flatnonzero(chain_pairs(shuffled))
    np.testing.assert_allclose(PairClassifier(chain=True).fit([(pairs, shuffled)]), svm(chain))


def test_fewer_negatives_leave_all_positives() -> None:
    pairs, labels = coreference_like(60, seed=1)
    together = same_cluster(labels, None)
    w = PairClassifier(negatives=1.0).fit([(pairs, labels)])
    everything = PairClassifier().fit([(pairs, labels)])
    assert (pairs.scores(w)[together] > 0).mean() > (pairs.scores(everything)[together] > 0).mean()


def brute_chain(labels: list[int], pronoun: list[bool]) -> set[tuple[int, int]]:
    chosen = set()
    for j in range(len(labels)):
        for i in range(j - 1, -1, -1):
            if labels[i] == labels[j] and not pronoun[i]:
                chosen |= {(i, j)} | {(x, j) for x in range(i + 1, j) if labels[x] != labels[j]}
                break
    return chosen


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12))
def test_chain_pairs_are_the_closest_antecedent_and_what_is_between(items: list[tuple[int, bool]]) -> None:
    labels, pronoun = [a for a, _ in items], [b for _, b in items]
    chosen = chain_pairs(np.array(labels, np.int64), np.array(pronoun, bool))
    left, right = all_pairs(len(labels))
    assert set(zip(left[chosen].tolist(), right[chosen].tolist(), strict=True)) == brute_chain(labels, pronoun)


def test_what_cannot_be_learned_from_is_refused() -> None:
    pairs, labels = stars(2, 3, seed=1)
    some = StoredPairs(6, pairs.psi[:2], pair_index(6, [0, 0], [1, 2]))
    cases: list[tuple[PairClassifier, Any, str]] = [
        (PairClassifier(), [], "no training sets"),
        (PairClassifier(C=0), [(pairs, labels)], "must be above 0"),
        (PairClassifier(), [(pairs, labels[:4])], "6 items has 4 labels"),
        (PairClassifier(), [(pairs, np.zeros(6))], "all 15 training pairs are together"),
        (PairClassifier(), [(pairs, np.arange(6))], "all 15 training pairs are apart"),
        (PairClassifier(constant=0), [(pairs, labels)], "feature 0 is not always 1"),
        (PairClassifier(constant=7), [(pairs, labels)], "cannot be the constant"),
        (PairClassifier(canopy=Canopy(9, 0, 1)), [(pairs, labels)], "a canopy by feature 9"),
        (PairClassifier(chain=True), [(some, labels)], "among all pairs"),
        (PairClassifier(), [(pairs, labels), (StoredPairs(2, np.ones((1, 2))), [0, 1])], "different numbers"),
        (PairClassifier(), [(StoredPairs(6, pairs.psi[:, 2:]), labels)], "beside the constant"),
    ]
    for classifier, sets, complaint in cases:
        with pytest.raises(InputError, match=complaint):
            classifier.fit([(p, np.asarray(y)) for p, y in sets])


def test_without_a_constant_there_is_no_bias() -> None:
    pairs, labels = stars(seed=1)
    bare = StoredPairs(pairs.items, pairs.psi[:, :2])
    w = PairClassifier(constant=None).fit([(bare, labels)])
    svm = LinearSVC(dual="auto", fit_intercept=False, max_iter=100_000, random_state=0)
    np.testing.assert_allclose(w, svm.fit(bare.psi, same_cluster(labels, None)).coef_[0])
