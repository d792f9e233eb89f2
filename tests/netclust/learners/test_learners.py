"""LSP and LSPA: fixtures F5 and F6, averaging, the margin after a step, and convergence on separable data."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest

from netclust.learners.perceptron import Lsp, Lspa
from netclust.losses.edge_loss import delta_f, delta_yj
from netclust.problems.base import TreeProblem

LEARNERS = [Lsp(), Lspa()]
LOSSES = [delta_f, partial(delta_yj, r=0.5)]


def arc_features(points, pair):
    """[pair(a, b), root] for every arc of a list of records."""
    D = len(pair(points[0], points[0]))
    phi = np.zeros((len(points), len(points) + 1, D + 1))
    phi[:, 0, D] = 1.0
    for j, b in enumerate(points):
        for i, a in enumerate(points[:j]):
            phi[j, i + 1, :D] = pair(a, b)
    return phi


def f5_example():
    records = [(0.0, 0), (0.2, 0), (1.0, 1)]
    phi = arc_features(records, lambda a, b: [a[1] == b[1], abs(a[0] - b[0])])
    return phi, np.array([1, 1, 2])


def separable(seed=0, examples=6, n=12):
    """Points near far-apart centres that differ by example: one distance threshold solves all of them."""
    rng = np.random.default_rng(seed)
    data = []
    for _ in range(examples):
        y = rng.integers(0, 4, n)
        points = y * 3.0 + rng.uniform(-0.4, 0.4, n) + rng.uniform(-50, 50)
        noise = iter(rng.normal(size=n * n))
        data.append((arc_features(points.tolist(), lambda a, b, z=noise: [abs(a - b), next(z)]), y))
    return data


def inseparable(seed=3, examples=5, n=6, D=4):
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=(n, n + 1, D)), rng.integers(0, 3, n)) for _ in range(examples)]


def one_step_at_a_time(learner, problem, examples, epochs, **options):
    """The weights after every step, made by as many fits of one example and one epoch."""
    w, seen = np.zeros(problem.dimension), []
    for _ in range(epochs):
        for example in examples:
            w = learner.fit(problem, [example], epochs=1, w0=w, **options).last
            seen.append(w)
    return np.array(seen)


def training_loss(problem, examples, w):
    return sum(problem.loss(y, problem.predict(x, w)) for x, y in examples)


def test_f5_trace():
    x, y = f5_example()
    problem = TreeProblem(3)
    w = np.zeros(3)
    steps = [
        ([0, 0, 1], 3, [1, -0.8, 0]),
        ([0, 0, 2], 3, [2, -1.4, 0]),
        ([0, 0, 0], 2, [3, -1.2, -1]),
        ([0, 1, 2], 1, [3, -2, 0]),
        ([0, 1, 0], 0, [3, -2, 0]),
    ]
    for h_hat, loss, after in steps:
        h, delta = problem.max_violating(x, y, w, 1.0)
        assert (h.tolist(), delta) == (h_hat, loss)
        assert problem.gold(x, y, w).tolist() == [0, 1, 0]
        w = Lsp().fit(problem, [(x, y)], epochs=1, w0=w).last
        assert w == pytest.approx(after, abs=1e-12)


def test_f5_in_one_run():
    fitted = Lsp().fit(TreeProblem(3), [f5_example()], epochs=5, C=1.0)
    assert fitted.last == pytest.approx([3, -2, 0], abs=1e-12)
    assert fitted.averaged == pytest.approx([2.4, -1.48, -0.2], abs=1e-12)
    assert fitted.losses == (3, 3, 2, 1, 0)
    assert (fitted.steps, fitted.updates) == (5, 4)


def test_f6_trace():
    x, y = f5_example()
    models = []
    fitted = Lspa().fit(TreeProblem(3), [(x, y)], epochs=6, on_epoch=models.append)
    expected = [
        [1.829268, -1.463415, 0],
        [2.056432, -1.417982, -0.227164],
        [2.124652, -1.458914, -0.227164],
        [2.124652, -1.488198, -0.190558],
    ]
    for model, w in zip(models, [*expected, expected[-1], expected[-1]], strict=True):
        assert model.last == pytest.approx(w, abs=1e-6)
    # at the margin the max-violating tree ties with the gold one: no step of length 0 is made
    assert (fitted.steps, fitted.updates) == (6, 4)


def test_f6_step_lengths():
    x, y = f5_example()
    problem = TreeProblem(3)
    w, taus = np.zeros(3), []
    for _ in range(4):
        h_hat, _ = problem.max_violating(x, y, w, 1.0)
        g = problem.joint_features(x, problem.gold(x, y, w)) - problem.joint_features(x, h_hat)
        after = Lspa().fit(problem, [(x, y)], epochs=1, w0=w).last
        taus.append((after - w) @ g / (g @ g))
        w = after
    assert taus == pytest.approx([1.829268, 0.227164, 0.068220, 0.036606], abs=1e-6)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("edge_loss", LOSSES)
def test_lazy_average_is_the_plain_average_of_the_vectors_after_each_step(learner, edge_loss):
    problem, examples = TreeProblem(4, edge_loss), inseparable()
    fitted = learner.fit(problem, examples, epochs=7)
    vectors = one_step_at_a_time(learner, problem, examples, epochs=7)
    assert fitted.last == pytest.approx(vectors[-1], abs=1e-12)
    assert fitted.averaged == pytest.approx(vectors.mean(axis=0), abs=1e-12)
    assert fitted.steps == len(vectors) == 35
    before = [np.zeros(4), *vectors]
    assert fitted.updates == sum((a != b).any() for a, b in pairwise(before))


@pytest.mark.parametrize("edge_loss", LOSSES)
@pytest.mark.parametrize("C", [1.0, 3.0])
def test_lspa_step_ends_exactly_at_the_margin(edge_loss, C):
    problem, w, made = TreeProblem(4, edge_loss), np.zeros(4), 0
    for x, y in inseparable() * 4:
        h_hat, loss = problem.max_violating(x, y, w, C)
        g = problem.joint_features(x, problem.gold(x, y, w)) - problem.joint_features(x, h_hat)
        fitted = Lspa().fit(problem, [(x, y)], epochs=1, C=C, w0=w)
        w = fitted.last
        if fitted.updates:
            assert w @ g == pytest.approx(C * loss, abs=1e-9)
            made += 1
    assert made > 10


def test_lspa_cap_bounds_the_step():
    x, y = f5_example()
    free = Lspa().fit(TreeProblem(3), [(x, y)], epochs=1).last
    capped = Lspa(cap=0.5).fit(TreeProblem(3), [(x, y)], epochs=1).last
    assert capped == pytest.approx(free * 0.5 / 1.829268, abs=1e-6)
    loose = Lspa(cap=10.0).fit(TreeProblem(3), [(x, y)], epochs=1).last
    assert (loose == free).all()


def test_lspa_makes_no_step_where_features_are_equal():
    x, y = np.zeros((3, 4, 2)), np.array([1, 1, 2])
    fitted = Lspa().fit(TreeProblem(2), [(x, y)], epochs=3)
    assert (fitted.updates, fitted.last.tolist()) == (0, [0, 0])
    assert fitted.losses[0] > 0


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("edge_loss", LOSSES)
def test_separable_data_are_learned_without_a_mistake(learner, edge_loss):
    problem, examples = TreeProblem(3, edge_loss), separable()
    assert training_loss(problem, examples, np.zeros(3)) > 0
    fitted = learner.fit(problem, examples, epochs=60)
    assert training_loss(problem, examples, fitted.last) == 0
    assert training_loss(problem, examples, fitted.averaged) == 0
    # what was learned is the distance rather than the noise: most of it holds on data not seen
    unseen = separable(seed=1)
    assert training_loss(problem, unseen, fitted.averaged) < 0.1 * training_loss(problem, unseen, np.zeros(3))


@pytest.mark.parametrize("edge_loss", LOSSES)
def test_lsp_ends_on_separable_data_with_the_margin_met(edge_loss):
    fitted = Lsp().fit(TreeProblem(3, edge_loss), separable(), epochs=200)
    assert fitted.losses[-1] == 0
    assert fitted.losses[0] > 0


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_same_examples_give_the_same_bits(learner):
    first, second = (learner.fit(TreeProblem(4), inseparable(), epochs=3) for _ in range(2))
    assert first.last.tobytes() == second.last.tobytes()
    assert first.averaged.tobytes() == second.averaged.tobytes()
    assert first.last.dtype == first.averaged.dtype == np.float64


@pytest.mark.parametrize("learner", LEARNERS)
def test_start_is_not_changed_and_early_end_equals_fewer_epochs(learner):
    w0 = np.ones(4)
    problem, examples = TreeProblem(4), inseparable()
    stopped = learner.fit(problem, examples, epochs=9, w0=w0, on_epoch=lambda model: len(model.losses) == 3)
    short = learner.fit(problem, examples, epochs=3, w0=w0)
    assert w0.tolist() == [1, 1, 1, 1]
    assert (stopped.averaged == short.averaged).all()
    assert stopped.losses == short.losses


def test_models_seen_by_on_epoch_do_not_change_later():
    seen = []
    Lsp().fit(TreeProblem(4), inseparable(), epochs=3, on_epoch=lambda m: seen.append((m, m.last.copy())))
    assert all((model.last == copy).all() for model, copy in seen)
    assert [model.steps for model, _ in seen] == [5, 10, 15]


def test_float32_features_are_learned_in_float64():
    examples = [(x.astype(np.float32), y) for x, y in inseparable()]
    assert Lsp().fit(TreeProblem(4), examples, epochs=2).averaged.dtype == np.float64


@pytest.mark.parametrize("edge_loss", LOSSES)
def test_max_violating_maximises_joint_score_plus_loss(edge_loss):
    rng, problem = np.random.default_rng(11), TreeProblem(4, edge_loss)
    for x, y in inseparable(n=5):
        w = rng.normal(size=4)
        h_hat, loss = problem.max_violating(x, y, w, 2.0)
        assert loss == problem.loss(y, h_hat)
        every = [np.array(h) for h in product(*(range(j) for j in range(1, 6)))]
        best = max(w @ problem.joint_features(x, h) + 2.0 * problem.loss(y, h) for h in every)
        assert w @ problem.joint_features(x, h_hat) + 2.0 * loss == pytest.approx(best, abs=1e-9)
        best = max(w @ problem.joint_features(x, h) for h in every)
        assert w @ problem.joint_features(x, problem.predict(x, w)) == pytest.approx(best, abs=1e-9)
        assert problem.loss(y, problem.gold(x, y, w)) == 0


def test_unusable_arguments_are_refused():
    problem, example = TreeProblem(3), f5_example()
    with pytest.raises(ValueError, match="nothing to train on"):
        Lsp().fit(problem, [], epochs=1)
    with pytest.raises(ValueError, match="nothing to train on"):
        Lspa().fit(problem, [example], epochs=0)
    with pytest.raises(ValueError, match="w0 has shape"):
        Lsp().fit(problem, [example], epochs=1, w0=np.zeros(2))
    with pytest.raises(ValueError, match="arc features have shape"):
        problem.predict(example[0][:, :3], np.zeros(3))
