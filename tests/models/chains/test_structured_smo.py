"""Structured SMO: its kernel against a plain twin, the dual that never falls, the optimum, kernels on places."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from chain_twins import joint, labellings, max_entropy, scores_of
from needed import need_module

from netclust.errors import InputError
from netclust.learners.one_slack import OneSlack
from netclust.models.chains import chain_kernels as kernels
from netclust.models.chains.chain_problem import ChainProblem
from netclust.models.chains.node_products import NodeKernel
from netclust.models.chains.structured_smo import Select, StructuredSmo

SELECTS: tuple[Select, ...] = ("largest", "weighted", "shared")


def examples(count: int = 6, places: int = 4, labels: int = 3, seed: int = 0) -> list[tuple[Any, Any]]:
    """Spec 12.5: chains of 4 places with 3 labels."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        y = rng.integers(0, labels, places)
        made.append(
            (np.column_stack([np.eye(labels)[y] * 0.7 + rng.normal(0, 1, (places, labels)), np.ones(places)]), y)
        )
    return made


def twin_step(a: Any, pair: Any, v: Any, rows: Any, phi: Any, C: float, select: int) -> tuple[int, Any, float] | None:
    """One step by all labellings: who gives (as a distribution), who takes, and how much; spec 2.6 and 2.7."""
    top = v.max()
    up = int(v.argmax())
    worst: tuple[float, Any] = (0.0, None)
    for t in range(1, rows.shape[1]):
        for j in range(pair.shape[1]):
            for k in range(pair.shape[1]):
                has = (rows[:, t - 1] == j) & (rows[:, t] == k)
                if pair[t, j, k] <= 0 or a[has].max() <= 0:
                    continue
                lacks = top - v[has].max()
                value = lacks * {0: 1.0, 1: a[has].max(), 2: pair[t, j, k]}[select]
                if lacks > 1e-9 and value > worst[0] * (1 + 1e-12):
                    worst = (value, has)
    if worst[1] is None:
        return None
    has = worst[1]
    if select == 2:
        giving = [(np.where(has, a, 0) / a[has].sum(), a[has].sum()), (a, 1.0)]
    else:
        down = int(np.where(has, a, -1).argmax())
        giving = [(np.eye(len(a))[down], a[down])]
    best: tuple[float, Any, float] | None = None
    for q, mass in giving:
        lacks, apart = top - q @ v, C * ((q @ phi - phi[up]) ** 2).sum()
        delta = min(lacks / apart, mass)
        gain = delta * lacks - delta**2 * apart / 2
        if best is None or gain >= best[0]:
            best = (gain, q, delta)
    assert best is not None
    return up, best[1], best[2]


@pytest.mark.parametrize("select", [0, 1, 2])
def test_steps_are_those_of_the_twin_over_all_labellings(select: int) -> None:
    rng = np.random.default_rng(select)
    L, K, C, price = 4, 3, 0.3, 5.0
    x, y, rows = rng.normal(size=(L, 2)), rng.integers(0, K, L), labellings(L, K)
    phi = np.array([joint(x, row, K) for row in rows])
    gold = int((rows == y).all(axis=1).argmax())
    loss, w = price * (rows != y).sum(axis=1), rng.normal(size=phi.shape[1])
    mu, pair = np.eye(K)[y], np.zeros((L, K, K))
    pair[np.arange(1, L), y[:-1], y[1:]] = 1.0
    edge = w[2 * K + K :].reshape(K, K).copy()
    node = x @ w[: 2 * K].reshape(K, 2).T + price * (1 - mu)
    node[0] += w[2 * K : 3 * K]
    gram = x @ x.T
    dual = -np.inf
    for _ in range(12):
        a = max_entropy(mu, pair, rows)
        assert a.sum() == pytest.approx(1)
        now = w - C * (a @ phi - phi[gold])
        value = a @ loss - (now @ now) / (2 * C)  # the dual of this example alone, over C
        assert value >= dual - 1e-9
        dual = value
        v = phi @ now + loss
        assert scores_of(node, edge, rows) == pytest.approx(v)
        expected = twin_step(a, pair, v, rows, phi, C, select)
        gap, made = kernels.smo_steps(node, edge, gram, 1.0, mu, pair, C, 1, select, 1e-9, 1e-9)
        assert gap == pytest.approx(v.max() - a @ v, abs=1e-9)
        if expected is None:
            assert made == 0
            break
        up, q, delta = expected
        moved = a + delta * (np.eye(len(a))[up] - q)
        for t in range(L):
            assert mu[t] == pytest.approx([moved[rows[:, t] == k].sum() for k in range(K)], abs=1e-9)
            if t:
                own = [[moved[(rows[:, t - 1] == j) & (rows[:, t] == k)].sum() for k in range(K)] for j in range(K)]
                assert pair[t] == pytest.approx(np.array(own), abs=1e-9)


