"""K forests: fixture F4, exhaustive search, the loss Delta_YJ, the certificate of a spanning tree, and learning."""

from __future__ import annotations

from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.kernels.structured.union_find import grow_forest, number_components
from netclust.learners.perceptron import Lsp, Lspa
from netclust.losses.edge_loss import delta_f, delta_yj
from netclust.losses.forest_loss import delta_yj_pairs
from netclust.problems.forest_problem import ForestProblem, forest_clusters
from netclust.structures.forest import PairForest, best_forest, connected_parts, gold_forest
from netclust.structures.pair_numbers import numbers_of, pairs_at
from netclust.structures.pairs import ComputedPairs, PairIndex, StoredPairs, all_pairs, pair_count, pair_index
from netclust.structures.partition import PairScores, canonical_partition
from netclust.structures.tree import tree_clusters

# Fixture F4: items 1 to 5, pairs in the order 12 13 14 15 23 24 25 34 35 45.
F4 = PairScores(5, np.array([0.8, -0.3, -0.6, -0.2, 0.1, -0.1, -0.4, 0.4, -0.7, -0.25]))
F4_Y = np.array([1, 1, 2, 2, 1])


def names(h: PairForest):
    return [f"{i + 1}{j + 1}" for i, j in zip(*h.pairs(), strict=True)]


def labellings(n):
    """Every clustering of n items, as canonical labels."""
    found = [[0]]
    for _ in range(n - 1):
        found = [[*y, label] for y in found for label in range(max(y) + 2)]
    return [np.array(y) for y in found]


def forests(n, index=None):
    """Every set of stored pairs without a cycle."""
    pairs = list(zip(*(all_pairs(n) if index is None else index), strict=True))
    for size in range(n):
        for edges in combinations(range(len(pairs)), size):
            if components(n, [pairs[k] for k in edges])[1] == size:
                yield PairForest(n, np.array(edges, np.int64), index)


def components(n, pairs):
    """The slow twin of union-find: labels by first appearance, and how many of the pairs joined two components."""
    labels, joined = np.arange(n), 0
    for a, b in pairs:
        if labels[a] != labels[b]:
            labels[labels == max(labels[a], labels[b])] = min(labels[a], labels[b])
            joined += 1
    return canonical_partition(labels), joined


def slow_kruskal(n, left, right):
    """Which pairs, in their order, join two components; and the components."""
    labels, taken = np.arange(n), []
    for k, (a, b) in enumerate(zip(left, right, strict=True)):
        if labels[a] != labels[b]:
            labels[labels == max(labels[a], labels[b])] = min(labels[a], labels[b])
            taken.append(k)
    return taken, canonical_partition(labels)


def test_f4_prediction():
    h = best_forest(F4)
    assert names(h) == ["12", "34", "23"]
    assert h.clusters().tolist() == [0, 0, 0, 0, 1]
    assert h.sum(F4.values) == pytest.approx(1.3, abs=1e-12)
    assert delta_yj_pairs(F4_Y, None, 0.5).total(h) == 1.5


@pytest.mark.parametrize(
    ("C", "edges", "score", "loss", "augmented"),
    [
        (0.2, ["12", "23", "34"], 1.3, 1.5, 1.6),
        (0.5, ["23", "12", "24"], 0.8, 3.0, 2.3),
        (1.0, ["23", "24", "45", "13"], -0.55, 5.0, 4.45),
    ],
)
def test_f4_max_violating_forest(C, edges, score, loss, augmented):
    price = delta_yj_pairs(F4_Y, None, 0.5)
    h = best_forest(PairScores(5, F4.values + C * price.pairs))
    assert set(names(h)) == set(edges)
    assert h.sum(F4.values) == pytest.approx(score, abs=1e-12)
    assert price.total(h) == loss
    assert h.sum(F4.values) + C * price.total(h) == pytest.approx(augmented, abs=1e-12)
    if C > 0.2:  # listed in the order in which they are taken
        assert names(h) == edges


def test_f4_the_gold_forest_keeps_a_negative_pair():
    h = gold_forest(F4, F4_Y)
    assert names(h) == ["12", "34", "15"]
    assert h.sum(F4.values) == pytest.approx(1.0, abs=1e-12)
    assert h.clusters().tolist() == canonical_partition(F4_Y).tolist()
    # with the zero threshold pair 15 would be lost, and y with it
    assert F4.values[h.edges].min() < 0


