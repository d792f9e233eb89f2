"""Structural SVMs with oracles that search too little, too much, or come within rho of the best; latent structures."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from toy_problems import Enumerated, full_optimum, largest, latent_trees, random_examples, required

from netclust.errors import InputError
from netclust.learners.frank_wolfe import FrankWolfe
from netclust.learners.latent import LatentSvm
from netclust.learners.n_slack import NSlack
from netclust.learners.one_slack import OneSlack
from netclust.problems.base import TreeProblem

RHO = 0.8
LEARNERS = [OneSlack, NSlack]


def lower(fit, C):
    """|w|^2/2 + C xi: the objective over the working set."""
    return fit.w @ fit.w / 2 + C * fit.xi


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("seed", range(5))
def test_an_oracle_that_searches_more_does_not_lower_the_objective(learner, seed) -> None:
    """Under-generating <= exact <= over-generating (constraint strengthening)."""
    examples, C = random_examples(seed, relaxed=4), 5.0
    problem = Enumerated(3)
    values = [
        lower(learner(C=C, epsilon=1e-5).fit(problem.searching(search), examples), C)
        for search in ("under", "exact", "over")
    ]
    assert values[0] <= values[1] + 1e-4 * C
    assert values[1] <= values[2] + 1e-4 * C
    assert values[1] == pytest.approx(full_optimum(examples, C)[0], abs=1e-4 * C)
    assert values[2] == pytest.approx(full_optimum(examples, C, real_only=False)[0], abs=1e-4 * C)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("seed", range(5))
def test_an_over_generating_oracle_leaves_no_real_output_violated(learner, seed) -> None:
    """Theorems 5 and 6 of 2008 (12 and 13 of 2009)."""
    examples, epsilon = random_examples(seed, relaxed=4), 0.05
    problem = Enumerated(3, search="over")
    fit = learner(C=5.0, epsilon=epsilon).fit(problem, examples)
    assert np.mean([required(x, fit.w).max() for x, _ in examples]) <= fit.xi + epsilon + 1e-9
    risk = np.mean([x.losses[problem.predict(x, fit.w)] for x, _ in examples])
    assert fit.xi + epsilon >= risk


@pytest.mark.parametrize("search", ["under", "over"])
@pytest.mark.parametrize("seed", range(3))
def test_an_inexact_oracle_needs_no_more_constraints_than_its_bound(search, seed) -> None:
    """Theorems 1 and 4 of 2008, with R the longest feature vector."""
    examples, C, epsilon = random_examples(seed, relaxed=4), 5.0, 0.1
    fit = NSlack(C=C, epsilon=epsilon, purge_after=10**6).fit(Enumerated(3, search=search), examples)
    R = max(np.linalg.norm(x.features, axis=1).max() for x, _ in examples)
    D = largest(examples)[1]
    assert fit.converged
    assert len(fit.planes) <= (C * D**2 * R**2 + len(examples) * D) / epsilon**2


def test_an_under_generating_oracle_puts_primal_below_dual() -> None:
    """Not an upper bound of the full optimum then, but never below what the planes prove."""
    below = 0
    for seed in range(5):
        examples = random_examples(seed, K=20)
        fit = OneSlack(C=5.0, epsilon=1e-3).fit(Enumerated(3, search="under"), examples)
        assert all(report.gap >= -1e-9 * report.primal for report in fit.reports)
        below += fit.objective < full_optimum(examples, 5.0)[0] - 1e-3
    assert below


def test_the_slack_of_a_rho_oracle_is_repaired_by_lemma_1() -> None:
    oracle = Enumerated(3, rho=RHO)
    rng = np.random.default_rng(0)
    weak = 0
    for x, y in random_examples(7, n=300):
        w = rng.normal(size=3) * 10 ** rng.uniform(-1, 2)
        h, loss = oracle.max_violating(x, y, w, 1.0)
        value = x.features[h] @ w + loss
        worst = required(x, w).max()
        if (x.features @ w + x.losses).max() <= 0:
            continue  # rho of a negative optimum means nothing
        found = value - x.features[0] @ w
        assert found + (1 - RHO) / RHO * value >= worst - 1e-9
        weak += found < worst - 1e-9
    assert weak > 50  # the oracle is really worse than exact


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_within_the_interval_of_a_rho_oracle(seed) -> None:
    """Theorem 2 of 2008 (9 of 2009): one example."""
    examples, C = random_examples(seed, n=1, K=30), 20.0
    oracle = Enumerated(3, rho=RHO)
    fit = OneSlack(C=C, epsilon=1e-6).fit(oracle, examples)
    assert fit.converged
    (x, y), optimum = examples[0], full_optimum(examples, C)[0]
    h, loss = oracle.max_violating(x, y, fit.w, 1.0)
    upper = fit.w @ fit.w / 2 + C * ((x.features[h] @ fit.w + loss) / RHO - x.features[0] @ fit.w)
    assert lower(fit, C) <= optimum * (1 + 1e-8)
    assert optimum <= upper * (1 + 1e-8)


def test_the_risk_of_a_rho_prediction_keeps_theorem_3() -> None:
    """Theorem 3 of 2008 (10 of 2009): prediction is the most costly output within rho of the best score."""
    rng = np.random.default_rng(1)
    checked = 0
    for x, _ in random_examples(8, n=300):
        w = rng.normal(size=3) * 10 ** rng.uniform(-1, 2)
        scores = x.features @ w
        if scores.max() <= 0:
            continue
        predicted = np.where(scores >= RHO * scores.max(), x.losses, -1).max()
        xi = max(0.0, required(x, w).max())
        assert predicted <= (1 - RHO) * scores[0] + xi + 1e-9
        checked += 1
    assert checked > 200


@pytest.mark.parametrize("seed", range(3))
def test_frank_wolfe_ends_where_cutting_planes_do(seed) -> None:
    """Trainer B of the Taskar recipe, exact and over-generating: primal = dual = the cutting planes' objective."""
    examples, C, epsilon = random_examples(seed, relaxed=4), 2.0, 0.02
    for search in ("exact", "over"):
        problem = Enumerated(3, search=search)
        steps = FrankWolfe(C=C, epsilon=epsilon, max_iterations=5000).fit(problem, examples)
        planes = NSlack(C=C, epsilon=1e-5).fit(problem, examples)
        assert steps.converged
        assert steps.gap <= epsilon * C
        assert steps.dual <= planes.objective + 1e-9
        assert planes.dual <= steps.objective + 1e-9
        assert all(b.dual >= a.dual - 1e-9 for a, b in pairwise(steps.reports))
        # what it leaves is one valid plane: cutting planes that go on from it find the same
        after = OneSlack(C=C, epsilon=1e-4).fit(problem, examples, warm=steps)
        assert after.objective == pytest.approx(planes.objective, abs=2e-4 * C)


