"""Chains: kernels against all labellings and plain twins, the MAP program, the problem, and every learner on it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from chain_twins import joint, labellings, scores_of, viterbi
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.learners.frank_wolfe import FrankWolfe
from netclust.learners.n_slack import NSlack
from netclust.learners.one_slack import OneSlack
from netclust.models.chains import chain_kernels as kernels
from netclust.models.chains.chain_inference import (
    best_chain,
    best_chains,
    chain_probabilities,
    chain_score,
    infer_max_marginals,
    infer_violating_chain,
)
from netclust.models.chains.chain_problem import ChainProblem, Packed, mean_chain_length
from netclust.models.chains.crf import Likelihood, train_crf
from netclust.models.multilabel.local_polytope import relaxed_map


@st.composite
def chains(draw: Any, integer: bool = False) -> tuple[Any, Any]:
    L, K = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    made = (rng.integers(-2, 3, (L, K)), rng.integers(-2, 3, (K, K))) if integer else (
        rng.normal(size=(L, K)), rng.normal(size=(K, K)))  # fmt: skip
    return made[0].astype(float), made[1].astype(float)


@given(chains(integer=True))
@settings(max_examples=60, deadline=None)
def test_the_best_labels_are_the_twins_ties_included(chain: Any) -> None:
    node, edge = chain
    labels, value = viterbi(node, edge)
    assert best_chain(node, edge).tolist() == labels
    assert value == scores_of(node, edge, labellings(*node.shape)).max() == chain_score(node, edge, np.array(labels))


@given(chains())
@settings(max_examples=60, deadline=None)
def test_marginals_are_those_of_all_labellings(chain: Any) -> None:
    node, edge = chain
    rows = labellings(*node.shape)
    own = scores_of(node, edge, rows)
    chance = np.exp(own - own.max())
    log_z, chance = np.log(chance.sum()) + own.max(), chance / chance.sum()
    best, found = infer_max_marginals(node, edge), chain_probabilities(node, edge)
    assert found.log_z[0] == pytest.approx(log_z)
    pairs = np.zeros(edge.shape)
    for t in range(len(node)):
        for k in range(len(edge)):
            here = rows[:, t] == k
            assert best[t, k] == pytest.approx(own[here].max())
            assert found.node[t, k] == pytest.approx(chance[here].sum())
        if t:
            np.add.at(pairs, (rows[:, t - 1], rows[:, t]), chance)
    assert found.pairs == pytest.approx(pairs)


def test_sequences_one_after_the_other_are_each_by_itself() -> None:
    rng = np.random.default_rng(1)
    lengths = [3, 0, 1, 5, 0, 2]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    node, edge = rng.normal(size=(11, 3)), rng.normal(size=(3, 3))
    labels, value = best_chains(node, edge, offsets)
    best, found = infer_max_marginals(node, edge, offsets), chain_probabilities(node, edge, offsets)
    pairs = np.zeros((3, 3))
    for i, (a, b) in enumerate(pairwise(offsets.tolist())):
        if a == b:
            assert (value[i], found.log_z[i]) == (0.0, 0.0)
            continue
        alone = chain_probabilities(node[a:b], edge)
        assert labels[a:b].tolist() == best_chain(node[a:b], edge).tolist()
        assert np.array_equal(best[a:b], infer_max_marginals(node[a:b], edge))
        assert value[i] == chain_score(node[a:b], edge, labels[a:b])
        assert found.node[a:b] == pytest.approx(alone.node)
        assert found.log_z[i] == pytest.approx(alone.log_z[0])
        pairs += alone.pairs
    assert found.pairs == pytest.approx(pairs)


def test_long_chains_with_far_scores_do_not_run_over() -> None:
    rng = np.random.default_rng(2)
    node, edge = rng.normal(0, 300, (500, 3)), rng.normal(0, 50, (3, 3))
    found = chain_probabilities(node, edge)
    best = chain_score(node, edge, best_chain(node, edge))
    assert np.isfinite(found.node).all()
    assert found.node.sum(axis=1) == pytest.approx(np.ones(500))
    assert best <= found.log_z[0] <= best + 500 * np.log(3)
    with pytest.raises(InputError, match="lie 5000 apart"):
        chain_probabilities(node, np.array([[0.0, 5000.0, 0], [0, 0, 0], [0, 0, 0]]))


@given(chains(), st.integers(0, 1000), st.floats(0, 5))
@settings(max_examples=40, deadline=None)
def test_the_violating_labels_have_the_highest_score_and_loss(chain: Any, seed: int, price: float) -> None:
    node, edge = chain
    y = np.random.default_rng(seed).integers(0, len(edge), len(node))
    h = infer_violating_chain(node, edge, y, np.full(len(y), price))
    rows = labellings(*node.shape)
    most = (scores_of(node, edge, rows) + price * (rows != y).sum(axis=1)).max()
    assert chain_score(node, edge, h) + price * (h != y).sum() == pytest.approx(most)


@given(chains(), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_the_best_score_by_errors_is_that_of_all_labellings(chain: Any, seed: int) -> None:
    node, edge = chain
    y = np.random.default_rng(seed).integers(0, len(edge), len(node))
    found = np.empty(len(y) + 1)
    kernels.best_by_errors(node, edge, y, found)
    rows = labellings(*node.shape)
    own, errors = scores_of(node, edge, rows), (rows != y).sum(axis=1)
    for e in range(len(y) + 1):
        assert found[e] == (pytest.approx(own[errors == e].max()) if (errors == e).any() else -np.inf)


def test_the_map_program_is_integral_on_chains() -> None:
    rng = np.random.default_rng(3)
    for _ in range(15):
        node, edge = rng.normal(size=(5, 3)), rng.normal(size=(3, 3))
        found = relaxed_map(node, np.arange(4), np.arange(1, 5), np.broadcast_to(edge, (4, 3, 3)))
        assert found.integral
        assert found.node.argmax(axis=1).tolist() == best_chain(node, edge).tolist()
        assert found.value == pytest.approx(chain_score(node, edge, best_chain(node, edge)))


def test_the_map_program_of_the_four_cycle_is_fractional() -> None:
    # three edges want to agree, one to disagree: all half is better than any labelling (spec 2.1)
    tail, head = np.arange(4), np.array([1, 2, 3, 0])
    edge = np.zeros((4, 2, 2))
    edge[:3] = np.eye(2)
    edge[3] = 1 - np.eye(2)
    found = relaxed_map(np.zeros((4, 2)), tail, head, edge)
    best = max(sum(edge[e, row[tail[e]], row[head[e]]] for e in range(4)) for row in labellings(4, 2))
    assert (found.value, best, found.integral) == (pytest.approx(4.0), 3.0, False)
    assert found.node == pytest.approx(np.full((4, 2), 0.5))
    with pytest.raises(InputError, match="do not fit"):
        relaxed_map(np.zeros((4, 2)), tail, head, edge[:3])


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


@pytest.mark.parametrize("transitions", [True, False])
def test_the_verbs_of_the_problem(transitions: bool) -> None:
    rng = np.random.default_rng(4)
    problem = ChainProblem(3, 4, transitions=transitions)
    x, y = examples(1)[0]
    rows = labellings(4, 3)
    phi = np.array([joint(x, row, 3) for row in rows])[:, : problem.dimension]
    w = rng.normal(size=problem.dimension)
    assert problem.joint_features(x, rows[5]) == pytest.approx(phi[5])
    assert problem.difference(x, rows[5], rows[70]) == pytest.approx(phi[5] - phi[70])
    assert problem.predict(x, w).tolist() == rows[(phi @ w).argmax()].tolist()
    loss = np.array([problem.loss(y, row) for row in rows])
    assert sorted(set(loss.tolist())) == [0, 25, 50, 75, 100]
    h, own = problem.max_violating(x, y, w, 0.05)
    assert w @ problem.joint_features(x, h) + 0.05 * own == pytest.approx((phi @ w + 0.05 * loss).max())
    assert problem.gold(x, y, w) is y
    assert ChainProblem(3, 4, places=8.0).loss(y, (y + 1) % 3) == 50.0
    assert mean_chain_length([(x, y), (x[:2], y[:2])]) == 3.0
    with pytest.raises(InputError, match="expected"):
        problem.predict(x[:, :2], w)
    with pytest.raises(InputError, match="2 labels"):
        ChainProblem(1, 4)


def test_all_learners_reach_one_objective() -> None:
    problem, given_ = ChainProblem(3, 4), examples()
    found = [
        OneSlack(C=0.5, epsilon=0.001).fit(problem, given_),
        NSlack(C=0.5, epsilon=0.001).fit(problem, given_),
        FrankWolfe(C=0.5, epsilon=0.05, max_iterations=3000).fit(problem, given_),
    ]
    assert all(fit.converged for fit in found)
    assert [fit.objective for fit in found] == pytest.approx([found[0].objective] * 3, abs=0.05)


@pytest.mark.parametrize("transitions", [True, False])
def test_the_gradient_of_the_likelihood(transitions: bool) -> None:
    rng = np.random.default_rng(5)
    problem = ChainProblem(3, 4, transitions=transitions)
    objective = Likelihood(problem, [*examples(3), *examples(2, 1, seed=1)], C=2.0)
    w = rng.normal(size=problem.dimension)
    value, slope = objective(w)
    for k in range(problem.dimension):
        step = np.zeros(len(w))
        step[k] = 1e-5
        assert (objective(w + step)[0] - objective(w - step)[0]) / 2e-5 == pytest.approx(slope[k], abs=1e-4)
    assert value > 0


def test_the_likelihood_is_that_of_all_labellings_and_training_reaches_its_top() -> None:
    problem, given_ = ChainProblem(3, 4), examples()
    fit = train_crf(problem, given_, C=5.0, tolerance=1e-12)
    rows, total = labellings(4, 3), 0.0
    for x, y in given_:
        own = np.array([fit.w @ joint(x, row, 3) for row in rows])
        total += np.log(np.exp(own).sum()) - fit.w @ joint(x, y, 3)
    assert fit.objective == pytest.approx(fit.w @ fit.w / 2 + 5.0 * total / len(given_))
    assert np.abs(Likelihood(problem, given_, 5.0)(fit.w)[1]).max() < 1e-3
    with pytest.raises(InputError, match="above 0"):
        train_crf(problem, given_, C=0.0)
    assert np.isinf(Likelihood(problem, given_, 1.0)(1e4 * np.arange(problem.dimension))[0])


def test_scores_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="do not fit"):
        best_chain(np.zeros((3, 2)), np.zeros((3, 3)))
    with pytest.raises(InputError, match="finite"):
        best_chain(np.full((3, 2), np.nan), np.zeros((2, 2)))
    for wrong in ([0, 2], [1, 3], [0, 2, 1, 3]):
        with pytest.raises(InputError, match="offsets"):
            best_chain(np.zeros((3, 2)), np.zeros((2, 2)), np.array(wrong))


@pytest.mark.parametrize("transitions", [True, False])
def test_packed_sequences_are_the_same_program(transitions: bool) -> None:
    given_ = [*examples(4), *((x[:1], y[:1]) for x, y in examples(3, seed=9))]
    problem = ChainProblem(3, 4, transitions=transitions, places=mean_chain_length(given_))
    packs = []
    for some in (given_[:3], given_[3:]):
        offsets = np.concatenate([[0], np.cumsum([len(y) for _, y in some])])
        x, y = (np.concatenate([one[k] for one in some]) for k in range(2))
        packs.append((Packed(x, offsets), y))
    w = np.random.default_rng(0).normal(size=problem.dimension)
    for (x, y), some in zip(packs, (given_[:3], given_[3:]), strict=True):
        parts = [problem.max_violating(a, b, w, 0.1) for a, b in some]
        h, loss = problem.max_violating(x, y, w, 0.1)
        assert h.tolist() == np.concatenate([own for own, _ in parts]).tolist()
        assert loss == pytest.approx(sum(own for _, own in parts))
        assert problem.joint_features(x, h) == pytest.approx(
            sum(problem.joint_features(a, own) for (a, _), (own, _) in zip(some, parts, strict=True))
        )
        assert problem.predict(x, w).tolist() == np.concatenate([problem.predict(a, w) for a, _ in some]).tolist()
    # the mean is over packs, so C is by their number
    one = OneSlack(C=0.7, epsilon=1e-3).fit(problem, given_)
    two = OneSlack(C=0.7 * 2 / 7, epsilon=1e-3 * 7 / 2).fit(problem, packs)
    assert two.objective == pytest.approx(one.objective, abs=2e-3)
