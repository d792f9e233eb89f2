"""The joint program of attractive networks: primal against dual, all labellings, the shared learners."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from netclust.errors import InputError
from netclust.learners.n_slack import NSlack
from netclust.learners.working_set import WorkingSet
from netclust.models.attractive.attractive_networks import Cliques
from netclust.models.attractive.attractive_problem import AttractiveProblem, NetworkFeatures
from netclust.models.attractive.attractive_program import AttractiveMinMax


def networks(count: int, nodes: int = 5, labels: int = 2, largest: int = 3):
    """Small networks of one size, with two relations."""
    found = []
    for seed in range(count):
        rng = np.random.default_rng(100 + seed)
        y = np.sort(rng.integers(0, labels, nodes))
        seen = np.column_stack([np.eye(labels)[y] + rng.normal(0, 0.7, (nodes, labels)), np.ones(nodes)])
        sets = [rng.choice(nodes, rng.integers(2, largest + 1), replace=False).tolist() for _ in range(nodes + 1)]
        found.append((NetworkFeatures(seen, Cliques.of_sets(sets), rng.integers(0, 2, nodes + 1)), y))
    return found


def by_all_labellings(problem: AttractiveProblem, examples, C: float) -> tuple[float, np.ndarray]:
    """The exponential program: every labelling of every example is a plane."""
    planes = WorkingSet(problem.dimension, np.full(len(examples), C), problem.nonnegative)
    for i, (x, y) in enumerate(examples):
        truth = problem.total_features(x, y)
        for h in product(range(problem.labels), repeat=len(y)):
            wrong = float((y != h).sum())
            planes.add(truth - problem.total_features(x, np.array(h)), wrong, i)
    planes.solve()
    return planes.dual, planes.w


@pytest.mark.parametrize("C", [0.03, 1.0])
def test_the_joint_program_equals_the_exponential_one_for_two_labels(C) -> None:
    """Two labels: the relaxation is exact, so both programs have one solution."""
    problem, examples = AttractiveProblem(2, 3, relations=2), networks(3)
    fit = AttractiveMinMax(C).fit(problem, examples)
    value, w = by_all_labellings(problem, examples, C)
    assert fit.dual == pytest.approx(value, rel=1e-6)
    assert fit.primal == pytest.approx(value, rel=1e-4)
    assert 0 <= fit.gap <= 1e-4 * max(1.0, value)
    assert fit.w == pytest.approx(w, abs=1e-3)
    assert (fit.w[problem.nonnegative] >= 0).all()


def test_with_more_labels_the_joint_program_bounds_the_exponential_one() -> None:
    problem, examples = AttractiveProblem(3, 4, relations=2), networks(2, nodes=4, labels=3)
    fit = AttractiveMinMax(0.5).fit(problem, examples)
    value, _ = by_all_labellings(problem, examples, 0.5)
    assert fit.primal >= value - 1e-6
    assert 0 <= fit.gap <= 1e-3


@pytest.mark.parametrize(("labels", "oracle"), [(2, "cut"), (3, "lp")])
def test_the_shared_learner_finds_the_same_solution(labels, oracle) -> None:
    """Their C: percent and means, C / N a slack; so C here is C / (100 * nodes * N), and w a hundredth."""
    problem = AttractiveProblem(labels, labels + 1, relations=2, oracle=oracle)
    examples = networks(3, nodes=5, labels=labels)
    C = 0.5
    fit = AttractiveMinMax(C).fit(problem, examples)
    shared = NSlack(C=C * 100 * 5 * 3, epsilon=1e-3).fit(problem, examples)
    assert shared.objective / 1e4 == pytest.approx(fit.primal, rel=1e-4)
    assert shared.w / 100 == pytest.approx(fit.w, abs=0.02)


def test_what_cannot_be_learned_is_refused() -> None:
    problem, examples = AttractiveProblem(2, 3, relations=2), networks(1)
    for bad, word in [
        (lambda: AttractiveMinMax(0.0).fit(problem, examples), "positive"),
        (lambda: AttractiveMinMax(1.0).fit(problem, []), "no examples"),
        (lambda: AttractiveMinMax(1.0, largest=5).fit(problem, examples), "cutting planes"),
    ]:
        with pytest.raises(InputError, match=word):
            bad()
