"""Supervised k-means as a task: its oracles, and what learners make of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.datasets.simulators.synth_pairs import synth_pairs
from netclust.errors import InputError
from netclust.learners.one_slack import OneSlack
from netclust.learners.perceptron import Lsp, Lspa
from netclust.models.clustering.kmeans import METHODS, KmeansProblem, KmeansSet
from netclust.models.clustering.kmeans_search import (
    discrete_kmeans,
    iterative_kmeans,
    kmeans_indicator,
    spectral_kmeans,
)
from netclust.models.clustering.trace_loss import trace_loss
from netclust.structures.pairs import ComputedPairs, StackedPairs, StoredPairs, pair_count

SMALL = {"k": 3, "points": 24, "features": 10, "active": 3}


def small_sets(sets, noise=0.2, seed=0):
    return [(KmeansSet(s.pairs, 3), s.labels) for s in synth_pairs(sets=sets, noise=noise, seed=seed, **SMALL)]


def slack(problem, x, y, w, h):
    """H of spec 2.2, by the verbs alone."""
    return problem.loss(y, h) + w @ (problem.joint_features(x, h) - problem.joint_features(x, y))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0, 10))
def test_the_relaxed_oracle_is_never_below_the_others_nor_below_the_truth(seed, scale):
    rng = np.random.default_rng(seed)
    m, k = 12, 3
    nodes, psi = rng.normal(size=(m, 3)), rng.normal(size=(pair_count(m), 2))
    x = KmeansSet(StackedPairs([ComputedPairs(nodes, "product", constant=False), StoredPairs(m, psi)]), k)
    y, w = np.arange(m) % k, scale * rng.normal(size=5)
    H = {}
    for method in METHODS:
        problem = KmeansProblem(5, method)
        h, loss = problem.max_violating(x, y, w, 1.0)
        assert loss == pytest.approx(problem.loss(y, h), abs=1e-9)
        H[method] = slack(problem, x, y, w, h)
    assert slack(KmeansProblem(5), x, y, w, y) == 0.0
    tolerance = 1e-9 * (1 + abs(H["spectral"]))
    assert H["spectral"] >= max(H["iterative"], H["discrete"]) - tolerance
    assert min(H.values()) >= -tolerance


def test_the_weight_of_the_loss_counts_in_the_search():
    """Without loss it is the prediction; with an overwhelming one it is as far from the truth as can be."""
    x, y = small_sets(1)[0]
    w = np.random.default_rng(0).normal(size=60)
    for method in METHODS:
        problem = KmeansProblem(60, method)
        h, loss = problem.max_violating(x, y, w, 0.0)
        if method == "spectral":
            assert trace_loss(y, problem.predict(x, w)) == pytest.approx(loss)
        else:
            assert np.array_equal(h, problem.predict(x, w))
        assert problem.max_violating(x, y, w, 1e9)[1] > 60


def test_predictor_may_differ_from_the_search_in_training():
    x, _ = small_sets(1)[0]
    w = np.random.default_rng(1).normal(size=60)
    K = np.zeros((24, 24))
    left, right = np.triu_indices(24, 1)
    K[left, right] = K[right, left] = x.pairs.scores(w)
    for predictor, direct in (
        ("iterative", iterative_kmeans),
        ("discrete", discrete_kmeans),
        ("spectral", spectral_kmeans),
    ):
        found = KmeansProblem(60, "spectral", predictor).predict(x, w)
        np.testing.assert_allclose(found, direct(K, 3), atol=1e-9)
    assert KmeansProblem(60, "spectral").predict(x, w).shape == (24, 3)


@pytest.mark.parametrize("method", METHODS)
def test_training_reaches_almost_no_loss_at_noise_of_a_fifth(method):
    examples = small_sets(5)
    problem = KmeansProblem(60, method, "discrete", restarts=3)
    fitted = OneSlack(C=1.0, epsilon=0.5, max_iterations=100).fit(problem, examples[:4])
    assert np.mean([problem.loss(y, problem.predict(x, fitted.w)) for x, y in examples]) < 5
    assert fitted.iterations <= 100


def test_all_weights_equal_are_chance():
    losses = []
    for s in synth_pairs(sets=3):
        problem = KmeansProblem(750)
        losses.append(trace_loss(s.labels, problem.predict(KmeansSet(s.pairs, 5), np.ones(750))))
    assert len(set(losses)) == 1  # nothing but the start decides, and that is the same
    seeds = [
        trace_loss(s.labels, KmeansProblem(750, seed=seed).predict(KmeansSet(s.pairs, 5), np.ones(750)))
        for seed in range(30)
    ]
    assert np.mean(seeds) == pytest.approx(76.8, abs=1.0)


def test_spectral_training_needs_at_least_the_slack_of_iterative_training():
    examples = small_sets(3, noise=0.4)
    for C in (0.1, 1.0):
        loose, tight = (
            OneSlack(C=C, epsilon=0.01, max_iterations=400).fit(KmeansProblem(60, method), examples)
            for method in ("iterative", "spectral")
        )
        assert tight.objective >= loose.objective - C * 0.01
        assert tight.xi >= loose.xi - 0.01


@pytest.mark.parametrize("learner", [Lsp(), Lspa()])
def test_online_learners_train_the_same_task(learner):
    examples = small_sets(4, noise=0.0)
    problem = KmeansProblem(60, restarts=5)
    fitted = learner.fit(problem, examples[:3], epochs=10, C=0.1)
    assert problem.loss(examples[3][1], problem.predict(examples[3][0], fitted.averaged)) == 0.0


def test_node_features_learn_which_attribute_counts():
    rng = np.random.default_rng(0)

    def example():
        y = np.repeat([0, 1, 2], 8)
        told = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 3.0]])[y] + rng.normal(0, 0.3, (24, 2))
        return KmeansSet(
            ComputedPairs(np.column_stack([told, rng.normal(0, 5, (24, 2))]), "product", constant=False), 3
        ), y

    examples = [example() for _ in range(5)]
    problem = KmeansProblem(4, restarts=3)
    before = np.mean([problem.loss(y, problem.predict(x, np.ones(4))) for x, y in examples])
    w = OneSlack(C=100.0, epsilon=0.1, max_iterations=200).fit(problem, examples[:3]).w
    after = np.mean([problem.loss(y, problem.predict(x, w)) for x, y in examples[3:]])
    assert before > 40
    assert after == 0.0


def test_gold_is_the_true_clustering_and_has_no_loss():
    x, y = small_sets(1)[0]
    problem = KmeansProblem(60)
    gold = problem.gold(x, 9 - y, np.zeros(60))
    assert np.array_equal(gold, y)
    assert problem.loss(y, gold) == problem.loss(y, kmeans_indicator(y)) == 0.0


def test_sets_that_contradict_the_task_are_refused():
    x, y = small_sets(1)[0]
    with pytest.raises(InputError, match="expected 59"):
        KmeansProblem(59).predict(x, np.zeros(59))
    with pytest.raises(InputError, match="expected 60"):
        KmeansProblem(60).predict(x, np.zeros(59))
    with pytest.raises(InputError, match="24 items in 2 clusters"):
        KmeansProblem(60).max_violating(x, np.minimum(y, 1), np.zeros(60), 1.0)
    with pytest.raises(InputError, match="23 items in 3 clusters"):
        KmeansProblem(60).max_violating(x, y[1:], np.zeros(60), 1.0)
    with pytest.raises(InputError, match="k is 1 to"):
        KmeansSet(x.pairs, 25)
    with pytest.raises(InputError, match="not known"):
        KmeansProblem(60, "lloyd")
