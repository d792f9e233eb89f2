"""E trees against exhaustive search, and the worked example of Algorithm 5 (fixture F3)."""

from __future__ import annotations

from itertools import product
from math import factorial, prod

import numpy as np
import pytest

from netclust.losses.edge_loss import delta_f, delta_yj
from netclust.structures.tree import arc_sum, best_tree, candidate_arcs, gold_arcs, gold_tree, tree_clusters

F3_Y = np.array([1, 2, 2, 1])
F3_SCORES = np.array(
    [
        [0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.6, 0.0, 0.0, 0.0],
        [0.0, -0.4, 0.3, 0.0, 0.0],
        [0.0, 0.2, -0.5, -0.1, 0.0],
    ]
)


def trees(n):
    """Every E tree of n nodes, in the order of the tie rule: root first, then oldest to newest."""
    return [np.array(h) for h in product(*(range(j) for j in range(1, n + 1)))]


def canonical(y):
    """Labels renumbered by first appearance, as `clusters` numbers them."""
    seen = {}
    return [seen.setdefault(label, len(seen)) for label in np.asarray(y).tolist()]


def induces(h, y):
    return tree_clusters(h).tolist() == canonical(y)


def integer_scores(rng, n):
    # few distinct integers: sums are exact, and ties are frequent
    return rng.integers(-2, 3, (n, n + 1)).astype(float)


def test_f3_prediction_and_gold_tree():
    h = best_tree(F3_SCORES)
    assert h.tolist() == [0, 1, 2, 1]
    assert arc_sum(F3_SCORES, h) == pytest.approx(1.1, abs=1e-12)
    assert gold_tree(F3_SCORES, F3_Y).tolist() == [0, 0, 2, 1]


@pytest.mark.parametrize(
    ("C", "parents", "loss", "augmented"),
    [
        (0, [0, 1, 2, 1], 1, 1.1),
        (0.5, [0, 1, 0, 0], 5, 3.1),
        (1, [0, 1, 0, 0], 5, 5.6),
        (2, [0, 1, 0, 0], 5, 10.6),
    ],
)
def test_f3_max_violating_delta_f(C, parents, loss, augmented):
    arc_loss = delta_f(F3_Y, r=1.0)
    scores = F3_SCORES + C * arc_loss.arcs
    h = best_tree(scores)
    assert h.tolist() == parents
    assert arc_loss.total(h) == loss
    assert arc_sum(scores, h) == pytest.approx(augmented, abs=1e-12)


@pytest.mark.parametrize(
    ("C", "parents", "loss"), [(0, [0, 1, 2, 1], 0.1), (1, [0, 1, 0, 0], 2.1), (2, [0, 1, 0, 3], 2.2)]
)
def test_f3_max_violating_delta_yj(C, parents, loss):
    arc_loss = delta_yj(F3_Y, r=0.1)
    h = best_tree(F3_SCORES + C * arc_loss.arcs)
    assert h.tolist() == parents
    assert arc_loss.total(h) == pytest.approx(loss, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_best_tree_is_the_first_of_the_best_by_exhaustion(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        scores = integer_scores(rng, n)
        expected = max(trees(n), key=lambda h, s=scores: arc_sum(s, h))
        assert best_tree(scores).tolist() == expected.tolist()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_gold_tree_is_the_first_of_the_best_that_induce_y(n):
    rng = np.random.default_rng(100 + n)
    for _ in range(20):
        scores, y = integer_scores(rng, n), rng.integers(0, 3, n)
        allowed = [h for h in trees(n) if induces(h, y)]
        expected = max(allowed, key=lambda h, s=scores: arc_sum(s, h))
        assert gold_tree(scores, y).tolist() == expected.tolist()


def test_gold_arcs_are_the_arcs_of_the_trees_that_induce_y():
    for y in product(range(4), repeat=4):
        gold = gold_arcs(np.array(y))
        for h in trees(4):
            assert induces(h, y) == gold[np.arange(4), h].all()


@pytest.mark.parametrize("y", [[1, 2, 2, 1, 1], [1, 1, 1, 1, 1], [1, 2, 3, 4, 5], [3, 3, 1, 3, 3], [2, 1, 2, 1]])
def test_number_of_trees_of_a_clustering(y):
    sizes = np.unique(y, return_counts=True)[1].tolist()
    count = sum(induces(h, y) for h in trees(len(y)))
    assert count == prod(factorial(size - 1) for size in sizes)
    # every node chooses alone
    assert count == gold_arcs(np.array(y)).sum(axis=1).prod()


def test_ties_go_to_the_root_then_to_the_oldest():
    assert best_tree(np.zeros((4, 5))).tolist() == [0, 0, 0, 0]
    scores = np.zeros((4, 5))
    scores[:, 1:] = 1.0
    assert best_tree(scores).tolist() == [0, 1, 1, 1]
    assert gold_tree(np.zeros((4, 5)), np.array([5, 5, 6, 5])).tolist() == [0, 1, 0, 1]


def test_scores_of_arcs_that_do_not_point_forward_are_not_read():
    scores = np.where(candidate_arcs(3), 0.0, np.nan)
    assert best_tree(scores).tolist() == [0, 0, 0]
    assert gold_tree(scores, np.array([1, 1, 1])).tolist() == [0, 1, 1]


def test_an_arc_of_minus_infinity_is_no_candidate():
    scores = np.zeros((3, 4))
    scores[1:, 0] = -np.inf
    assert best_tree(scores).tolist() == [0, 1, 1]


def test_no_nodes_no_tree():
    h = best_tree(np.zeros((0, 1)))
    assert h.tolist() == tree_clusters(h).tolist() == []


def test_inputs_are_left_alone():
    scores = F3_SCORES.copy()
    best_tree(scores)
    gold_tree(scores, F3_Y)
    assert (scores == F3_SCORES).all()


@pytest.mark.parametrize("parents", [[0, 2], [1], [0, -1]])
def test_clusters_refuse_what_is_no_tree(parents):
    with pytest.raises(ValueError, match="must be the root"):
        tree_clusters(np.array(parents))


def test_scores_of_the_wrong_shape_are_refused():
    with pytest.raises(ValueError, match="one row per node"):
        best_tree(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="one row per node"):
        gold_tree(np.zeros((3, 4)), np.array([1, 1]))
