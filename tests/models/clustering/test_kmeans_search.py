"""The three maximisers of the k-means objective: a local search that only climbs, a relaxation that only bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from needed import need_module

from netclust.errors import InputError
from netclust.models.clustering.kmeans_kernels import climb_kmeans
from netclust.models.clustering.kmeans_search import (
    RELATIVE_GAIN,
    check_size,
    choose_k,
    discrete_kmeans,
    iterative_kmeans,
    kmeans_indicator,
    kmeans_joint_features,
    kmeans_objective,
    kmeans_similarity,
    spectral_kmeans,
)
from netclust.structures.pairs import ComputedPairs, StackedPairs, StoredPairs, pair_count
from netclust.structures.partition import canonical_partition

seeds = st.integers(0, 2**32 - 1)


def random_matrix(rng, m):
    """Symmetric and, nearly always, indefinite."""
    a = rng.normal(size=(m, m))
    return a + a.T


def partitions(m, k):
    """Every clustering of m points into exactly k clusters, each once."""

    def grow(labels, used):
        if len(labels) == m:
            if used == k:
                yield np.array(labels)
            return
        for c in range(min(used + 1, k)):
            yield from grow([*labels, c], max(used, c + 1))

    return list(grow([], 0))


def statistics(M, z, k):
    members = [np.flatnonzero(z == c) for c in range(k)]
    S = np.array([M[:, c].sum(axis=1) for c in members])
    Q = np.array([M[np.ix_(c, c)].sum() for c in members])
    return S, Q, np.array([len(c) for c in members])


def twin_of_climb(M, z, order, least, k):
    """The search in plain numpy; after every move it is compared with a recomputation from scratch."""
    m = len(z)
    S, Q, n = np.zeros((k, m)), np.zeros(k), np.zeros(k, np.int64)
    for j in range(m):
        n[z[j]] += 1
        S[z[j]] += M[j]
    for p in range(m):
        Q[z[p]] += S[z[p], p]
    moves, before, value = 0, -1, kmeans_objective(M, z)
    while moves > before:
        before = moves
        for p in order:
            a = z[p]
            if n[a] == 1:
                continue
            leave = (Q[a] - 2.0 * S[a, p] + M[p, p]) / (n[a] - 1) - Q[a] / n[a]
            gain = (Q + 2.0 * S[:, p] + M[p, p]) / (n + 1) - Q / n + leave
            gain[a] = -np.inf
            to = int(np.argmax(gain))
            if not gain[to] > least:
                continue
            Q[a] += M[p, p] - 2.0 * S[a, p]
            Q[to] += M[p, p] + 2.0 * S[to, p]
            S[a] -= M[p]
            S[to] += M[p]
            n[a] -= 1
            n[to] += 1
            z[p] = to
            moves += 1
            for kept, anew in zip((S, Q, n), statistics(M, z, k), strict=True):
                np.testing.assert_allclose(kept, anew, atol=1e-9)
            now = kmeans_objective(M, z)
            assert now > value
            assert now - value == pytest.approx(gain[to], abs=1e-8)
            value = now
    return moves, S, Q, n


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(2, 25), st.integers(2, 5))
def test_search_climbs_at_every_move_and_its_statistics_equal_a_recomputation(seed, m, k):
    k = min(k, m)
    rng = np.random.default_rng(seed)
    M = random_matrix(rng, m)
    order = rng.permutation(m)
    start = np.concatenate([np.arange(k), rng.integers(0, k, m - k)])
    least = RELATIVE_GAIN * np.abs(M).max()
    z, twin_z = start.copy(), start.copy()
    S, Q, n = np.zeros((k, m)), np.zeros(k), np.zeros(k, np.int64)
    moves = climb_kmeans(M, z, order, least, S, Q, n)
    twin_moves, *twin = twin_of_climb(M, twin_z, order, least, k)
    assert moves == twin_moves
    assert np.array_equal(z, twin_z)
    for ours, theirs in zip((S, Q, n), twin, strict=True):
        assert np.array_equal(ours, theirs)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 30), st.integers(1, 6), st.integers(1, 3))
def test_search_neither_empties_a_cluster_nor_stops_where_one_move_would_gain(seed, m, k, restarts):
    k = min(k, m)
    M = random_matrix(np.random.default_rng(seed), m)
    z = iterative_kmeans(M, k, seed=seed % 7, restarts=restarts)
    assert len(np.unique(z)) == k
    reached = kmeans_objective(M, z)
    for p in range(m):
        if (z == z[p]).sum() > 1:
            for c in range(k):
                other = z.copy()
                other[p] = c
                assert kmeans_objective(M, other) <= reached + 1e-6


def lloyd(M, z, k, most):
    """Batch kernel k-means: all points go to the nearest centre at once. Returns None where it does not settle."""
    for _ in range(most):
        S, Q, n = statistics(M, z, k)
        nearest = np.argmin(np.diag(M) - 2 * S / n[:, None] + (Q / n**2)[:, None], axis=0)
        if np.array_equal(nearest, z) or len(np.unique(nearest)) < k:
            return z
        z = nearest
    return None


def test_batch_search_cycles_on_an_indefinite_matrix_where_ours_ends():
    M = -np.kron(np.eye(2), np.ones((2, 2)))  # points dislike their own kind
    start = np.array([0, 0, 1, 1])
    assert lloyd(M, start, 2, 1000) is None
    z = iterative_kmeans(M, 2, start=start)
    assert kmeans_objective(M, z) > kmeans_objective(M, start)
    assert sorted(z[:2]) == sorted(z[2:]) == [0, 1]


def test_kernel_k_means_identity_of_squared_distances_and_objective():
    rng = np.random.default_rng(3)
    X, z = rng.normal(size=(30, 4)), rng.integers(0, 3, 30)
    scatter = sum(((X[z == c] - X[z == c].mean(axis=0)) ** 2).sum() for c in range(3))
    K = X @ X.T
    assert scatter == pytest.approx(np.trace(K) - kmeans_objective(K, z), rel=1e-12)


def test_search_agrees_with_k_means_of_scikit_learn_where_that_is_the_problem():
    cluster = need_module("sklearn.cluster")
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 1.0, (20, 3)) for c in (-4, 0, 4)])
    z = iterative_kmeans(X @ X.T, 3, restarts=5)
    theirs = cluster.KMeans(3, n_init=5, random_state=0).fit_predict(X)
    assert np.array_equal(z, canonical_partition(theirs))


@settings(max_examples=25, deadline=None)
@given(seeds, st.integers(2, 7), st.integers(1, 4))
def test_relaxation_is_the_sum_of_top_eigenvalues_and_above_every_clustering(seed, m, k):
    k = min(k, m)
    M = random_matrix(np.random.default_rng(seed), m)
    Y = spectral_kmeans(M, k)
    np.testing.assert_allclose(Y.T @ Y, np.eye(k), atol=1e-10)
    value = kmeans_objective(M, Y)
    assert value == pytest.approx(np.linalg.eigvalsh(M)[-k:].sum(), abs=1e-9)
    best = max(kmeans_objective(M, z) for z in partitions(m, k))
    assert value >= best - 1e-9
    for z in (iterative_kmeans(M, k), discrete_kmeans(M, k)):
        assert kmeans_objective(M, z) <= best + 1e-9


def test_relaxation_bounds_all_clusterings_of_eight_points():
    M = random_matrix(np.random.default_rng(8), 8)
    for k in (2, 3, 4):
        values = [kmeans_objective(M, z) for z in partitions(8, k)]
        assert kmeans_objective(M, spectral_kmeans(M, k)) >= max(values)
        assert kmeans_objective(M, iterative_kmeans(M, k, restarts=50)) == pytest.approx(max(values), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(seeds, st.lists(st.integers(1, 12), min_size=1, max_size=5))
def test_rounding_finds_the_blocks_of_a_block_matrix(seed, sizes):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    M = (y[:, None] == y).astype(float)
    Y = spectral_kmeans(M, len(sizes))
    np.testing.assert_allclose(Y @ Y.T, kmeans_indicator(y) @ kmeans_indicator(y).T, atol=1e-9)
    # one start may end with two blocks merged and one split; the best of a few does not
    assert np.array_equal(discrete_kmeans(M, len(sizes), restarts=30), canonical_partition(y))


def test_rounding_has_fewer_bad_optima_than_a_search_from_one_random_start():
    y = np.repeat(np.arange(5), 20)
    rng = np.random.default_rng(5)
    M = (y[:, None] == y) + 0.9 * random_matrix(rng, 100)
    missed = {
        method: sum(len(np.unique(y + 5 * method(M, 5, seed=s))) > 5 for s in range(40))
        for method in (iterative_kmeans, discrete_kmeans)
    }
    assert missed[discrete_kmeans] <= missed[iterative_kmeans]


def test_search_depends_on_seed_items_and_k_alone():
    rng = np.random.default_rng(1)
    M = random_matrix(rng, 40)
    first = iterative_kmeans(M, 4, seed=3)
    iterative_kmeans(random_matrix(rng, 17), 3, seed=3)
    assert np.array_equal(iterative_kmeans(M, 4, seed=3), first)
    assert len({tuple(iterative_kmeans(M, 4, seed=s)) for s in range(10)}) > 1


def test_restarts_never_lower_the_objective_and_a_start_is_used():
    M = random_matrix(np.random.default_rng(2), 50)
    values = [kmeans_objective(M, iterative_kmeans(M, 5, restarts=r)) for r in (1, 3, 10)]
    assert values == sorted(values)
    best = iterative_kmeans(M, 5, restarts=10)
    assert np.array_equal(iterative_kmeans(M, 5, start=best), best)


def test_search_is_the_same_at_every_scale_of_the_matrix():
    M = random_matrix(np.random.default_rng(4), 30)
    for scale in (2.0**-60, 2.0**60):
        assert np.array_equal(iterative_kmeans(M * scale, 4), iterative_kmeans(M, 4))


@pytest.mark.parametrize("sizes", [[5, 5], [10, 10, 10], [30, 8, 5], [6] * 7, [4, 9, 16, 25]])
@pytest.mark.parametrize("kind", ["plain", "no diagonal", "signed", "noisy"])
def test_number_of_clusters_of_a_block_matrix_is_found(sizes, kind):
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    M = (y[:, None] == y).astype(float)
    if kind == "no diagonal":
        np.fill_diagonal(M, 0)
    elif kind == "signed":
        M = 2 * M - 1
    elif kind == "noisy":
        M += 0.05 * random_matrix(np.random.default_rng(7), len(y))
    assert choose_k(M, 9) == len(sizes)
    assert choose_k(3 * M - 100, 9) == len(sizes)


def test_number_of_clusters_is_one_where_all_pairs_are_alike():
    assert choose_k(np.full((6, 6), 2.5), 4) == 1
    assert choose_k(np.ones((1, 1)), 4) == choose_k(np.eye(2), 4) == 1
    with pytest.raises(InputError, match="nothing to choose"):
        choose_k(np.eye(3), 1)


def test_indicator_of_the_worked_example():
    a, b = 2**-0.5, 3**-0.5
    expected = np.array([[a, 0], [0, b], [a, 0], [0, b], [0, b]])
    np.testing.assert_allclose(kmeans_indicator(np.array([7, 2, 7, 2, 2])), expected)


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_joint_features_are_those_in_which_the_objective_is_linear(seed):
    rng = np.random.default_rng(seed)
    m, k = 9, 3
    X, psi = rng.normal(size=(m, 4)), rng.normal(size=(pair_count(m), 2))
    nodes, explicit = ComputedPairs(X, "product", constant=False), StoredPairs(m, psi)
    z = np.concatenate([np.arange(k), rng.integers(0, k, m - k)])
    for pairs in (nodes, explicit, StackedPairs([nodes, explicit])):
        w = rng.normal(size=pairs.dimension)
        K = kmeans_similarity(pairs, w)
        for h in (z, spectral_kmeans(K, k)):
            assert w @ kmeans_joint_features(pairs, h) == pytest.approx(kmeans_objective(K, h), abs=1e-9)
        np.testing.assert_allclose(
            kmeans_joint_features(pairs, z), kmeans_joint_features(pairs, kmeans_indicator(z)), atol=1e-9
        )
    w = rng.normal(size=4)
    np.testing.assert_allclose(kmeans_similarity(nodes, w), (X * w) @ X.T, atol=1e-12)
    assert not np.diag(kmeans_similarity(explicit, w[:2])).any()
    by_cluster = sum((X[z == c].sum(axis=0) ** 2) / (z == c).sum() for c in range(k))
    np.testing.assert_allclose(kmeans_joint_features(nodes, z), by_cluster, atol=1e-9)


@pytest.mark.parametrize(
    ("M", "k", "message"),
    [
        (np.zeros((0, 0)), 1, "square matrix"),
        (np.zeros((2, 3)), 1, "square matrix"),
        (np.array([[0.0, np.nan], [np.nan, 0.0]]), 1, "finite"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), 1, "symmetric"),
        (np.eye(3), 0, "k is 1 to"),
        (np.eye(3), 4, "k is 1 to"),
    ],
)
def test_a_matrix_that_cannot_be_clustered_is_refused(M, k, message):
    for method in (iterative_kmeans, spectral_kmeans, discrete_kmeans):
        with pytest.raises(InputError, match=message):
            method(M, k)


def test_other_bad_input_is_refused():
    with pytest.raises(InputError, match="restarts"):
        iterative_kmeans(np.eye(3), 2, restarts=0)
    for start in ([0, 1], [0, 0, 0], [0, 1, 2]):
        with pytest.raises(InputError, match="3 labels and 2 clusters"):
            iterative_kmeans(np.eye(3), 2, start=np.array(start))
    with pytest.raises(InputError, match="80 GB"):
        check_size(100_000)
