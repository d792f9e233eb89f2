"""Antecedents on rows of hashed pairs: fixtures F2, F3 and F6b, every tree of small sets, and links as a twin."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from hashed_cases import UNIT, as_f5, dense_psi, f5_pairs, pairs_of_scores, random_pairs, stored
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.learners.latent import LatentSvm
from netclust.learners.one_slack import OneSlack
from netclust.losses.edge_loss import delta_f, delta_yj
from netclust.models.coreference.antecedent_links import (
    AntecedentCosts,
    Antecedents,
    antecedent_prices,
    best_antecedents,
    gold_antecedents,
    violating_antecedents,
)
from netclust.models.coreference.antecedent_problem import AntecedentProblem
from netclust.problems.forest_problem import ForestProblem, LinkProblem
from netclust.structures.hashed_pairs import HashedPairs

LOSSES = [("f", 0.0), ("f", 1.0), ("f", 2.0), ("yj", 0.1), ("yj", 0.5)]
F3 = {(0, 1): 0.6, (0, 2): -0.4, (1, 2): 0.3, (0, 3): 0.2, (1, 3): -0.5, (2, 3): -0.1}
F3_Y = np.array([1, 2, 2, 1])


def links_of(dimension, loss, r):
    return LinkProblem(dimension, partial(delta_f if loss == "f" else delta_yj, r=r))


def tree_of(starts, parents):
    """Antecedents from parents (0 the root, i + 1 item i)."""
    rows = [-1 if not p else int(starts[j + 1]) - (j - (p - 1)) for j, p in enumerate(parents)]
    return Antecedents(starts, np.array(rows, np.int64))


def every_tree(starts):
    rows = [[-1, *range(starts[j], starts[j + 1])] for j in range(len(starts) - 1)]
    return [Antecedents(starts, np.array(h, np.int64)) for h in product(*rows)]


@pytest.mark.parametrize(
    ("parents", "f", "yj"),
    [
        ([0, 0, 0, 0, 0, 1, 0], [3, 6, 9], [3, 3]),
        ([0, 0, 2, 0, 0, 0, 0], [3, 6, 9], [3, 3]),
        ([0, 0, 2, 0, 3, 1, 5], [0, 0, 0], [0, 0]),
        ([0, 1, 2, 3, 4, 5, 6], [5, 5, 5], [3.5, 5.5]),
        ([0, 0, 0, 0, 0, 0, 0], [4, 8, 12], [4, 4]),
    ],
)
def test_f2_edge_losses(parents, f, yj):
    y, (x, _) = np.array([1, 2, 2, 3, 2, 1, 2]), pairs_of_scores(7, np.zeros((7, 7)))
    h = tree_of(x.starts, parents)
    assert h.parents.tolist() == parents
    assert [AntecedentProblem(1, "f", r).loss(y, h) for r in (0, 1, 2)] == f
    assert [AntecedentProblem(1, "yj", r).loss(y, h) for r in (0.1, 0.5)] == pytest.approx(yj, abs=1e-12)


@pytest.mark.parametrize(
    ("loss", "r", "C", "parents", "cost"),
    [
        ("f", 1, 0.0, [0, 1, 2, 1], 1),
        ("f", 1, 0.5, [0, 1, 0, 0], 5),
        ("f", 1, 1.0, [0, 1, 0, 0], 5),
        ("f", 1, 2.0, [0, 1, 0, 0], 5),
        ("yj", 0.1, 0.0, [0, 1, 2, 1], 0.1),
        ("yj", 0.1, 1.0, [0, 1, 0, 0], 2.1),
        ("yj", 0.1, 2.0, [0, 1, 0, 3], 2.2),
    ],
)
def test_f3_algorithm_5(loss, r, C, parents, cost):
    x, w = pairs_of_scores(4, F3)
    problem = AntecedentProblem(x.dimension, loss, r)
    h, found = problem.max_violating(x, F3_Y, w, C)
    assert h.parents.tolist() == parents
    assert found == problem.loss(F3_Y, h) == pytest.approx(cost, abs=1e-12)
    if loss == "f" and C:
        assert h.sum(x.scores(w)) + C * found == pytest.approx({0.5: 3.1, 1.0: 5.6, 2.0: 10.6}[C], abs=1e-12)
    assert problem.gold(x, F3_Y, w).parents.tolist() == [0, 0, 2, 1]
    assert round(problem.predict(x, w).sum(x.scores(w)), 12) == 1.1


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 9), st.integers(0, 2**32 - 1), st.sampled_from(LOSSES), st.sampled_from([0.0, 0.7, 1000.0]))
def test_nothing_differs_from_the_links_of_the_same_pairs(n, seed, loss, C):
    rng = np.random.default_rng(seed)
    x, y = random_pairs(rng, n), rng.integers(0, 3, n)
    w = rng.integers(-2, 3, x.dimension) * rng.choice([0.1, 1.0])
    ours, twin, pairs = AntecedentProblem(x.dimension, *loss), links_of(x.dimension, *loss), stored(x)
    assert ours.predict(x, w).parents.tolist() == twin.predict(x, w).parents.tolist()
    h, cost = ours.max_violating(x, y, w, C)
    want, want_cost = twin.max_violating(x, y, w, C)
    assert (h.parents.tolist(), cost) == (want.parents.tolist(), want_cost)
    assert h.edges.tolist() == want.edges.tolist()
    assert ours.gold(x, y, w).parents.tolist() == twin.gold(x, y, w).parents.tolist()
    assert ours.joint_features(x, h).tolist() == twin.joint_features(pairs, want).tolist()
    assert ours.loss(y, h) == twin.loss(y, want)
    assert h.clusters().tolist() == want.clusters().tolist()
    assert h.chosen().tolist() == want.chosen().tolist()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("reach", [1, 2, None, 6])
def test_no_tree_beats_ours_and_only_right_arcs_cost_nothing(loss, reach):
    rng = np.random.default_rng(4)
    for n in range(1, 7):
        x, y = random_pairs(rng, n, reach=reach), rng.integers(0, 3, n)
        w, problem = rng.integers(-2, 3, x.dimension).astype(float), AntecedentProblem(x.dimension, *loss)
        scores = dense_psi(x) @ w
        every = every_tree(x.starts)
        costs = [problem.loss(y, h) for h in every]
        assert problem.predict(x, w).sum(scores) == max(h.sum(scores) for h in every)
        worst, cost = problem.max_violating(x, y, w, 2.0)
        best = max(h.sum(scores) + 2 * c for h, c in zip(every, costs, strict=True))
        assert worst.sum(scores) + 2 * cost == pytest.approx(best, abs=1e-9)
        free = [h for h, c in zip(every, costs, strict=True) if c == 0]
        if loss[1]:
            gold = problem.gold(x, y, w)
            assert problem.loss(y, gold) == 0
            assert gold.sum(scores) == max(h.sum(scores) for h in free)
        assert min(costs) >= -1e-12


def test_ties_go_to_the_root_then_to_the_oldest():
    starts = np.array([0, 0, 1, 3])
    assert best_antecedents(starts, np.array([0.0, 1.0, 1.0])).parents.tolist() == [0, 0, 1]
    assert gold_antecedents(starts, np.array([-1.0, -2.0, -2.0]), np.zeros(3, int)).parents.tolist() == [0, 1, 1]
    free = AntecedentCosts(0.0, 0.0, 0.0)
    assert violating_antecedents(starts, np.zeros(3), np.array([1, 1, 2]), free).parents.tolist() == [0, 0, 0]


def test_the_root_is_right_where_no_member_is_among_the_candidates():
    x = HashedPairs.of_rows(3, 1, [1, 1], [[0], [0]])  # item 2 sees item 1 alone
    problem, y = AntecedentProblem(1), np.array([5, 6, 5])
    h = problem.gold(x, y, np.ones(1))
    assert (h.parents.tolist(), problem.loss(y, h), h.clusters().tolist()) == ([0, 0, 0], 0, [0, 1, 2])
    assert antecedent_prices(h, y, problem.prices)[1] == 0


def test_labels_may_be_words():
    x, w = pairs_of_scores(4, F3)
    words = np.array(["b", "a", "a", "b"])
    assert AntecedentProblem(x.dimension).gold(x, words, w).parents.tolist() == [0, 0, 2, 1]


def test_no_items_and_no_candidates_are_no_trouble():
    empty = HashedPairs.of_rows(1, 2, [], [])
    problem = AntecedentProblem(2, "yj")
    h, loss = problem.max_violating(empty, np.array([3]), np.ones(2), 1.0)
    assert (h.parents.tolist(), h.clusters().tolist(), loss) == ([0], [0], 0.0)
    assert best_antecedents(np.zeros(1, np.int64), np.zeros(0)).clusters().tolist() == []


@pytest.mark.parametrize("C", [10.0, 0.5])
def test_f6b_latent_svm(C):
    x, y = f5_pairs()
    # features times 5: w is a fifth, so that the same program has C and its objective over 25
    svm = LatentSvm(OneSlack(C=C / UNIT**2, epsilon=1e-6), tolerance=1e-6)
    fit = svm.fit(AntecedentProblem(3), [(x, y)])
    want, objective = {10.0: ([2.22, -1.3, -0.04], 3.31), 0.5: ([0.5, -0.3, 0.0], 1.33)}[C]
    assert as_f5(fit.w) * UNIT**2 == pytest.approx(want, abs=1e-4)
    assert fit.objective * UNIT**2 == pytest.approx(objective, abs=1e-4)
    assert fit.xi == pytest.approx({10.0: 0.0, 0.5: 2.32}[C], abs=1e-4)
    assert fit.converged
    assert len(fit.rounds) <= 2


def test_f6b_cuts_are_found_in_their_order():
    x, y = f5_pairs()
    fit = OneSlack(C=10.0 / UNIT**2, epsilon=1e-6).fit(AntecedentProblem(3), [(x, y)])
    # h^ = [0, 0, 1], [0, 0, 0], [0, 1, 2], and their duals, in units of the fixture
    assert fit.planes.losses.tolist() == [3, 2, 1]
    duals = np.linalg.lstsq(fit.planes.vectors.T, fit.w, rcond=None)[0] * UNIT**2
    want = np.array([0, 2.22, 2.18])
    assert duals @ fit.planes.vectors == pytest.approx(want @ fit.planes.vectors, abs=1e-4)


@pytest.mark.parametrize("make", [AntecedentProblem, partial(AntecedentProblem, edge_loss="yj"), ForestProblem])
def test_latent_svm_never_rises_and_ends_within_epsilon(make):
    rng = np.random.default_rng(2)
    examples = [(random_pairs(rng, 7, dimension=5, reach=4), rng.integers(0, 3, 7)) for _ in range(4)]
    problem, svm = make(5), LatentSvm(OneSlack(C=5.0, epsilon=0.01), tolerance=1e-3)
    fit = svm.fit(problem, examples)
    assert fit.converged
    assert all(b <= a for a, b in zip(fit.rounds, fit.rounds[1:], strict=False))
    dense = svm.fit(make_dense(make), [(stored(x), y) for x, y in examples])
    assert fit.w == pytest.approx(dense.w, abs=1e-6)
    assert fit.rounds == pytest.approx(dense.rounds, abs=1e-6)
    last = fit.reports[-1]
    assert last.violation <= last.xi + 0.01


def make_dense(make):
    """The same problem on dense features, which has no sparse differences."""
    if make is ForestProblem:
        return ForestProblem(5)
    loss = make(5)
    return links_of(5, loss.edge_loss, 1.0 if loss.edge_loss == "f" else 0.1)


def test_bad_input_is_refused():
    x, _ = f5_pairs()
    with pytest.raises(InputError, match="labels have shape"):
        AntecedentProblem(3).max_violating(x, np.array([0, 1]), np.ones(3), C=1.0)
    with pytest.raises(InputError, match="5 slots are expected, the example has 3"):
        AntecedentProblem(5).gold(x, np.zeros(3, int), np.ones(5))
    with pytest.raises(InputError, match="use 'f'"):
        AntecedentProblem(3, "muc")
    with pytest.raises(InputError, match="price of a wrong arc"):
        AntecedentProblem(3, "yj", 0.0)
    with pytest.raises(InputError, match="not a number"):
        AntecedentProblem(3).predict(x, np.full(3, np.nan))
    with pytest.raises(InputError, match="expected one for each of 3 pairs"):
        best_antecedents(x.starts, np.zeros(2))
