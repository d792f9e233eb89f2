"""Training runs: stopped and resumed, warm, purged, by threads; and what is refused."""

from __future__ import annotations

import re
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from toy_problems import Enumerated, Example, latent_trees, random_examples

from netclust.errors import InputError, ModelError
from netclust.learners.frank_wolfe import FrankWolfe
from netclust.learners.latent import LatentSvm
from netclust.learners.n_slack import NSlack
from netclust.learners.one_slack import OneSlack
from netclust.problems.base import TreeProblem

ROOT = Path(__file__).parents[3]
PROBLEM = Enumerated(3)
EXAMPLES = random_examples(5, n=8, K=20)
SETTINGS = {"C": 20.0, "epsilon": 1e-3, "purge_after": 3}
RUNS = {
    "one slack": (OneSlack(**SETTINGS), PROBLEM, EXAMPLES),
    "one slack, slack rescaling": (OneSlack(**SETTINGS, rescaling="slack"), PROBLEM, EXAMPLES),
    "n slacks": (NSlack(**SETTINGS), PROBLEM, EXAMPLES),
    "n slacks in batches": (NSlack(**SETTINGS, batch=3), PROBLEM, EXAMPLES),
    "latent": (LatentSvm(OneSlack(**SETTINGS), tolerance=0.0), TreeProblem(4), latent_trees(3)),
    "latent, n slacks": (LatentSvm(NSlack(**SETTINGS), tolerance=0.0), TreeProblem(4), latent_trees(3)),
    "Frank-Wolfe": (FrankWolfe(C=1.0, epsilon=0.003), PROBLEM, EXAMPLES),
}


def without_seconds(report):
    return astuple(replace(report, oracle_seconds=0.0, qp_seconds=0.0))


def assert_same_bits(one, other) -> None:
    assert (one.w == other.w).all()
    assert (one.planes.vectors == other.planes.vectors).all()
    assert (one.objective, one.dual, one.xi) == (other.objective, other.dual, other.xi)
    assert (one.iterations, one.rounds, one.converged) == (other.iterations, other.rounds, other.converged)
    assert [without_seconds(r) for r in one.reports] == [without_seconds(r) for r in other.reports]


