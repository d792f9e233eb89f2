"""Supervised correlation clustering: the task's verbs, and what training with each oracle promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.learners.n_slack import NSlack
from netclust.learners.one_slack import OneSlack
from netclust.learners.perceptron import Lsp
from netclust.losses.partition_loss import mitre_loss, pairwise_loss, with_pairwise_loss
from netclust.models.clustering.correlation import CorrelationProblem, cluster_by, correlation_scores
from netclust.models.clustering.partitions.enumeration import best_partition
from netclust.structures.pairs import StoredPairs, pair_count, same_cluster
from netclust.structures.partition import PairScores, RelaxedPartition


def drawn_sets(sets: int, items: int, seed: int, noise: float = 1.0) -> list[tuple[StoredPairs, np.ndarray]]:
    """Sets with three features a pair: a noisy sign of togetherness, nonsense, and a constant."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(sets):
        y = rng.integers(0, 3, items)
        sign = np.where(same_cluster(y, None), 1.0, -1.0)
        psi = np.column_stack([sign + rng.normal(0, noise, len(sign)), rng.normal(0, 1, len(sign)), np.ones(len(sign))])
        found.append((StoredPairs(items, psi), y))
    return found


def test_the_score_of_a_partition_is_linear_in_its_joint_features() -> None:
    ((x, y),) = drawn_sets(1, 6, 0)
    problem, w = CorrelationProblem(3), np.array([0.5, -1.0, 0.2])
    within = correlation_scores(x, w, 1 / 36).within(y)
    assert w @ problem.joint_features(x, y) == pytest.approx(within)


@given(seed=st.integers(0, 10_000), items=st.integers(1, 7))
@settings(max_examples=60)
def test_no_oracle_reports_more_than_what_its_output_is_worth(seed: int, items: int) -> None:
    ((x, y),) = drawn_sets(1, items, seed)
    w = np.random.default_rng(seed).normal(0, 30, 3)
    scores = correlation_scores(x, w, 1 / items**2)
    constant = 100.0 * same_cluster(y, None).sum() / max(pair_count(items), 1)
    best = best_partition(with_pairwise_loss(scores, y))[1] + constant
    worth = {}
    for oracle in ("greedy", "local", "exact", "lp"):
        h, loss = CorrelationProblem(3, oracle).max_violating(x, y, w, 1.0)
        worth[oracle] = float(w @ CorrelationProblem(3).joint_features(x, h)) + loss
    assert worth["greedy"] <= best + 1e-6
    assert worth["local"] <= best + 1e-6
    assert worth["exact"] == pytest.approx(best, abs=1e-5)
    assert worth["lp"] >= best - 1e-5


@pytest.mark.parametrize("oracle", ["greedy", "local"])
def test_the_mitre_loss_of_the_max_violating_partition_is_its_own(oracle: str) -> None:
    for seed in range(20):
        ((x, y),) = drawn_sets(1, 7, seed)
        w = np.random.default_rng(seed).normal(0, 30, 3)
        problem = CorrelationProblem(3, oracle, "mitre")  # type: ignore[arg-type]
        for h, loss in (problem.max_violating(x, y, w, 1.0), problem.max_violating_slack(x, y, w)):
            assert not isinstance(h, RelaxedPartition)
            assert loss == mitre_loss(y, h)


def test_a_search_without_the_loss_still_carries_it_in_the_constraint() -> None:
    ((x, y),) = drawn_sets(1, 6, 3)
    w = np.array([1.0, 0.0, -0.2])
    h, loss = CorrelationProblem(3, loss_in_oracle=False).max_violating(x, y, w, 1.0)
    assert h.tolist() == CorrelationProblem(3).predict(x, w).tolist()
    assert loss == pairwise_loss(y, h)


def test_greedy_trained_objectives_are_at_most_exact_ones_and_these_at_most_those_of_the_relaxation() -> None:
    for seed in range(4):
        examples = drawn_sets(4, 6, seed)
        found = {
            oracle: OneSlack(C=300.0, epsilon=1e-3).fit(CorrelationProblem(3, oracle), examples)  # type: ignore[arg-type]
            for oracle in ("greedy", "local", "exact", "lp", "sdp")
        }
        slack = 300.0 * 1e-3 + 1e-6
        exact = found["exact"].objective
        assert all(fit.converged for fit in found.values())
        assert found["greedy"].objective <= exact + slack
        assert found["local"].objective <= exact + slack
        assert exact <= found["lp"].objective + slack
        assert exact <= found["sdp"].objective + slack


