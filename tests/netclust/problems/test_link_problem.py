"""E links on pair features: fixture F3, the dense tree problem as a twin, incomplete pairs, and learning."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.learners.perceptron import Lsp, Lspa
from netclust.losses.edge_loss import delta_f, delta_yj
from netclust.problems.base import TreeProblem
from netclust.problems.forest_problem import ForestProblem, LinkProblem, forest_clusters
from netclust.structures.links import LinkTree, best_links, gold_links, stored_arcs
from netclust.structures.pairs import ComputedPairs, PairIndex, StoredPairs, all_pairs, pair_count
from netclust.structures.partition import PairScores, canonical_partition
from netclust.structures.tree import arc_sum

F3 = PairScores(4, np.array([0.6, -0.4, 0.2, 0.3, -0.5, -0.1]))
F3_Y = np.array([1, 2, 2, 1])
LOSSES = [delta_f, partial(delta_f, r=2.0), partial(delta_yj, r=0.5)]


def some_pairs(rng, n, share):
    keep = rng.permutation(np.flatnonzero(rng.random(pair_count(n)) < share))
    return PairIndex(*(side[keep] for side in all_pairs(n)))


def arc_features(x: StoredPairs):
    """The arcs' features as `TreeProblem` has them; all pairs."""
    phi = np.zeros((x.items, x.items + 1, x.dimension))
    left, right = all_pairs(x.items)
    phi[right, left + 1] = x.psi
    return phi


@pytest.mark.parametrize(
    ("C", "parents", "loss"),
    [(0.0, [0, 1, 2, 1], 1), (0.5, [0, 1, 0, 0], 5), (1.0, [0, 1, 0, 0], 5), (2.0, [0, 1, 0, 0], 5)],
)
def test_f3_through_the_problem(C, parents, loss):
    x, problem = StoredPairs(4, F3.values[:, None]), LinkProblem(1)
    h, found = problem.max_violating(x, F3_Y, np.ones(1), C)
    assert (h.parents.tolist(), found, problem.loss(F3_Y, h)) == (parents, loss, loss)
    assert problem.gold(x, F3_Y, np.ones(1)).parents.tolist() == [0, 0, 2, 1]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.sampled_from(LOSSES))
def test_all_pairs_say_nothing_else_than_the_tree_problem(n, seed, edge_loss):
    rng = np.random.default_rng(seed)
    x = StoredPairs(n, rng.integers(-2, 3, (pair_count(n), 3)).astype(float))
    phi, y, w = arc_features(x), rng.integers(0, 3, n), rng.integers(-2, 3, 3).astype(float)
    ours, twin = LinkProblem(3, edge_loss), TreeProblem(3, edge_loss)
    assert ours.predict(x, w).parents.tolist() == twin.predict(phi, w).tolist()
    h, loss = ours.max_violating(x, y, w, C=1.5)
    want, want_loss = twin.max_violating(phi, y, w, C=1.5)
    assert (h.parents.tolist(), loss) == (want.tolist(), want_loss)
    assert ours.gold(x, y, w).parents.tolist() == twin.gold(phi, y, w).tolist()
    assert ours.joint_features(x, h).tolist() == twin.joint_features(phi, want).tolist()
    assert ours.loss(y, h) == twin.loss(y, want)


def trees(n, index):
    allowed = stored_arcs(n, index)
    return [np.array(h) for h in product(*(np.flatnonzero(row) for row in allowed))]


