"""Local search: its kernels against plain twins, its results against brute force and its own starts."""

from __future__ import annotations

import numpy as np
import pytest
from correlation_twins import FIG_3_1, plain_annealing, plain_moves, random_scores, stored
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.models.clustering.partitions.annealing_kernels import anneal
from netclust.models.clustering.partitions.enumeration import best_partition
from netclust.models.clustering.partitions.greedy import greedy_clusters
from netclust.models.clustering.partitions.local_search import local_search
from netclust.models.clustering.partitions.moves_kernels import (
    contract,
    empty_rows,
    fill_complete_rows,
    fill_rows,
    move_items,
    pair_up,
)
from netclust.structures.pairs import PairIndex, pair_index
from netclust.structures.partition import PairScores, canonical_partition

seeds = st.integers(0, 10**6)


def rows_of(scores: PairScores):
    rows = empty_rows(scores.items, len(scores.values))
    fill_rows(*scores.index, scores.values, rows)
    return rows


def some_labels(seed: int, items: int) -> np.ndarray:
    return canonical_partition(np.random.default_rng(seed + 7).integers(items, size=items))


# --- the kernels


@given(seed=seeds, items=st.integers(0, 12))
def test_rows_lose_no_pair(seed: int, items: int) -> None:
    scores = random_scores(seed, items)
    rows = rows_of(stored(scores))
    full = empty_rows(items, len(scores.values))
    fill_complete_rows(scores.values, full)
    for a, b in zip(rows, full, strict=True):
        assert np.array_equal(a, b)
    back = np.zeros((items, items))
    for i in range(items):
        here = slice(rows.start[i], rows.start[i + 1])
        back[i, rows.other[here]] = rows.score[here]
    assert np.array_equal(back, scores.matrix())


@given(seed=seeds, items=st.integers(1, 14), whole=st.booleans())
def test_no_move_differs_from_the_plain_search(seed: int, items: int, whole: bool) -> None:
    scores = stored(random_scores(seed, items, whole))
    start, order = some_labels(seed, items), np.random.default_rng(seed).permutation(items)
    labels = start.copy()
    move_items(rows_of(scores), labels, order, 1e-9)
    assert labels.tolist() == plain_moves(scores.matrix(), start, order, 1e-9).tolist()


@given(seed=seeds, items=st.integers(1, 12), whole=st.booleans())
def test_no_item_is_left_that_would_rather_be_elsewhere(seed: int, items: int, whole: bool) -> None:
    scores = random_scores(seed, items, whole)
    labels = some_labels(seed, items)
    before = scores.within(labels)
    move_items(rows_of(stored(scores)), labels, np.arange(items), 1e-9)
    value = scores.within(labels)
    assert value >= before - 1e-9
    for i in range(items):
        for c in {*labels.tolist(), items}:
            moved = labels.copy()
            moved[i] = c
            assert scores.within(moved) <= value + 1e-8


@settings(max_examples=40)
@given(seed=seeds, items=st.integers(1, 10), whole=st.booleans())
def test_annealing_makes_the_choices_of_the_plain_one(seed: int, items: int, whole: bool) -> None:
    scores = stored(random_scores(seed, items, whole))
    start, temperatures = some_labels(seed, items), np.geomspace(2.0, 0.2, 6)
    labels = start.copy()
    anneal(rows_of(scores), labels, temperatures, np.array([seed], np.uint64))
    assert labels.tolist() == plain_annealing(scores.matrix(), start, temperatures, seed).tolist()


@given(seed=seeds, items=st.integers(1, 14))
def test_contracted_clusters_keep_the_sums_between_them(seed: int, items: int) -> None:
    scores, labels = random_scores(seed, items, whole=True), some_labels(seed, items)
    k = int(labels.max()) + 1
    left, right, sums = np.empty(k * k, np.int64), np.empty(k * k, np.int64), np.empty(k * k)
    pairs = contract(rows_of(stored(scores)), labels, k, left, right, sums)
    assert (left[:pairs] < right[:pairs]).all()
    between = np.zeros((k, k))
    between[left[:pairs], right[:pairs]] = sums[:pairs]
    member = (labels[:, None] == np.arange(k)).astype(float)
    assert np.array_equal(between, np.triu(member.T @ scores.matrix() @ member, 1))


@given(seed=seeds, items=st.integers(1, 14), whole=st.booleans())
def test_items_pair_up_with_their_best_free_neighbour_in_their_cluster(seed: int, items: int, whole: bool) -> None:
    scores, labels = stored(random_scores(seed, items, whole)), some_labels(seed, items)
    order, group = np.random.default_rng(seed).permutation(items), np.empty(items, np.int64)
    groups = pair_up(rows_of(scores), labels, order, group)
    matrix, expected, count = scores.matrix(), np.full(items, -1), 0
    for i in order:
        if expected[i] < 0:
            expected[i] = count
            mates = [j for j in range(items) if expected[j] < 0 and labels[j] == labels[i] and matrix[i, j] > 0]
            if mates:
                expected[max(mates, key=lambda j: matrix[i, j])] = count
            count += 1
    assert (groups, group.tolist()) == (count, expected.tolist())