@pytest.mark.parametrize("select", SELECTS)
def test_the_dual_never_falls_and_meets_the_primal(select: Select) -> None:
    problem, given = ChainProblem(3, 4), examples()
    fit = StructuredSmo(C=1.0, epsilon=1e-3, select=select, max_passes=300).fit(problem, given)
    duals = [one.dual for one in fit.passes]
    assert fit.converged
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(duals))
    assert fit.primal - fit.dual == pytest.approx(0, abs=2e-3)
    other = OneSlack(C=1.0, epsilon=1e-4).fit(problem, given)
    assert fit.primal == pytest.approx(other.objective, abs=2e-3)
    assert fit.w == pytest.approx(other.w, abs=0.05)
    rows, slack = labellings(4, 3), 0.0
    assert fit.w is not None
    for x, y in given:
        own = np.array([fit.w @ joint(x, row, 3) + problem.loss(y, row) for row in rows])
        slack += own.max() - fit.w @ joint(x, y, 3)
    assert fit.primal == pytest.approx(fit.w @ fit.w / 2 + slack / len(given))


def test_the_printed_rule_is_slow_and_ours_is_not() -> None:
    problem, given = ChainProblem(4, 5), examples(12, 4, 4, seed=3)
    gaps = []
    for select in SELECTS:
        fit = StructuredSmo(C=20.0, epsilon=1e-3, select=select, max_passes=30).fit(problem, given)
        gaps.append(fit.primal - fit.dual)
    assert gaps[2] <= min(gaps[:2])


def test_a_linear_kernel_gives_the_weights_of_the_problem() -> None:
    problem, given = ChainProblem(3, 4), examples()
    fit = StructuredSmo(C=0.5, epsilon=0.01).fit(problem, given)
    assert fit.w is not None
    assert len(fit.model.support) <= sum(len(y) for _, y in given)
    for x, _ in given:
        parts = problem.weights(fit.w)
        assert fit.model.scores(x) == pytest.approx(parts.scores(x))
        assert fit.model.predict(x).tolist() == problem.predict(x, fit.w).tolist()


@pytest.mark.parametrize("transitions", [True, False])
def test_a_kernel_is_the_features_that_it_stands_for(transitions: bool) -> None:
    def squares(x: Any) -> Any:
        """(x.z + 1)^2 written out."""
        n = x.shape[1]
        crossed = [np.sqrt(2) * x[:, i] * x[:, j] for i in range(n) for j in range(i)]
        return np.column_stack([x**2, *crossed, np.sqrt(2) * x, np.ones(len(x))])

    given = [(x[:, :3], y) for x, y in examples(8)]
    kernel = NodeKernel("polynomial", degree=2, scale=1.0)
    smo = StructuredSmo(C=0.2, epsilon=1e-3, kernel=kernel, max_passes=500)
    fit = smo.fit(ChainProblem(3, 3, transitions=transitions), given)
    written = [(squares(x), y) for x, y in given]
    explicit = OneSlack(C=0.2, epsilon=1e-4).fit(
        ChainProblem(3, written[0][0].shape[1], transitions=transitions), written
    )
    assert fit.converged
    assert fit.primal == pytest.approx(explicit.objective, abs=1e-3)
    assert kernel(given[0][0], given[1][0]) == pytest.approx(squares(given[0][0]) @ squares(given[1][0]).T)


def test_without_transitions_it_is_a_multi_class_svm() -> None:
    linear = need_module("sklearn.svm").LinearSVC
    given = examples(15, seed=7)
    x, y = np.concatenate([x for x, _ in given]), np.concatenate([y for _, y in given])
    problem = ChainProblem(3, 4, transitions=False)
    fit = StructuredSmo(C=0.6, epsilon=1e-3, max_passes=500).fit(problem, given)
    # min |w|^2/2 + c sum_i max_y [1 + w_y.x - w_gold.x]: our loss is 25 a place, so weights are 25 times as large
    other = linear(
        C=0.6 / 15 / 25, multi_class="crammer_singer", fit_intercept=False, tol=1e-8, max_iter=200_000, random_state=0
    )
    other.fit(x, y)
    assert fit.w is not None
    assert fit.w.reshape(3, 4) / 25 == pytest.approx(other.coef_, abs=2e-3)


def test_rbf_kernels_learn_what_no_line_tells() -> None:
    rng = np.random.default_rng(6)
    given = []
    for _ in range(20):
        x = rng.normal(size=(5, 2))
        given.append((x, (x[:, 0] * x[:, 1] > 0).astype(np.int64)))
    problem = ChainProblem(2, 2)
    wrong = {}
    for name in ("linear", "rbf"):
        fit = StructuredSmo(C=500.0, epsilon=1.0, kernel=NodeKernel(name, scale=1.0)).fit(problem, given)  # type: ignore[arg-type]
        wrong[name] = np.mean([fit.model.predict(x) != y for x, y in given])
    assert wrong["rbf"] < 0.1 < wrong["linear"]


def test_what_cannot_be_meant_is_refused() -> None:
    problem, given = ChainProblem(3, 4), examples()
    with pytest.raises(InputError, match="above 0"):
        StructuredSmo(C=0.0)
    with pytest.raises(InputError, match="one pass"):
        StructuredSmo(max_passes=0)
    with pytest.raises(InputError, match="no sequences"):
        StructuredSmo().fit(problem, [(np.zeros((0, 4)), np.zeros(0, np.int64))])
    with pytest.raises(InputError, match="do not fit"):
        StructuredSmo().fit(ChainProblem(2, 4), given)
    with pytest.raises(InputError, match="degree"):
        NodeKernel("polynomial", degree=0)
    ended = StructuredSmo(epsilon=1e-9).fit(problem, given, on_pass=lambda one: one.number == 2)
    assert (len(ended.passes), ended.converged) == (2, False)