def latent_objective(problem, examples, w, C):
    hinge = []
    for x, y in examples:
        h, loss = problem.max_violating(x, y, w, 1.0)
        best = problem.joint_features(x, problem.gold(x, y, w))
        hinge.append(loss + (problem.joint_features(x, h) - best) @ w)
    return w @ w / 2 + C * np.mean(hinge)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("seed", range(4))
def test_rounds_lower_the_objective_of_a_latent_svm(learner, seed) -> None:
    examples, problem, C = latent_trees(seed), TreeProblem(4), 5.0
    fit = LatentSvm(learner(C=C, epsilon=0.01), tolerance=0.0).fit(problem, examples)
    assert fit.converged
    assert len(fit.rounds) >= 2
    assert all(after < before for before, after in pairwise(fit.rounds))
    assert fit.objective == fit.rounds[-1]
    assert fit.objective == pytest.approx(latent_objective(problem, examples, fit.w, C), rel=1e-9)
    assert [r.round for r in fit.reports] == sorted(r.round for r in fit.reports)
    shorter = LatentSvm(learner(C=C, epsilon=0.01), max_rounds=1).fit(problem, examples)
    assert shorter.objective == pytest.approx(fit.rounds[0])
    assert not shorter.converged


def test_planes_of_a_round_hold_in_the_next() -> None:
    """Carried-over planes hold for the new gold structures: the fit is that of a start without them."""
    examples, problem = latent_trees(3), TreeProblem(4)
    fit = LatentSvm(OneSlack(C=5.0, epsilon=1e-4), tolerance=0.0).fit(problem, examples)
    again = LatentSvm(OneSlack(C=5.0, epsilon=1e-4), tolerance=0.0).fit(problem, examples, warm=fit)
    assert again.objective <= fit.objective + 1e-3
    gold = np.mean([problem.joint_features(x, problem.gold(x, y, fit.w)) for x, y in examples], axis=0)
    assert again.planes.gold[0] == pytest.approx(gold)


def test_latent_structures_with_slack_rescaling_are_refused() -> None:
    with pytest.raises(InputError, match="margin rescaling"):
        LatentSvm(OneSlack(rescaling="slack"))