# --- what the search returns


@settings(max_examples=60)
@given(seed=seeds, items=st.integers(0, 8), whole=st.booleans(), sweeps=st.sampled_from([0, 20]))
def test_local_search_is_not_below_greedy_or_above_the_optimum(seed: int, items: int, whole: bool, sweeps: int) -> None:
    scores = random_scores(seed, items, whole)
    for form in (scores, stored(scores, seed)):
        z = local_search(form, seed=seed, sweeps=sweeps)
        assert z.tolist() == canonical_partition(z).tolist()
        assert scores.within(greedy_clusters(scores)) - 1e-9 <= scores.within(z) <= best_partition(scores)[1] + 1e-9


def test_local_search_is_almost_always_optimal_on_small_sets() -> None:
    optimal = 0
    for seed in range(200):
        scores = random_scores(seed, 8)
        optimal += scores.within(local_search(scores)) >= best_partition(scores)[1] - 1e-9
    assert optimal >= 196


@pytest.mark.parametrize("sweeps", [0, 30])
def test_no_start_is_lost(sweeps: int) -> None:
    for seed in range(30):
        scores, start = random_scores(seed, 40), some_labels(seed, 40)
        assert scores.within(local_search(scores, start, sweeps=sweeps)) >= scores.within(start)
    best = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
    assert local_search(FIG_3_1, best + 5).tolist() == best.tolist() == local_search(FIG_3_1).tolist()


@pytest.mark.parametrize("dense", [True, False])
def test_no_item_and_no_two_clusters_would_still_gain(dense: bool) -> None:
    random = np.random.default_rng(1)
    m = 150
    scores = random_scores(6, m)
    if not dense:
        scores = stored(PairScores(m, np.where(random.random(len(scores.values)) < 0.1, scores.values, 0.0)), 1)
    z = local_search(scores)
    matrix, k = scores.matrix(), int(z.max()) + 1
    member = (z[:, None] == np.arange(k)).astype(float)
    likes = matrix @ member  # of every item with every cluster
    own = likes[np.arange(m), z]
    assert (np.maximum(likes.max(axis=1), 0.0) <= own + 1e-8).all()
    between = member.T @ likes
    assert (np.triu(between, 1) <= 1e-8).all()


def test_a_planted_partition_is_found_where_greedy_does_not() -> None:
    random = np.random.default_rng(0)
    y = random.integers(8, size=240)
    left, right = np.triu_indices(240, 1)
    kept = random.random(len(left)) < 0.25
    left, right = left[kept], right[kept]
    sign = np.where(y[left] == y[right], 1.0, -1.0) * np.where(random.random(len(left)) < 0.1, -1, 1)
    scores = PairScores(240, sign, pair_index(240, left, right))
    assert scores.within(local_search(scores)) >= scores.within(y) > scores.within(greedy_clusters(scores))


def test_the_seed_decides_and_nothing_else_does() -> None:
    scores = random_scores(3, 80)
    first = local_search(scores, seed=4, restarts=1)
    assert local_search(scores, seed=4, restarts=1).tolist() == first.tolist()


def test_restarts_do_not_make_it_worse() -> None:
    for seed in range(5):
        scores = random_scores(seed, 60)
        value = scores.within(local_search(scores, np.arange(60), sweeps=10))
        assert scores.within(local_search(scores, np.arange(60), sweeps=10, restarts=4)) >= value * 0.99


def test_edges() -> None:
    none = np.zeros(0, np.int64)
    for items in (0, 1):
        for index in (None, PairIndex(none, none)):
            assert local_search(PairScores(items, np.zeros(0), index)).tolist() == list(range(items))
    assert local_search(PairScores(5, np.zeros(10))).tolist() == list(range(5))
    assert local_search(PairScores(5, np.zeros(0), PairIndex(none, none))).tolist() == list(range(5))
    assert local_search(PairScores(3, np.zeros(3)), np.array([7, 7, 1])).tolist() == [0, 0, 1]


def test_bad_input_is_refused() -> None:
    scores = random_scores(0, 4)
    with pytest.raises(InputError, match="pair score 2 is nan"):
        local_search(PairScores(4, np.array([0, 0, np.nan, 0, 0, 0])))
    with pytest.raises(InputError, match="4 items need as many labels"):
        local_search(scores, np.zeros(3, np.int64))
    with pytest.raises(InputError, match="cannot be negative"):
        local_search(scores, restarts=-1)
