"""Structural SVMs: what the theorems promise, by enumeration of all outputs; printed numbers; reports and bounds."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from toy_problems import (
    Enumerated,
    Example,
    ThreeItems,
    full_optimum,
    largest,
    random_examples,
    required,
)

from netclust.learners.frank_wolfe import FrankWolfe
from netclust.learners.n_slack import NSlack
from netclust.learners.one_slack import OneSlack
from netclust.learners.working_set import WorkingSet

EPSILON = 0.1
CASES = [(seed, C, rescaling) for seed in range(3) for C in (0.3, 30.0) for rescaling in ("margin", "slack")]
LEARNERS = [OneSlack, NSlack]
PROBLEM = Enumerated(3)
KEEP = 10**6


@pytest.fixture(params=CASES, ids=str)
def case(request):
    seed, C, rescaling = request.param
    return random_examples(seed), C, rescaling


@pytest.mark.parametrize("learner", LEARNERS)
def test_no_constraint_of_the_full_problem_is_violated_by_more_than_epsilon(learner, case) -> None:
    """Theorems 2 and 6."""
    examples, C, rescaling = case
    fit = learner(C=C, epsilon=EPSILON, rescaling=rescaling).fit(PROBLEM, examples)
    worst = np.array([required(x, fit.w, rescaling).max() for x, _ in examples])
    if learner is NSlack:
        assert (worst <= fit.slacks + EPSILON + 1e-9).all()
    assert worst.mean() <= fit.xi + EPSILON + 1e-9
    optimum, _ = full_optimum(examples, C, rescaling)
    assert fit.w @ fit.w / 2 + C * fit.xi <= optimum * (1 + 1e-8)
    assert fit.objective == pytest.approx(fit.w @ fit.w / 2 + C * np.maximum(worst, 0).mean(), rel=1e-9)


@pytest.mark.parametrize("learner", [*LEARNERS, FrankWolfe])
def test_the_bounds_hold_the_optimum_between_them(learner, case) -> None:
    examples, C, rescaling = case
    if learner is FrankWolfe:
        fit = FrankWolfe(C=C, epsilon=EPSILON, max_iterations=20_000).fit(PROBLEM, examples)
        rescaling = "margin"
    else:
        fit = learner(C=C, epsilon=EPSILON, rescaling=rescaling).fit(PROBLEM, examples)
    optimum, w = full_optimum(examples, C, rescaling)
    assert fit.converged
    assert fit.dual <= optimum * (1 + 1e-9)
    assert optimum <= fit.objective * (1 + 1e-9)
    assert fit.gap == pytest.approx(fit.objective - fit.dual)
    assert fit.gap <= EPSILON * C * (1 + 1e-6)
    # the objective is 1-strongly convex: a small gap is a small distance from the only minimiser
    assert np.sum((fit.w - w) ** 2) / 2 <= fit.gap * (1 + 1e-6) + 1e-7
    for report in fit.reports:
        assert report.dual <= optimum * (1 + 1e-9)
        assert report.primal >= optimum * (1 - 1e-9)
        assert report.gap == report.primal - report.dual
    assert [r.iteration for r in fit.reports] == list(range(1, fit.iterations + 1))
    assert all(b.primal <= a.primal for a, b in pairwise(fit.reports))


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_slack_is_not_below_the_training_loss(learner, case) -> None:
    """Theorems 1 and 3."""
    examples, C, rescaling = case
    fit = learner(C=C, epsilon=EPSILON, rescaling=rescaling).fit(PROBLEM, examples)
    risk = np.mean([x.losses[PROBLEM.predict(x, fit.w)] for x, _ in examples])
    assert fit.xi + EPSILON >= risk


def test_no_more_constraints_are_added_than_theorem_4_allows(case) -> None:
    examples, C, rescaling = case
    R, D = largest(examples)
    fit = NSlack(C=C, epsilon=EPSILON, rescaling=rescaling, purge_after=KEEP).fit(PROBLEM, examples)
    power = 1 if rescaling == "margin" else 3
    assert len(fit.planes) <= max(2 * len(examples) * D / EPSILON, 8 * C * D**power * R**2 / EPSILON**2)


def test_no_more_iterations_are_made_than_theorem_7_allows(case) -> None:
    examples, C, rescaling = case
    R, D = largest(examples)
    assert 0 < EPSILON < 4 * R**2 * C
    fit = OneSlack(C=C, epsilon=EPSILON, rescaling=rescaling).fit(PROBLEM, examples)
    margin = math.ceil(math.log2(D / (4 * R**2 * C))) + math.ceil(16 * R**2 * C / EPSILON)
    slack = math.ceil(math.log2(1 / (4 * R**2 * D * C))) + math.ceil(16 * R**2 * D**2 * C / EPSILON)
    assert fit.iterations <= (margin if rescaling == "margin" else slack)


def test_one_slack_and_n_slacks_end_in_the_same_place(case) -> None:
    """Theorem 5."""
    examples, C, rescaling = case
    one = OneSlack(C=C, epsilon=1e-4, rescaling=rescaling).fit(PROBLEM, examples)
    many = NSlack(C=C, epsilon=1e-4, rescaling=rescaling).fit(PROBLEM, examples)
    by_two = NSlack(C=C, epsilon=1e-4, rescaling=rescaling, batch=2).fit(PROBLEM, examples)
    for other in (many, by_two):
        assert other.objective == pytest.approx(one.objective, abs=1e-4 * C * (1 + 1e-6))
        assert np.sum((other.w - one.w) ** 2) <= 8e-4 * C
        assert other.slacks.mean() == pytest.approx(one.xi, abs=np.sqrt(8e-4 * C) * 10 + 1e-3)


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_dual_rises_up_to_the_value_of_no_weights(learner, case) -> None:
    examples, C, rescaling = case
    made = learner(C=C, epsilon=EPSILON, rescaling=rescaling, purge_after=KEEP)
    planes = made.fit(PROBLEM, examples).planes
    working, values = WorkingSet(3, made.caps(len(examples))), [0.0]
    for vector, loss, group in zip(planes.vectors, planes.losses, planes.group, strict=True):
        working.add(vector, loss, int(group))
        working.solve()
        values.append(working.dual)
    most = C * largest(examples)[1]
    assert all(b >= a - 1e-11 * most for a, b in pairwise(values))  # the solver's tolerance
    assert values[-1] <= most


def test_iterations_do_not_grow_with_the_number_of_examples() -> None:
    counts = [
        OneSlack(C=10.0, epsilon=0.1).fit(PROBLEM, random_examples(seed, n=n)).iterations
        for n in (10, 40, 160, 640)
        for seed in range(3)
    ]
    few, many = np.reshape(counts, (4, 3)).mean(axis=1)[[0, -1]]
    assert many <= 1.5 * few


def test_the_clamp_of_the_printed_algorithm_ends_training_early() -> None:
    """E10: the slack of the one-slack program is the mean of H, not of max(0, H)."""
    stretched = []  # of every plane: the slack as printed, and ours
    for seed in range(20):
        examples = random_examples(seed, n=3)
        fit = OneSlack(C=30.0, epsilon=1e-3, purge_after=KEEP).fit(PROBLEM, examples)
        ours = max(0.0, (fit.planes.losses - fit.planes.vectors @ fit.w).max())
        assert fit.xi == pytest.approx(ours)
        assert max(r.violation for r in fit.reports[-1:]) <= fit.xi + 1e-3
        # the outputs of a plane that were worst once and are well separated now: H < 0, clamped to 0 as printed
        outputs = [[PROBLEM.max_violating(x, y, np.zeros(3), 1.0)[0] for x, y in examples]]
        H = np.array([[required(x, fit.w)[h] for (x, _), h in zip(examples, hs, strict=True)] for hs in outputs])
        stretched.append((np.maximum(H, 0).mean(axis=1).max(), max(0.0, H.mean(axis=1).max())))
    printed, right = np.array(stretched).T
    assert (printed >= right - 1e-12).all()
    assert (printed > right + 1e-3).any()


def test_f5_has_its_printed_numbers() -> None:
    x = np.array([[0.9, 1], [0.2, 1], [0.4, 1]])
    y = np.array([0, 0, 1])
    problem = ThreeItems(2)
    assert problem.joint_features(x, y) == pytest.approx([0.1, 0.111111], abs=1e-6)
    losses = [problem.loss(y, np.array(z)) for z in ([0, 0, 0], [0, 1, 0], [0, 1, 1], [0, 1, 2])]
    assert losses == pytest.approx([66.6667, 66.6667, 66.6667, 33.3333], abs=1e-4)
    for learner in LEARNERS:
        problem.asked.clear()
        fit = learner(C=1e5, epsilon=1e-4).fit(problem, [(x, y)])
        assert problem.asked[:3] == [[0, 0, 0], [0, 1, 0], [0, 1, 1]]
        assert fit.w == pytest.approx([1200, -660], rel=1e-5)
        assert fit.xi == pytest.approx(0, abs=1e-4)
        assert fit.objective == pytest.approx(937800, rel=1e-4)
        assert x @ fit.w == pytest.approx([420, -420, -180], rel=1e-4)
        for C, w, xi in ((1000.0, [42.6530, -23.4592], 64.29706), (1.0, [0.0426530, -0.0234592], 66.66430)):
            fit = learner(C=C, epsilon=1e-7).fit(problem, [(x, y)])
            assert fit.w == pytest.approx(w, rel=1e-5)
            assert fit.xi == pytest.approx(xi, abs=1e-5)


def high_loss(psi, m, other=None):
    """The gold partition joins two items; all singletons have loss 100. `other`: features of an output of loss 1."""
    gold = np.array(psi) / m**2
    rows = [gold, np.zeros_like(gold)] + ([gold - other] if other is not None else [])
    losses = np.array([0.0, 100.0, 1.0][: len(rows)])
    return [(Example(np.array(rows), losses, np.ones(len(rows), bool)), 0)]


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_closed_form_of_one_high_loss_is_met(learner) -> None:
    """Section 6.2: beta = C/m^2, xi = 100 - C |psi|^2 / m^4."""
    fit = learner(C=1000.0).fit(Enumerated(2), high_loss([1.0, 2.0], 5))
    assert fit.w == pytest.approx(40 * np.array([1.0, 2.0]))
    assert fit.xi == pytest.approx(92)
    assert fit.objective == pytest.approx(1000 * 92 + 40**2 * 5 / 2)


@pytest.mark.parametrize("learner", LEARNERS)
def test_one_high_loss_does_not_rule_a_slack_rescaled_model(learner) -> None:
    """Margin rescaling asks the high loss for a margin of 100, slack rescaling for 1, as of every other output."""
    examples = high_loss([1.0, 0.0], 10, other=np.array([0.0, 1.0]))
    C = 1e5
    margin = learner(C=C, epsilon=1e-3).fit(Enumerated(2), examples)
    slack = learner(C=C, epsilon=1e-3, rescaling="slack").fit(Enumerated(2), examples)
    assert slack.w == pytest.approx([100, 1], rel=1e-3)
    assert slack.xi == pytest.approx(0, abs=1e-3)
    assert margin.w[0] == pytest.approx(1000, rel=1e-3)
    assert margin.xi == pytest.approx(90, rel=1e-3)
    assert margin.w[1] == pytest.approx(0, abs=1e-3)  # all of C went to the high loss


def test_a_sum_of_slacks_is_n_times_their_mean() -> None:
    examples = random_examples(1)
    total = NSlack(C=2.0, epsilon=1e-4, slack_norm="sum").fit(PROBLEM, examples)
    mean = NSlack(C=2.0 * len(examples), epsilon=1e-4).fit(PROBLEM, examples)
    assert total.w == pytest.approx(mean.w, abs=1e-9)
    assert total.objective == pytest.approx(mean.objective)


def test_a_batch_of_constraints_changes_how_many_programs_are_solved_only() -> None:
    examples = random_examples(2, n=10)
    fits = {batch: NSlack(C=3.0, epsilon=1e-3, batch=batch).fit(PROBLEM, examples) for batch in (None, 1, 4)}
    assert len({round(fit.objective, 2) for fit in fits.values()}) == 1
    assert fits[1].iterations <= fits[None].iterations
    assert math.isinf(fits[1].reports[0].primal)  # w moved within the pass
    assert math.isfinite(fits[1].reports[-1].primal)
