"""The pair classifier: sklearn's objective, a twin step by step, feature choice."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hashed_cases import dense_psi, random_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from needed import need_module

from netclust.errors import InputError
from netclust.models.coreference.pair_classifier import SparsePairClassifier, strongest_slots
from netclust.models.coreference.pair_classifier_kernels import descend_rows, squared_lengths
from netclust.structures.hashed_pairs import HashedPairs
from netclust.structures.pairs import same_cluster


def examples(seed=0, count=4, n=10, dimension=12):
    rng = np.random.default_rng(seed)
    return [(random_pairs(rng, n, dimension, reach=6), rng.integers(0, 3, n)) for _ in range(count)]


def in_one_table(data):
    psi = np.concatenate([dense_psi(x) for x, _ in data])
    return psi, np.concatenate([np.where(same_cluster(y, x.index), 1.0, -1.0) for x, y in data])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.01, 0.3, 5.0])
def test_the_objective_is_that_of_sklearn(loss, C):
    svm = need_module("sklearn.svm")
    data = examples()
    psi, signs = in_one_table(data)
    model = svm.LinearSVC(C=C, loss=loss, dual=True, fit_intercept=False, tol=1e-8, max_iter=100_000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = model.fit(psi, signs).coef_[0]
    learner = SparsePairClassifier(C=C, loss=loss, epochs=5000, tolerance=1e-7)
    fit = learner.fit(data)
    ours, theirs = learner.objective(data, fit.w), learner.objective(data, want)
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert ours <= theirs * (1 + 1e-6)
    assert fit.dual <= ours + 1e-9
    assert fit.dual == pytest.approx(ours, rel=1e-4)
    if loss == "squared_hinge":
        assert fit.converged
        assert fit.w == pytest.approx(want, abs=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_objective_is_what_the_formula_says(loss):
    data, w = examples(), np.random.default_rng(1).normal(size=12)
    psi, signs = in_one_table(data)
    short = np.maximum(0, 1 - signs * (psi @ w)) ** (1 if loss == "hinge" else 2)
    found = SparsePairClassifier(C=0.7, loss=loss).objective(data, w)
    assert found == pytest.approx(w @ w / 2 + 0.7 * short.sum(), rel=1e-12)


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 8), st.integers(0, 2**32 - 1), st.sampled_from([(0.5, 0.0), (np.inf, 0.25)]))
def test_kernel_steps_are_those_of_plain_python(n, seed, shape):
    rng, (cap, diagonal) = np.random.default_rng(seed), shape
    x = random_pairs(rng, n)
    psi = dense_psi(x)
    signs, order = rng.choice([-1.0, 1.0], len(psi)), rng.permutation(len(psi))
    lengths, counts = np.empty(len(psi)), np.zeros(x.dimension, np.int32)
    squared_lengths(x.at, x.slots, counts, lengths)
    assert lengths.tolist() == (psi**2).sum(axis=1).tolist()
    assert not counts.any()
    w, alpha = np.zeros(x.dimension), np.zeros(len(psi))
    v, beta, worst = np.zeros(x.dimension), np.zeros(len(psi)), 0.0
    for _ in range(3):
        found = descend_rows(x.at, x.slots, signs, lengths, order, cap, diagonal, alpha, w)
        worst = 0.0
        for r in order:
            gradient = signs[r] * (psi[r] @ v) - 1 + diagonal * beta[r]
            inward = min(gradient, 0) if beta[r] <= 0 else max(gradient, 0) if beta[r] >= cap else gradient
            if lengths[r] + diagonal == 0:
                beta[r] = cap
                continue
            if inward == 0:
                continue
            worst = max(worst, abs(inward))
            after = min(max(beta[r] - gradient / (lengths[r] + diagonal), 0), cap)
            v += (after - beta[r]) * signs[r] * psi[r]
            beta[r] = after
        assert alpha == pytest.approx(beta, abs=1e-9)
        assert w == pytest.approx(v, abs=1e-9)
        assert found == pytest.approx(worst, abs=1e-9)
    assert w == pytest.approx((alpha * signs) @ psi, abs=1e-9)


def test_every_pass_brings_the_dual_closer():
    duals = [SparsePairClassifier(C=1.0, epochs=k, tolerance=0).fit(examples()).dual for k in (1, 2, 4, 8, 16)]
    assert duals == sorted(duals)


def test_the_same_seed_gives_the_same_bits_and_another_one_other_ones():
    fits = [SparsePairClassifier(epochs=2, tolerance=0, seed=seed).fit(examples()).w.tobytes() for seed in (1, 1, 2)]
    assert fits[0] == fits[1] != fits[2]


def test_training_ends_within_the_tolerance():
    fit = SparsePairClassifier(epochs=500, tolerance=0.05).fit(examples())
    assert fit.converged
    assert fit.violation <= 0.05
    assert fit.epochs < 500


def test_pairs_of_no_slots_do_no_harm():
    x = HashedPairs.of_rows(3, 2, [1, 2], [[], [0], []])
    for loss in ("hinge", "squared_hinge"):
        fit = SparsePairClassifier(loss=loss, epochs=50).fit([(x, np.array([1, 1, 1]))])
        assert fit.w[0] > 0
        assert fit.w[1] == 0


def test_chosen_slots_keep_what_separates():
    rng, data = np.random.default_rng(3), []
    for _ in range(5):
        x, y = random_pairs(rng, 10, dimension=48, reach=9), rng.integers(0, 3, 10)
        same = same_cluster(y, x.index)
        rows = [[*x.slots[x.at[r] : x.at[r + 1]].tolist(), 48 + int(same[r])] for r in range(len(same))]
        data.append((HashedPairs.of_rows(10, 50, list(range(1, 10)), rows), y))
    chosen = strongest_slots(SparsePairClassifier(epochs=20).fit(data).w, 2)
    assert chosen.tolist() == [48, 49]
    fewer = [(x.with_slots(chosen), y) for x, y in data]
    w = SparsePairClassifier(epochs=20).fit(fewer).w
    assert all(((x.scores(w) > 0) == same_cluster(y, x.index)).all() for x, y in fewer)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-3, 3), max_size=12), st.integers(0, 14))
def test_strongest_slots_are_those_of_a_full_sort(weights, count):
    w = np.array(weights, np.float64)
    ranked = sorted((k for k in range(len(w)) if w[k]), key=lambda k: (-abs(w[k]), k))
    assert strongest_slots(w, count).tolist() == sorted(ranked[:count])


def test_bad_input_is_refused():
    data = examples()
    with pytest.raises(InputError, match="no pairs"):
        SparsePairClassifier().fit([])
    with pytest.raises(InputError, match="example 2 has 5 slots"):
        SparsePairClassifier().fit([data[0], (HashedPairs.of_rows(2, 5, [1], [[0]]), np.array([0, 1]))])
    with pytest.raises(InputError, match="labels have shape"):
        SparsePairClassifier().fit([(data[0][0], np.zeros(3, int))])
    with pytest.raises(InputError, match="use 'hinge'"):
        SparsePairClassifier(loss="logistic")
    with pytest.raises(InputError, match="above 0"):
        SparsePairClassifier(C=0.0)
    with pytest.raises(InputError, match="cannot be kept"):
        strongest_slots(np.ones(3), -1)