def test_f4_through_the_problem():
    x, problem = StoredPairs(5, F4.values[:, None]), ForestProblem(1, r=0.5)
    w = np.ones(1)
    assert names(problem.predict(x, w)) == ["12", "34", "23"]
    h, loss = problem.max_violating(x, F4_Y, w, C=1.0)
    assert (names(h), loss, problem.loss(F4_Y, h)) == (["23", "24", "45", "13"], 5.0, 5.0)
    assert problem.joint_features(x, h)[0] == pytest.approx(-0.55, abs=1e-12)
    assert forest_clusters(problem.gold(x, F4_Y, w)).tolist() == [0, 0, 1, 1, 0]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_no_forest_beats_kruskal_predicted_max_violating_or_gold(n):
    rng = np.random.default_rng(n)
    every = list(forests(n))
    for _ in range(20):
        # few distinct integers: sums are exact, and ties are frequent
        scores = PairScores(n, rng.integers(-2, 3, pair_count(n)).astype(float))
        assert best_forest(scores).sum(scores.values) == max(h.sum(scores.values) for h in every)
        y = rng.integers(0, 3, n)
        price = delta_yj_pairs(y, None, 0.5)
        worst = best_forest(PairScores(n, scores.values + 2 * price.pairs))
        assert worst.sum(scores.values) + 2 * price.total(worst) == max(
            h.sum(scores.values) + 2 * price.total(h) for h in every
        )
        gold = gold_forest(scores, y)
        assert gold.clusters().tolist() == canonical_partition(y).tolist()
        right = [h for h in every if h.clusters().tolist() == canonical_partition(y).tolist()]
        assert gold.sum(scores.values) == max(h.sum(scores.values) for h in right)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_a_clustering_has_as_many_forests_as_cayley_says_and_they_alone_cost_nothing(n):
    every = [(h, h.clusters().tolist()) for h in forests(n)]
    for y in labellings(n):
        sizes = np.bincount(y).tolist()
        price = delta_yj_pairs(y, None, 0.1)
        right = [h for h, found in every if found == y.tolist()]
        assert len(right) == prod(size ** (size - 2) if size > 1 else 1 for size in sizes)
        for h, found in every:
            assert (price.total(h) == 0) == (found == y.tolist())
            assert price.total(h) >= 0


def test_on_trees_delta_f_delta_yj_and_a_right_clustering_are_one():
    n = 4
    for y, h in product(labellings(n), product(*(range(j) for j in range(1, n + 1)))):
        parents = np.array(h)
        right = tree_clusters(parents).tolist() == y.tolist()
        assert (delta_f(y).total(parents) == 0) == right
        assert (delta_yj(y).total(parents) == 0) == right