@pytest.mark.parametrize("edge_loss", LOSSES)
def test_no_tree_of_stored_pairs_beats_ours_and_only_right_arcs_cost_nothing(edge_loss):
    rng, n = np.random.default_rng(4), 5
    for _ in range(40):
        index = some_pairs(rng, n, 0.6)
        x = StoredPairs(n, rng.integers(-2, 3, (len(index.left), 1)).astype(float), index)
        y, problem, one = rng.integers(0, 3, n), LinkProblem(1, edge_loss), np.ones(1)
        every = [LinkTree(h, index) for h in trees(n, index)]
        score = {h: float(problem.joint_features(x, h)[0]) for h in every}
        assert problem.predict(x, one).sum(x.psi[:, 0]) == max(score.values())
        worst, loss = problem.max_violating(x, y, one, C=2.0)
        assert worst.sum(x.psi[:, 0]) + 2 * loss == max(score[h] + 2 * problem.loss(y, h) for h in every)
        gold = gold_links(PairScores(n, x.psi[:, 0], index), y)
        free = [h for h in every if problem.loss(y, h) == 0]
        assert problem.loss(y, gold) == 0
        assert gold.sum(x.psi[:, 0]) == max(score[h] for h in free)
        assert min(problem.loss(y, h) for h in every) == 0
        assert len({tuple(forest_clusters(h)) for h in free}) >= 1
        # every cluster of a free tree lies within a true one
        for h in free:
            assert len(set(zip(forest_clusters(h).tolist(), y.tolist(), strict=True))) == len(
                set(forest_clusters(h).tolist())
            )


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_links_join_no_items_that_the_forest_of_the_same_scores_keeps_apart(n, seed):
    rng = np.random.default_rng(seed)
    x, w = StoredPairs(n, rng.normal(size=(pair_count(n), 2))), rng.normal(size=2)
    links, forest = forest_clusters(LinkProblem(2).predict(x, w)), forest_clusters(ForestProblem(2).predict(x, w))
    assert len(set(zip(links.tolist(), forest.tolist(), strict=True))) == len(set(links.tolist()))


def test_a_tie_goes_to_the_root_then_to_the_oldest():
    assert best_links(PairScores(3, np.array([0.0, 1.0, 1.0]))).parents.tolist() == [0, 0, 1]


def test_edges_name_the_stored_pairs_of_the_links():
    index = PairIndex(np.array([1, 0, 0]), np.array([3, 3, 2]))
    h = best_links(PairScores(4, np.array([2.0, 1.0, 0.5]), index))
    assert (h.parents.tolist(), h.edges.tolist(), h.chosen().tolist()) == ([0, 0, 1, 2], [2, 0], [1.0, 0.0, 1.0])
    assert h.sum(np.array([2.0, 1.0, 0.5])) == 2.5


@pytest.mark.parametrize("edge_loss", LOSSES)
@pytest.mark.parametrize("learner", [Lsp(), Lspa()])
def test_online_learners_leave_no_training_error_on_separable_sets(learner, edge_loss):
    rng = np.random.default_rng(1)
    examples = []
    for _ in range(5):
        y = rng.integers(0, 4, 14)
        X = np.column_stack([y * 3.0 + rng.uniform(-0.4, 0.4, 14) + rng.uniform(-50, 50), rng.normal(size=14)])
        examples.append((ComputedPairs(X), y))
    problem = LinkProblem(3, edge_loss)
    done = lambda fitted: all(problem.loss(y, problem.predict(x, fitted.last)) == 0 for x, y in examples)  # noqa: E731
    w = learner.fit(problem, examples, epochs=300, on_epoch=done).last
    for x, y in examples:
        assert forest_clusters(problem.predict(x, w)).tolist() == canonical_partition(y).tolist()


def test_complete_candidates_change_no_loss():
    y = np.array([3, 1, 3, 1, 2])
    for edge_loss in LOSSES:
        plain, masked = edge_loss(y), edge_loss(y, candidates=stored_arcs(5, None))
        assert plain.arcs.tolist() == masked.arcs.tolist()
        assert plain.constant == masked.constant
        assert arc_sum(plain.arcs, np.zeros(5, np.int64)) == arc_sum(masked.arcs, np.zeros(5, np.int64))


def test_bad_input_is_refused():
    x = StoredPairs(3, np.ones((3, 2)))
    with pytest.raises(InputError, match="labels have shape"):
        LinkProblem(2).max_violating(x, np.array([0, 1]), np.ones(2), C=1.0)
    with pytest.raises(InputError, match="5 features a pair are expected, the example has 2"):
        LinkProblem(5).predict(x, np.ones(5))
