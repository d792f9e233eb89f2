"""The trace loss of k-means: its two forms, its fixed points, its chance levels, and its place in the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.models.clustering.kmeans_search import kmeans_indicator, kmeans_objective, spectral_kmeans
from netclust.models.clustering.trace_loss import trace_loss

seeds = st.integers(0, 2**32 - 1)


def random_labels(rng, m, k):
    return rng.permutation(np.concatenate([np.arange(k), rng.integers(0, k, m - k)]))


@settings(max_examples=50, deadline=None)
@given(seeds, st.integers(1, 30), st.integers(1, 6))
def test_both_forms_agree_and_order_of_clusters_and_arguments_does_not_count(seed, m, k):
    k = min(k, m)
    rng = np.random.default_rng(seed)
    y, z = random_labels(rng, m, k), random_labels(rng, m, k)
    loss = trace_loss(y, z)
    assert trace_loss(y, kmeans_indicator(z)) == pytest.approx(loss, abs=1e-9)
    assert trace_loss(z, y) == pytest.approx(loss, abs=1e-9)
    assert trace_loss(y, 3 - z) == pytest.approx(loss, abs=1e-9)
    assert 0 <= loss <= 100 * (k - 1) / k + 1e-9
    assert trace_loss(y, 5 * y) == 0.0


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(2, 20), st.integers(1, 5))
def test_rotating_a_relaxed_output_does_not_change_its_loss(seed, m, k):
    k = min(k, m)
    rng = np.random.default_rng(seed)
    y, a = random_labels(rng, m, k), rng.normal(size=(m, m))
    Y = spectral_kmeans(a + a.T, k)
    rotation, _ = np.linalg.qr(rng.normal(size=(k, k)))
    assert trace_loss(y, Y @ rotation) == pytest.approx(trace_loss(y, Y), abs=1e-9)


@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_all_in_one_cluster_and_the_identity_have_their_known_losses(k):
    y = np.repeat(np.arange(k), 4)
    assert trace_loss(y, np.zeros(4 * k, int), k) == pytest.approx(100 * (k - 1) / k)
    assert trace_loss(y, np.eye(4 * k), k) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("k", "m", "mean", "sd"), [(5, 100, 76.8, 1.1), (10, 150, 84.6, None)])
def test_random_labels_have_the_loss_of_chance(k, m, mean, sd):
    rng = np.random.default_rng(0)
    y = np.arange(m) * k // m
    losses = [trace_loss(y, rng.integers(0, k, m), k) for _ in range(2000)]
    assert np.mean(losses) == pytest.approx(mean, abs=0.1)
    if sd is not None:
        assert np.std(losses) == pytest.approx(sd, abs=0.1)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_loss_folds_into_the_matrix_that_the_oracle_searches(seed):
    """Erratum E6: w.Psi(H) + loss = tr(H'(K - (100/k) YY')H) + 100."""
    rng = np.random.default_rng(seed)
    m, k = 12, 3
    a = rng.normal(size=(m, m))
    K, y, z = a + a.T, random_labels(rng, m, k), random_labels(rng, m, k)
    Y = kmeans_indicator(y)
    M = K - (100 / k) * (Y @ Y.T)
    for h in (z, y, spectral_kmeans(M, k)):
        assert kmeans_objective(K, h) + trace_loss(y, h, k) == pytest.approx(kmeans_objective(M, h) + 100, abs=1e-8)


def test_clusterings_of_different_sets_are_refused():
    with pytest.raises(InputError, match="same items"):
        trace_loss(np.zeros(3, int), np.zeros(4, int))
    assert trace_loss(np.zeros(0, int), np.zeros(0, int)) == 0.0