def test_slack_bounds_the_training_loss_with_an_exact_oracle_and_with_relaxed_prediction() -> None:
    examples = drawn_sets(5, 7, 1)
    for oracle in ("exact", "lp"):
        problem = CorrelationProblem(3, oracle)  # type: ignore[arg-type]
        fit = OneSlack(C=500.0, epsilon=0.01).fit(problem, examples)
        relaxed = [problem.loss(y, problem.max_violating(x, y, fit.w, 0.0)[0]) for x, y in examples]
        assert np.mean(relaxed) <= fit.xi + 0.01 + 1e-6


def test_one_and_n_slack_find_the_same_weights() -> None:
    examples = drawn_sets(4, 6, 2)
    problem = CorrelationProblem(3, "exact")
    one = OneSlack(C=200.0, epsilon=1e-4).fit(problem, examples)
    many = NSlack(C=200.0, epsilon=1e-4).fit(problem, examples)
    assert one.objective == pytest.approx(many.objective, rel=1e-3)
    np.testing.assert_allclose(one.w, many.w, rtol=0.02, atol=0.02 * np.abs(one.w).max())


def test_iterations_do_not_grow_with_the_number_of_sets() -> None:
    iterations = [
        OneSlack(C=1000.0, epsilon=0.1).fit(CorrelationProblem(3), drawn_sets(n, 12, 5)).iterations for n in (4, 16, 64)
    ]
    assert iterations[2] <= 2 * iterations[0] + 5


def test_weights_of_greedy_and_relaxed_training_point_the_same_way() -> None:
    examples = drawn_sets(6, 10, 4)
    greedy, relaxed = (
        OneSlack(C=1000.0, epsilon=0.01).fit(CorrelationProblem(3, oracle), examples).w  # type: ignore[arg-type]
        for oracle in ("greedy", "lp")
    )
    assert greedy @ relaxed / np.linalg.norm(greedy) / np.linalg.norm(relaxed) > 0.95


def test_the_perceptron_trains_it_through_the_same_verbs() -> None:
    examples = drawn_sets(5, 8, 6, noise=0.1)
    problem = CorrelationProblem(3)
    w = Lsp().fit(problem, examples, epochs=20).averaged
    assert all(pairwise_loss(y, problem.predict(x, w)) == 0 for x, y in examples)


@pytest.mark.parametrize("predictor", ["greedy", "local", "lp", "sdp", "exact", "single-link"])
def test_every_predictor_recovers_clusters_that_are_clear(predictor: str) -> None:
    y = np.array([0, 1, 0, 2, 1, 2, 0])
    scores = PairScores(7, np.where(same_cluster(y, None), 1.0, -1.0))
    assert cluster_by(scores, predictor).tolist() == y.tolist()  # type: ignore[arg-type]


@pytest.mark.parametrize("predictor", ["greedy", "local", "lp", "sdp", "exact", "single-link"])
@pytest.mark.parametrize("items", [1, 2])
def test_sets_of_one_and_two_items_are_clustered(predictor: str, items: int) -> None:
    scores = PairScores(items, np.full(pair_count(items), 2.0))
    assert cluster_by(scores, predictor).tolist() == [0] * items  # type: ignore[arg-type]


def test_settings_that_cannot_work_are_refused_before_training() -> None:
    with pytest.raises(InputError, match="does not split over pairs"):
        CorrelationProblem(3, "lp", "mitre")
    with pytest.raises(InputError, match="oracle 'simplex' is not known"):
        CorrelationProblem(3, "simplex")  # type: ignore[arg-type]
    ((x, y),) = drawn_sets(1, 4, 0)
    with pytest.raises(InputError, match="slack rescaling"):
        CorrelationProblem(3, "lp").max_violating_slack(x, y, np.zeros(3))
