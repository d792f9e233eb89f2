"""LSP and LSPA on hashed pairs: fixtures F5 and F6, the dense path as a twin, orders by seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hashed_cases import UNIT, as_f5, dense_psi, f5_pairs, random_pairs, stored
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.learners.perceptron import Lsp, Lspa
from netclust.models.coreference.antecedent_problem import AntecedentProblem
from netclust.problems.base import SparseProblem, TreeProblem
from netclust.problems.forest_problem import ForestProblem
from netclust.problems.sparse_features import SparseVector, row_difference

PROBLEMS = [AntecedentProblem(40), AntecedentProblem(40, "yj", 0.5), ForestProblem(40)]
LEARNERS = [Lsp(), Lspa(), Lspa(cap=0.01)]


@dataclass(frozen=True)
class Dense:
    """A problem without its sparse differences."""

    problem: Any

    @property
    def dimension(self):
        return self.problem.dimension

    def joint_features(self, x, h):
        return self.problem.joint_features(x, h)

    def max_violating(self, x, y, w, C):
        return self.problem.max_violating(x, y, w, C)

    def gold(self, x, y, w):
        return self.problem.gold(x, y, w)

    def predict(self, x, w):
        return self.problem.predict(x, w)

    def loss(self, y, h):
        return self.problem.loss(y, h)


def examples(seed=0, count=5, n=12):
    rng = np.random.default_rng(seed)
    return [(random_pairs(rng, n, dimension=40, reach=6), rng.integers(0, 4, n)) for _ in range(count)]


def test_f5_trace():
    x, y = f5_pairs()
    models = []
    # scores are 25 times those of the fixture, so the loss is too
    fitted = Lsp().fit(AntecedentProblem(3), [(x, y)], epochs=5, C=UNIT**2, on_epoch=models.append)
    steps = [[1, -0.8, 0], [2, -1.4, 0], [3, -1.2, -1], [3, -2, 0], [3, -2, 0]]
    assert [as_f5(model.last).tolist() for model in models] == [pytest.approx(w, abs=1e-12) for w in steps]
    assert as_f5(fitted.averaged) == pytest.approx([2.4, -1.48, -0.2], abs=1e-12)
    assert fitted.losses == (3, 3, 2, 1, 0)
    assert (fitted.steps, fitted.updates) == (5, 4)


def test_f6_trace():
    x, y = f5_pairs()
    models = []
    fitted = Lspa().fit(AntecedentProblem(3), [(x, y)], epochs=6, C=UNIT**2, on_epoch=models.append)
    steps = [
        [1.829268, -1.463415, 0],
        [2.056432, -1.417982, -0.227164],
        [2.124652, -1.458914, -0.227164],
        [2.124652, -1.488198, -0.190558],
    ]
    for model, w in zip(models, [*steps, steps[-1], steps[-1]], strict=True):
        assert as_f5(model.last) == pytest.approx(w, abs=1e-6)
    assert (fitted.steps, fitted.updates) == (6, 4)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("seed", [None, 3])
def test_sparse_steps_end_where_dense_ones_do(problem, learner, seed):
    assert isinstance(problem, SparseProblem)
    assert not isinstance(Dense(problem), SparseProblem)
    data, w0 = examples(), np.random.default_rng(1).normal(size=40)
    sparse, dense = (learner.fit(p, data, epochs=6, C=2.0, w0=w0, seed=seed) for p in (problem, Dense(problem)))
    assert sparse.last == pytest.approx(dense.last, abs=1e-9)
    assert sparse.averaged == pytest.approx(dense.averaged, abs=1e-9)
    assert sparse.losses == pytest.approx(dense.losses, abs=1e-9)
    assert (sparse.steps, sparse.updates) == (dense.steps, dense.updates)
    assert sparse.updates > 5


def test_a_forest_of_dense_pairs_keeps_its_dense_steps():
    data = [(stored(x), y) for x, y in examples()]
    ours, dense = (Lspa().fit(p, data, epochs=4) for p in (ForestProblem(40), Dense(ForestProblem(40))))
    assert ours.last.tobytes() == dense.last.tobytes()
    assert ours.averaged.tobytes() == dense.averaged.tobytes()


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_the_difference_of_rows_is_that_of_their_sums(n, seed):
    rng = np.random.default_rng(seed)
    x = random_pairs(rng, n)
    psi = dense_psi(x)
    plus, minus = (np.flatnonzero(rng.random(len(psi)) < 0.5) for _ in range(2))
    found = row_difference(x, rng.permutation(plus), minus)
    want = psi[plus].sum(axis=0) - psi[minus].sum(axis=0)
    assert found.slots.tolist() == np.flatnonzero(want).tolist()
    assert found.values.tolist() == want[found.slots].tolist()


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_problem_says_the_difference_of_its_features(problem):
    rng = np.random.default_rng(5)
    for x, y in examples():
        w = rng.normal(size=40)
        a, (b, _) = problem.gold(x, y, w), problem.max_violating(x, y, w, 3.0)
        change, full = problem.difference(x, a, b), np.zeros(40)
        assert isinstance(change, SparseVector)
        full[change.slots] = change.values
        assert full.tolist() == (problem.joint_features(x, a) - problem.joint_features(x, b)).tolist()


@pytest.mark.parametrize("learner", [Lsp(), Lspa()])
def test_the_average_is_that_of_the_vectors_after_each_step(learner):
    problem, data, w, seen = PROBLEMS[0], examples(), np.zeros(40), []
    for _ in range(4):
        for example in data:
            w = learner.fit(problem, [example], epochs=1, w0=w).last
            seen.append(w)
    fitted = learner.fit(problem, data, epochs=4)
    assert fitted.averaged == pytest.approx(np.mean(seen, axis=0), abs=1e-9)


def test_models_seen_by_on_epoch_do_not_change_later_and_nobody_changes_w0():
    seen, w0 = [], np.zeros(40)
    Lsp().fit(PROBLEMS[0], examples(), epochs=3, w0=w0, on_epoch=lambda m: seen.append((m, m.last.copy())))
    assert all((model.last == copy).all() for model, copy in seen)
    assert not w0.any()
    assert any((seen[0][1] != copy).any() for _, copy in seen[1:])


def test_a_seed_gives_another_order_each_epoch_and_the_same_in_every_run():
    class Spy(TreeProblem):
        def max_violating(self, x, y, w, C):
            orders.append(int(y[0]))
            return super().max_violating(x, y, w, C)

    data = [(np.zeros((1, 2, 2)), np.array([k])) for k in range(8)]
    runs = []
    for seed in (None, 1, 1, 2):
        orders: list[int] = []
        Lsp().fit(Spy(2), data, epochs=3, seed=seed)
        runs.append([orders[:8], orders[8:16], orders[16:]])
    assert runs[0] == [list(range(8))] * 3
    assert runs[1] == runs[2] != runs[3]
    assert all(sorted(epoch) == list(range(8)) for run in runs for epoch in run)
    assert runs[1][0] != runs[1][1] != runs[1][2]


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("learner", [Lsp(), Lspa()])
def test_separable_pairs_are_learned_without_a_mistake(problem, learner):
    rng, data = np.random.default_rng(8), []
    for _ in range(5):
        x, y = random_pairs(rng, 12, dimension=38, reach=11), rng.integers(0, 4, 12)
        same = y[x.index.left] == y[x.index.right]
        rows = [[*x.slots[x.at[r] : x.at[r + 1]].tolist(), 38, 39][: None if same[r] else -1] for r in range(len(same))]
        data.append((type(x).of_rows(12, 40, list(range(1, 12)), rows), y))
    fitted = learner.fit(problem, data, epochs=60, seed=0)
    assert all(problem.loss(y, problem.predict(x, fitted.last)) == 0 for x, y in data)
