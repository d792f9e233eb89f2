"""Structural SVMs train the graphs: K forests and E links on pair features, and the network task."""

from __future__ import annotations

import numpy as np
import pytest

from netclust.learners.latent import LatentSvm
from netclust.learners.one_slack import OneSlack
from netclust.learners.perceptron import Lsp
from netclust.models.network.network_problem import NetworkProblem, cut_network_slices
from netclust.problems.forest_problem import ForestProblem, LinkProblem, forest_clusters
from netclust.records.batch import Batch
from netclust.scoring.similarity import WeightLayout
from netclust.structures.pairs import ComputedPairs
from netclust.structures.partition import canonical_partition


def sets(seed, count=4, n=12, noise=0.3):
    """Groups on a line, and a feature that is noise."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        y = rng.integers(0, 4, n)
        X = np.column_stack([y * 2.0 + rng.normal(0, noise, n) + rng.uniform(-9, 9), rng.normal(size=n)])
        yield ComputedPairs(X), y


def objective(problem, examples, w, C):
    """|w|^2/2 + C mean_i [max_h (w.Phi + Delta) - max over gold h of w.Phi]."""
    total = 0.0
    for x, y in examples:
        h, loss = problem.max_violating(x, y, w, 1.0)
        total += w @ problem.joint_features(x, h) + loss - w @ problem.joint_features(x, problem.gold(x, y, w))
    return w @ w / 2 + C * total / len(examples)


@pytest.mark.parametrize("problem", [ForestProblem(3, r=0.5), LinkProblem(3)])
def test_the_latent_svm_leaves_no_training_error_on_separable_sets(problem):
    examples = list(sets(0, noise=0.1))
    fit = LatentSvm(OneSlack(C=100.0, epsilon=0.01), tolerance=0.001).fit(problem, examples)
    assert fit.converged
    for x, y in examples:
        assert forest_clusters(problem.predict(x, fit.w)).tolist() == canonical_partition(y).tolist()


@pytest.mark.parametrize("problem", [ForestProblem(3, r=0.5), LinkProblem(3)])
def test_rounds_of_the_latent_svm_never_raise_the_objective_and_end_below_the_perceptron(problem):
    examples, C = list(sets(1, noise=0.8)), 1.0
    fit = LatentSvm(OneSlack(C=C, epsilon=0.001), tolerance=0.0).fit(problem, examples)
    assert all(after <= before + 1e-9 for before, after in zip(fit.rounds, fit.rounds[1:], strict=False))
    assert fit.objective == pytest.approx(objective(problem, examples, fit.w, C), abs=0.01)
    online = Lsp().fit(problem, examples, epochs=20)
    assert fit.objective <= min(objective(problem, examples, w, C) for w in (online.last, online.averaged)) + 1e-9
    assert fit.objective < objective(problem, examples, np.zeros(3), C)


@pytest.mark.parametrize("length", [1, 10])
def test_a_structural_svm_trains_the_network_task(length):
    rng = np.random.default_rng(2)
    label = rng.integers(0, 3, 60)
    num = (label[:, None] / 2 + rng.normal(0, 0.05, (60, 2))).astype(np.float32)
    batch = Batch(num=num, code=(label % 2)[:, None].astype(np.uint16), label=label.astype(np.int32))
    problem = NetworkProblem(WeightLayout(2, (2,), 1), window=15)
    examples = cut_network_slices(batch, length=length)
    fit = OneSlack(C=1000.0, epsilon=0.01).fit(problem, examples)
    assert fit.converged
    latent = LatentSvm(OneSlack(C=1000.0, epsilon=0.01), tolerance=0.001).fit(problem, examples, warm=fit)
    assert sum(problem.loss(y, problem.predict(x, latent.w)) for x, y in examples) == 0
    assert latent.objective <= objective(problem, examples, fit.w, 1000.0) + 1e-6