def test_delta_yj_of_a_forest_is_that_of_the_tree_with_the_same_links():
    y = np.array([1, 2, 2, 3, 2, 1, 2])
    for h in ([0, 0, 0, 0, 0, 1, 0], [0, 0, 2, 0, 3, 1, 5], [0, 1, 2, 3, 4, 5, 6], [0] * 7):
        parents = np.array(h)
        later = np.flatnonzero(parents)
        forest = PairForest(7, numbers_of(7, None, parents[later] - 1, later))
        assert forest.clusters().tolist() == tree_clusters(parents).tolist()
        for r in (0.1, 0.5):
            assert delta_yj_pairs(y, None, r).total(forest) == pytest.approx(delta_yj(y, r).total(parents), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_the_kernel_takes_other_pairs_than_its_twin_never(n, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(pair_count(n))[: rng.integers(0, pair_count(n) + 1)]
    left, right = all_pairs(n).left[order], all_pairs(n).right[order]
    parent, taken, labels = np.arange(n), np.empty(max(n - 1, 0), np.int64), np.empty(n, np.int64)
    count = grow_forest(left, right, parent, taken)
    want, parts = slow_kruskal(n, left, right)
    assert taken[:count].tolist() == want
    assert number_components(parent, labels) == parts.max() + 1
    assert labels.tolist() == parts.tolist()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_stored_pairs_in_any_order_give_the_forest_of_all_pairs_without_the_rest(n, seed):
    rng = np.random.default_rng(seed)
    values = rng.permutation(pair_count(n)) - pair_count(n) / 3  # no ties: the forest is unique
    stored = rng.permutation(pair_count(n))[: rng.integers(0, pair_count(n) + 1)]
    index = pair_index(n, *(side[stored] for side in all_pairs(n)))
    sparse = PairScores(n, values[stored], index)
    dense = np.full(pair_count(n), -np.inf)
    dense[stored] = values[stored]
    h = best_forest(sparse)
    assert set(stored[h.edges]) == set(best_forest(PairScores(n, dense)).edges)
    assert numbers_of(n, index, *h.pairs()).tolist() == h.edges.tolist()
    # single link: the components are those of all pairs above 0 (Finley, Algorithm 8)
    above = [(i, j) for i, j, s in zip(*index, sparse.values, strict=True) if s > 0]
    assert h.clusters().tolist() == components(n, above)[0].tolist()
    y = rng.integers(0, 3, n)
    gold, parts = gold_forest(sparse, y), connected_parts(y, index)
    assert gold.clusters().tolist() == parts.tolist()
    assert delta_yj_pairs(y, index, 0.3).total(gold) == 0
    assert delta_yj_pairs(y, index, 0.3).total(best_forest(sparse, spanning=True)) >= 0


@pytest.mark.parametrize(("n", "kinds"), [(60, 3), (60, 10_000), (150, 40)])
@pytest.mark.parametrize("spanning", [False, True])
def test_blocks_of_heavy_pairs_give_no_other_forest_than_sorting_all(n, kinds, spanning):
    rng = np.random.default_rng(n + kinds)
    apart = rng.random(n) < 0.3  # these hang together only by light pairs, so that several blocks are needed
    left, right = all_pairs(n)
    values = rng.integers(0, kinds, pair_count(n)) / kinds - np.where(apart[left] | apart[right], 0.98, 0.2)
    tried = np.argsort(-values, kind="stable")
    tried = tried if spanning else tried[values[tried] > 0]
    taken, parts = slow_kruskal(n, left[tried], right[tried])
    h = best_forest(PairScores(n, values), spanning=spanning)
    assert h.edges.tolist() == tried[taken].tolist()
    assert h.clusters().tolist() == parts.tolist()


@pytest.mark.parametrize("n", [2, 3, 7])
def test_pair_numbers_and_pairs_are_inverse(n):
    every = np.arange(pair_count(n))
    found = pairs_at(n, None, every)
    assert [side.tolist() for side in found] == [side.tolist() for side in all_pairs(n)]
    assert numbers_of(n, None, *found).tolist() == every.tolist()


def certified(tree, n, scores, loss):
    """Taskar 1.4: each tree edge is at least as heavy as every other pair across its cut plus that pair's loss."""
    pairs = list(zip(*all_pairs(n), strict=True))
    for edge in tree:
        side = components(n, [pairs[k] for k in tree if k != edge])[0]
        a, b = pairs[edge]
        for k, (i, j) in enumerate(pairs):
            crosses = {side[i], side[j]} == {side[a], side[b]}
            if crosses and k != edge and scores[edge] < scores[k] + loss[k]:
                return False
    return True


def test_the_spanning_tree_certificate_holds_exactly_where_kruskal_returns_the_tree_with_margin():
    rng, n, seen = np.random.default_rng(0), 5, {True: 0, False: 0}
    trees = [h for h in forests(n) if len(h.edges) == n - 1]
    for _ in range(300):
        scores = rng.permutation(pair_count(n)) * 0.37
        tree = (
            trees[rng.integers(len(trees))] if rng.random() < 0.5 else best_forest(PairScores(n, scores), spanning=True)
        )
        margin = rng.choice([0.0, 0.3, 0.5])
        loss = np.full(pair_count(n), margin)
        loss[tree.edges] = 0.0
        augmented = PairScores(n, scores + loss)
        wins = set(best_forest(augmented, spanning=True).edges) == set(tree.edges)
        holds = certified(tree.edges.tolist(), n, scores, loss)
        assert holds == wins
        # and means what it should: no tree scores more, each other pair counted with its loss
        best = max(h.sum(augmented.values) for h in trees)
        assert holds == (tree.sum(scores) >= best - 1e-9)
        seen[holds] += 1
    assert min(seen.values()) > 30


def separable(seed, stored=None, sets=5, n=14):
    """Groups on a line that differ by set: one distance threshold solves all of them; a second feature is noise."""
    rng = np.random.default_rng(seed)
    for _ in range(sets):
        y = rng.integers(0, 4, n)
        X = np.column_stack([y * 3.0 + rng.uniform(-0.4, 0.4, n) + rng.uniform(-50, 50), rng.normal(size=n)])
        index = None
        if stored is not None:
            keep = rng.random(pair_count(n)) < stored
            index = PairIndex(*(side[keep] for side in all_pairs(n)))
        yield ComputedPairs(X, index=index), y


@pytest.mark.parametrize("stored", [None, 0.5])
@pytest.mark.parametrize("learner", [Lsp(), Lspa()])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_online_learners_leave_no_training_error_on_separable_sets(learner, C, stored):
    examples = list(separable(seed=2, stored=stored))
    problem = ForestProblem(3, r=0.5)
    done = lambda fitted: all(problem.loss(y, problem.predict(x, fitted.last)) == 0 for x, y in examples)  # noqa: E731
    w = learner.fit(problem, examples, epochs=300, C=C, on_epoch=done).last
    for x, y in examples:
        assert forest_clusters(problem.predict(x, w)).tolist() == connected_parts(y, x.index).tolist()


def test_a_set_without_pairs_is_clustered_and_bad_input_is_refused():
    one = StoredPairs(1, np.zeros((0, 2)))
    problem = ForestProblem(2)
    assert forest_clusters(problem.predict(one, np.ones(2))).tolist() == [0]
    assert problem.max_violating(one, np.array([3]), np.ones(2), C=1.0)[1] == 0
    x = StoredPairs(3, np.ones((3, 2)))
    with pytest.raises(InputError, match="labels have shape"):
        problem.gold(x, np.array([0, 1]), np.ones(2))
    with pytest.raises(InputError, match="2 features a pair are expected, the example has 2, and w has 3 weights"):
        problem.predict(x, np.ones(3))
    with pytest.raises(InputError, match="not a number"):
        problem.predict(x, np.array([np.nan, 0.0]))
    with pytest.raises(InputError, match="above 0"):
        ForestProblem(2, r=0.0).max_violating(x, np.zeros(3), np.ones(2), C=1.0)
    with pytest.raises(InputError, match="expected one for each of 3 pairs"):
        best_forest(PairScores(3, np.ones(2)))