class InterruptedTrainingError(Exception):
    pass


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_was_stopped_ends_the_same(name, tmp_path) -> None:
    learner, problem, examples = RUNS[name]
    whole = learner.fit(problem, examples)
    assert whole.converged
    total = len(whole.reports)
    for at in sorted({1, total // 3, total // 2, total - 1} - {0}):
        file = tmp_path / f"{at}.safetensors"
        seen = []
        part = learner.fit(
            problem, examples, checkpoint=file, on_iteration=lambda r, s=seen, at=at: s.append(r) or len(s) == at
        )
        assert not part.converged
        assert len(part.reports) == at
        assert_same_bits(learner.fit(problem, examples, checkpoint=file), whole)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_crashed_ends_the_same(name, tmp_path) -> None:
    learner, problem, examples = RUNS[name]
    whole = learner.fit(problem, examples)
    file, seen = tmp_path / "run.safetensors", []

    def crash(report) -> None:
        seen.append(report)
        if len(seen) == len(whole.reports) - 1:
            raise InterruptedTrainingError

    with pytest.raises(InterruptedTrainingError):
        learner.fit(problem, examples, checkpoint=file, checkpoint_every=2, on_iteration=crash)
    assert file.exists()
    again = []
    fit = learner.fit(problem, examples, checkpoint=file, checkpoint_every=2, on_iteration=lambda r: again.append(r))
    assert_same_bits(fit, whole)
    assert len(again) < len(whole.reports)
    assert [p.name for p in tmp_path.iterdir()] == [file.name]


def stopped_at_two(learner, file, problem=PROBLEM, examples=EXAMPLES):
    learner.fit(problem, examples, checkpoint=file, on_iteration=lambda r: r.iteration == 2)
    assert file.exists()


def test_a_checkpoint_of_another_training_is_refused(tmp_path) -> None:
    file = tmp_path / "run.safetensors"
    one = OneSlack(C=20.0, epsilon=1e-3)
    stopped_at_two(one, file)
    before = file.read_bytes()
    for other, problem, examples, says in [
        (replace(one, C=2.0), PROBLEM, EXAMPLES, r"C is 20\.0 there and 2\.0 here"),
        (replace(one, rescaling="slack"), PROBLEM, EXAMPLES, "rescaling is margin there and slack here"),
        (NSlack(C=20.0, epsilon=1e-3), PROBLEM, EXAMPLES, "learner is OneSlack there and NSlack here"),
        (one, PROBLEM, EXAMPLES[:-1], "examples is 8 there and 7 here"),
        (one, Enumerated(4), random_examples(5, n=8, D=4), "dimension is 3 there and 4 here"),
        (one, PROBLEM, random_examples(6, n=8), "on other examples"),
    ]:
        with pytest.raises(InputError, match=says):
            other.fit(problem, examples, checkpoint=file)
    assert file.read_bytes() == before
    longer = replace(one, max_iterations=5000)  # more time is not another training
    assert longer.fit(PROBLEM, EXAMPLES, checkpoint=file).converged


def test_damaged_checkpoints_are_refused(tmp_path) -> None:
    file = tmp_path / "run.safetensors"
    stopped_at_two(OneSlack(C=20.0), file)
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(ModelError, match=r"run\.safetensors"):
        OneSlack(C=20.0).fit(PROBLEM, EXAMPLES, checkpoint=file)


@pytest.mark.parametrize("learner", [OneSlack, NSlack])
def test_forgetting_idle_planes_keeps_the_result(learner) -> None:
    fits = [learner(C=50.0, epsilon=1e-4, purge_after=after).fit(PROBLEM, EXAMPLES) for after in (10**6, 2)]
    assert all(fit.converged for fit in fits)
    assert len(fits[1].planes) < len(fits[0].planes)
    assert fits[1].objective == pytest.approx(fits[0].objective, abs=1e-4 * 50)


@pytest.mark.parametrize("learner", [OneSlack, NSlack])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_a_warm_start_from_another_c_needs_fewer_oracle_calls(learner, rescaling) -> None:
    epsilon, C = 1e-3, 30.0
    made = learner(C=C, epsilon=epsilon, rescaling=rescaling)
    earlier = replace(made, C=10.0).fit(PROBLEM, EXAMPLES)
    cold, warm = Enumerated(3), Enumerated(3)
    from_zero = made.fit(cold, EXAMPLES)
    from_fit = made.fit(warm, EXAMPLES, warm=earlier)
    assert from_fit.converged
    assert from_fit.objective == pytest.approx(from_zero.objective, abs=epsilon * C)
    assert len(warm.calls) < len(cold.calls)
    again = Enumerated(3)
    made.fit(again, EXAMPLES, warm=from_fit)
    assert len(again.calls) == len(EXAMPLES)  # one look finds nothing to do


def test_a_warm_start_of_another_kind_ends_at_the_optimum() -> None:
    """Its w is where the first constraints are looked for, and no reason to stop there."""
    for learner, other in ((OneSlack, NSlack), (NSlack, OneSlack)):
        far = other(C=1000.0, epsilon=1e-3).fit(PROBLEM, EXAMPLES)
        made = learner(C=0.1, epsilon=1e-3)
        fit = made.fit(PROBLEM, EXAMPLES, warm=far)
        assert fit.objective == pytest.approx(made.fit(PROBLEM, EXAMPLES).objective, abs=1e-4)


def test_a_warm_start_of_other_examples_is_refused() -> None:
    fit = OneSlack().fit(PROBLEM, EXAMPLES)
    with pytest.raises(InputError, match="other examples"):
        OneSlack().fit(PROBLEM, random_examples(9), warm=fit)
    with pytest.raises(InputError, match="3 weights, this problem 4"):
        OneSlack().fit(Enumerated(4), random_examples(5, D=4), warm=fit)


@pytest.mark.parametrize("name", RUNS)
def test_threads_do_not_change_the_result(name) -> None:
    learner, problem, examples = RUNS[name]
    assert_same_bits(learner.fit(problem, examples, jobs=3), learner.fit(problem, examples))


def test_the_weights_of_an_unfinished_run_are_its_best() -> None:
    fit = OneSlack(C=1000.0, epsilon=1e-3, max_iterations=6).fit(PROBLEM, EXAMPLES)
    assert not fit.converged
    assert fit.iterations == 6
    worst = np.mean([(x.losses - (x.features[0] - x.features) @ fit.w).max() for x, _ in EXAMPLES])
    assert fit.objective == pytest.approx(fit.w @ fit.w / 2 + 1000 * worst)
    assert fit.objective == fit.reports[-1].primal


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: OneSlack(C=0.0), "C is 0.0"),
        (lambda: OneSlack(C=float("nan")), "C is nan"),
        (lambda: NSlack(epsilon=-1.0), "epsilon is -1.0"),
        (lambda: OneSlack(rescaling="both"), "rescaling is 'both'"),
        (lambda: NSlack(slack_norm="max"), "slack_norm is 'max'"),
        (lambda: NSlack(batch=0), "batch is 0"),
        (lambda: OneSlack(max_iterations=0), "max_iterations is 0"),
        (lambda: FrankWolfe(check_every=0), "check_every is 0"),
        (lambda: LatentSvm(tolerance=-1.0), "tolerance"),
        (lambda: OneSlack().fit(PROBLEM, []), "no examples"),
        (lambda: FrankWolfe().fit(PROBLEM, []), "no examples"),
        (lambda: OneSlack().fit(PROBLEM, EXAMPLES, jobs=0), "jobs is 0"),
        (lambda: OneSlack().fit(PROBLEM, EXAMPLES, checkpoint=Path("x"), checkpoint_every=0), "checkpoint_every is 0"),
        (lambda: OneSlack(rescaling="slack").fit(TreeProblem(4), latent_trees()), "TreeProblem cannot be trained"),
        (lambda: OneSlack().fit(Enumerated(5), EXAMPLES), "joint features"),
        (lambda: OneSlack().fit(PROBLEM, [(bad_loss(), 0)]), "the loss of example 1 is"),
    ],
)
def test_impossible_settings_and_tasks_are_refused(made, says) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        made()


def bad_loss():
    return Example(np.eye(3), np.array([0.0, np.inf, 1.0]), np.ones(3, bool))


def test_the_binary_classifier_of_the_page_is_a_support_vector_machine(capsys, tmp_path, monkeypatch) -> None:
    from sklearn.svm import LinearSVC

    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "learners.md").read_text(), re.DOTALL)[0]
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 40
    names: dict = {}
    exec(compile(code, "learners.md", "exec"), names)  # noqa: S102 (our own file)
    assert "average training loss" in capsys.readouterr().out
    examples, fit = names["examples"], names["fit"]
    X, y = np.array([x for x, _ in examples]), np.array([y for _, y in examples])
    # margins are of 2yw.x: a hinge SVM in u = 2w, with weight 4C/n of every example
    svm = LinearSVC(C=4 * names["C"] / len(y), loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6).fit(X, y)
    assert 2 * fit.w == pytest.approx(svm.coef_[0], rel=2e-2, abs=2e-2)
    assert ((X @ fit.w >= 0) == (svm.predict(X) > 0)).all()
