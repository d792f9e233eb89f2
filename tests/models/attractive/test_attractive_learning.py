"""Learning attractive networks: features and losses, the sign of weights in the shared program, the shared learners."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from netclust.errors import InputError
from netclust.learners.frank_wolfe import FrankWolfe
from netclust.learners.n_slack import NSlack
from netclust.learners.one_slack import OneSlack
from netclust.learners.qp import solve_qp
from netclust.learners.working_set import WorkingSet
from netclust.models.attractive.attractive_networks import Cliques, RelaxedLabels, relax_network, with_loss
from netclust.models.attractive.attractive_problem import AttractiveProblem, NetworkFeatures
from netclust.problems.base import signed_weights

Example = tuple[NetworkFeatures, Any]


def random_example(seed: int, nodes: int = 5, labels: int = 2, relations: int = 2) -> Example:
    """Features that say something of the labels, cliques of two and three of which two thirds agree."""
    rng = np.random.default_rng(seed)
    y = np.sort(rng.integers(0, labels, nodes))
    seen = np.column_stack([np.eye(labels)[y] + rng.normal(0, 0.7, (nodes, labels)), np.ones(nodes)])
    sets = [rng.choice(nodes, rng.integers(2, 4), replace=False).tolist() for _ in range(nodes)]
    cliques = Cliques.of_sets(sets)
    x = NetworkFeatures(seen, cliques, rng.integers(0, relations, nodes), rng.uniform(0, 1, (nodes, 2)))
    return x, y


def problem_of(labels: int = 2, **more: Any) -> AttractiveProblem:
    return AttractiveProblem(labels, labels + 1, relations=2, clique_features=2, **more)


@given(st.integers(0, 10_000), st.sampled_from([2, 3]))
@settings(max_examples=25, deadline=None)
def test_joint_features_are_what_is_scored(seed, labels) -> None:
    x, y = random_example(seed, labels=labels)
    problem, rng = problem_of(labels), np.random.default_rng(seed)
    w = rng.normal(size=problem.dimension)
    w[problem.nonnegative] = np.abs(w[problem.nonnegative])
    network = problem.network(x, w)
    for h in (y, rng.integers(0, labels, len(y))):
        assert w @ problem.joint_features(x, h) == pytest.approx(network.score(h) / len(y))
        shares = np.eye(labels)[h]
        at, members = x.cliques.at, x.cliques.members
        same = RelaxedLabels(shares, np.minimum.reduceat(shares[members], at[:-1], axis=0), 0.0)
        assert problem.joint_features(x, same) == pytest.approx(problem.joint_features(x, h))
        assert problem.loss(y, same) == pytest.approx(problem.loss(y, h))
        assert problem.loss(y, h) == pytest.approx(100 * (y != h).mean())


@given(st.integers(0, 10_000), st.sampled_from([None, (1.0, 3.0)]))
@settings(max_examples=25, deadline=None)
def test_the_most_violating_labels_are_the_worst(seed, costs) -> None:
    x, y = random_example(seed)
    problem, rng = problem_of(costs=costs), np.random.default_rng(seed)
    w = rng.normal(0, 30, size=problem.dimension)
    w[problem.nonnegative] = np.abs(w[problem.nonnegative])
    h, loss = problem.max_violating(x, y, w, 1.0)
    assert loss == pytest.approx(problem.loss(y, h))

    def value(g: Any) -> float:
        return float(w @ problem.joint_features(x, g)) + problem.loss(y, g)

    assert value(h) == pytest.approx(max(value(np.array(g)) for g in product((0, 1), repeat=5)))
    best = problem.predict(x, w)
    scores = [float(w @ problem.joint_features(x, np.array(g))) for g in product((0, 1), repeat=5)]
    assert w @ problem.joint_features(x, best) == pytest.approx(max(scores))


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_the_relaxed_oracle_is_not_below_expansion(seed) -> None:
    x, y = random_example(seed, labels=3)
    w = np.random.default_rng(seed).uniform(0, 50, problem_of(3).dimension)

    def value(oracle: Any) -> float:
        problem = problem_of(3, oracle=oracle)
        h, loss = problem.max_violating(x, y, w, 1.0)
        return float(w @ problem.joint_features(x, h)) + loss

    assert value("lp") >= value("cut") - 1e-6
    harder = with_loss(problem_of(3).network(x, w), y, 100.0)
    assert value("lp") * len(y) == pytest.approx(relax_network(harder).value, rel=1e-6)


@st.composite
def signed_programs(draw):
    seed, T, D = draw(st.integers(0, 10_000)), draw(st.integers(1, 12)), draw(st.integers(1, 4))
    rng = np.random.default_rng(seed)
    signed = np.flatnonzero(rng.random(D) < 0.6)
    groups = draw(st.integers(1, 2))
    vectors = rng.normal(size=(T, D)) - 0.3
    return vectors, rng.uniform(1, 100, T), rng.integers(0, groups, T), np.full(groups, 30.0 / groups), signed


@given(signed_programs())
@settings(max_examples=40, deadline=None)
def test_the_program_with_signs_equals_a_general_solvers(program) -> None:
    vectors, losses, group, caps, signed = program
    planes = WorkingSet(vectors.shape[1], caps, signed)
    for vector, loss, k in zip(vectors, losses, group, strict=True):
        planes.add(vector, loss, int(k))
    planes.solve()
    assert (planes.w[signed] >= 0).all()
    primal = planes.w @ planes.w / 2 + caps @ planes.slacks(planes.w)
    assert primal == pytest.approx(planes.dual, rel=1e-7, abs=1e-7)

    D, K = vectors.shape[1], len(caps)
    bounds = [(0 if j in signed else None, None) for j in range(D)] + [(0, None)] * K
    found = minimize(
        lambda z: z[:D] @ z[:D] / 2 + caps @ z[D:],
        np.concatenate([np.zeros(D), np.full(K, losses.max())]),
        jac=lambda z: np.concatenate([z[:D], caps]),
        bounds=bounds,
        constraints={"type": "ineq", "fun": lambda z: vectors @ z[:D] + z[D:][group] - losses},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    left = (vectors @ found.x[:D] + found.x[D:][group] - losses).min()
    assume(found.success and left >= -1e-7 and found.x[signed].min(initial=0.0) >= -1e-9)  # now and then it is not
    assert planes.dual <= found.fun * (1 + 1e-5) + 1e-4  # ours is certified by its gap


def test_signs_that_bind_nothing_keep_the_solution() -> None:
    rng = np.random.default_rng(1)
    vectors, losses = np.abs(rng.normal(size=(6, 3))), rng.uniform(1, 50, 6)
    group, caps = np.zeros(6, np.int64), np.array([5.0])
    free = solve_qp(vectors @ vectors.T, losses, group, caps, vectors)
    signed = solve_qp(vectors @ vectors.T, losses, group, caps, vectors, np.arange(3))
    assert signed.value == pytest.approx(free.value, rel=1e-8)
    with pytest.raises(ValueError, match="vectors"):
        solve_qp(vectors @ vectors.T, losses, group, caps, None, np.arange(3))


@pytest.mark.parametrize("learner", [OneSlack(C=3e3, epsilon=0.01), NSlack(C=3e3, epsilon=0.01)])
def test_learners_close_the_gap_without_repelling_weights(learner) -> None:
    examples = [random_example(seed) for seed in range(4)]
    problem = problem_of()
    fit = learner.fit(problem, examples)
    assert fit.converged
    assert (fit.w[problem.nonnegative] >= 0).all()
    assert -1e-6 <= fit.gap <= 0.01 * 3e3 + 1e-6
    again = learner.fit(problem, examples, warm=fit)
    assert again.objective == pytest.approx(fit.objective, abs=2 * 0.01 * 3e3)


def test_a_relation_that_ties_unlike_nodes_is_given_0() -> None:
    """Without the signs its weights would be below 0: what tells labels apart there repels."""
    y = np.array([0, 1] * 6)
    seen = np.column_stack([np.where(y == 1, 1.0, -1.0) + np.linspace(-1.5, 1.5, 12), np.ones(12)])
    unlike = [[i, i + 1] for i in range(11)]
    alike = [[i, i + 2] for i in range(10)]
    x = NetworkFeatures(seen, Cliques.of_edges(unlike + alike), np.repeat([0, 1], [11, 10]))
    problem = AttractiveProblem(2, 2, relations=2)
    w = OneSlack(C=1e4, epsilon=0.01).fit(problem, [(x, y)]).w
    tie = w[problem.nonnegative].reshape(2, 2)
    assert tie[0] == pytest.approx(0.0, abs=1e-6)
    assert tie[1].sum() > 1.0
    assert problem.predict(x, w).tolist() == y.tolist()


def test_other_tasks_have_no_signed_weights_and_frank_wolfe_refuses_them() -> None:
    from netclust.problems.base import TreeProblem

    assert len(signed_weights(TreeProblem(2))) == 0
    x, y = random_example(0)
    with pytest.raises(InputError, match="one-slack"):
        FrankWolfe().fit(problem_of(), [(x, y)])


def test_what_is_no_example_is_refused() -> None:
    x, y = random_example(0)
    problem = problem_of()
    for bad, word in [
        (lambda: NetworkFeatures(x.nodes, x.cliques, x.relation, -x.features), "0 or more"),
        (lambda: NetworkFeatures(x.nodes * np.nan, x.cliques), "finite"),
        (lambda: NetworkFeatures(x.nodes, x.cliques, x.relation[1:]), "relations"),
        (lambda: problem.gold(x, y + 5, np.zeros(problem.dimension)), "labels for"),
        (lambda: problem.gold(x, y[1:], np.zeros(problem.dimension)), "labels for"),
        (lambda: AttractiveProblem(1, 2), "at least two"),
        (lambda: AttractiveProblem(2, 2, costs=(1.0, 0.0)), "costs"),
        (lambda: AttractiveProblem(2, 7).network(x, np.zeros(16)), "expected"),
        (lambda: AttractiveProblem(2, 3, 1, 2).network(x, np.zeros(10)), "relation"),
    ]:
        with pytest.raises(InputError, match=word):
            bad()
