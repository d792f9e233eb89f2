"""The network task through the protocol: the stream trainer as a twin, the kernels against theirs, exhaustive arcs."""

from __future__ import annotations

from itertools import product

import msgspec
import numpy as np
import pytest
import twins

from netclust.errors import InputError
from netclust.learners.perceptron import Lsp, Lspa
from netclust.models.network.arc_prices import ArcPrices
from netclust.models.network.network_problem import Arcs, NetworkProblem, StreamLabels, cut_network_slices
from netclust.models.network.stream_perceptron import StreamRule, train_stream
from netclust.records.batch import Batch
from netclust.scoring.similarity import WeightLayout, root_count

WIDTHS = (2, 5)
IS_NORMAL = np.array([True, False, False, True])
PRICES = ArcPrices(false_alarm=3.0, false_root=2.5, miss=0.25, wrong_attack=0.01, known_root=0.4, wrong_normal=0.5)


def stream(seed=0, n=120, features=3, classes=4):
    """Classes with their own numbers and codes, and some noise, so that learners err and learn."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, classes, n)
    centre = rng.random((classes, features))
    num = (centre[label] + rng.normal(0, 0.2, (n, features))).clip(0, 1).astype(np.float32)
    code = np.stack([(label + (rng.random(n) < 0.3)) % width for width in WIDTHS], axis=1).astype(np.uint16)
    return Batch(num=num, code=code, label=label.astype(np.int32))


def problem_of(batch, rule):
    layout = WeightLayout(batch.num.shape[1], WIDTHS, root_count(batch.num.shape[1], rule.root))
    return NetworkProblem(layout, rule.training_window, rule.r, rule.absent, rule.sign, rule.prices)


RULES = [
    StreamRule(training_window=7, epochs=3),
    StreamRule(training_window=7, epochs=3, absent="global", r=0.5),
    StreamRule(training_window=40, epochs=2, sign=1, C=3.0),
    StreamRule(training_window=1, epochs=2, root="none"),
    StreamRule(training_window=200, epochs=2, root="attributes"),
    StreamRule(training_window=7, epochs=3, prices=PRICES),
    StreamRule(training_window=40, epochs=2, absent="global", C=3.0, prices=PRICES),
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("update", ["lsp", "lspa"])
def test_one_record_at_a_time_learns_what_the_stream_trainer_learns(rule, update):
    batch = stream()
    learner = {"lsp": Lsp(), "lspa": Lspa()}[update]
    problem = problem_of(batch, rule)
    fitted = learner.fit(
        problem, cut_network_slices(batch, root=rule.root, is_normal=IS_NORMAL), epochs=rule.epochs, C=rule.C
    )
    want = train_stream(batch, WIDTHS, msgspec.structs.replace(rule, update=update), is_normal=IS_NORMAL)
    np.testing.assert_allclose(fitted.last, want.last, rtol=0, atol=1e-9)
    np.testing.assert_allclose(fitted.averaged, want.averaged, rtol=0, atol=1e-9)
    assert (fitted.steps, fitted.updates) == (want.steps, sum(report.updates for report in want.epochs))
    assert fitted.updates > 10


def test_f9_through_the_protocol():
    a = np.array([0.1, 0.9, 0.2, 0.8, 0.5, 0.15], np.float32)
    batch = Batch(num=a[:, None], code=np.zeros((6, 0), np.uint16), label=np.array([0, 1, 0, 1, 2, 0]))
    problem = NetworkProblem(WeightLayout(1, (), 1), window=3)
    seen, w = [], np.zeros(2)
    for epoch in (1, 2):
        for j, example in enumerate(cut_network_slices(batch), start=1):
            h, _ = problem.max_violating(*example, w, 1.0)
            star = problem.gold(*example, w)
            w = Lsp().fit(problem, [example], epochs=1, w0=w).last
            if h.parents[0] != star.parents[0]:
                seen.append((epoch, j, int(h.parents[0]) + 1, int(star.parents[0]) + 1, *w.round(6).tolist()))
    assert seen == [
        (1, 2, 1, 0, -0.2, 1), (1, 3, 0, 1, 0.7, 0), (1, 4, 0, 2, 1.6, -1), (1, 5, 3, 0, 0.9, 0),
        (1, 6, 0, 3, 1.85, -1), (2, 2, 1, 0, 1.65, 0), (2, 3, 0, 1, 2.55, -1), (2, 5, 3, 0, 1.85, 0),
        (2, 6, 5, 3, 2.15, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("length", [1, 5, 120])
@pytest.mark.parametrize("window", [1, 6, 150])
def test_scores_and_features_of_arcs_are_those_of_their_numpy_twins(length, window):
    batch, rng = stream(3), np.random.default_rng(5)
    layout = WeightLayout(3, WIDTHS, 1)
    problem, w = NetworkProblem(layout, window), rng.normal(size=layout.dimension)
    num, code = batch.num.T, batch.code.T
    for x, _ in cut_network_slices(batch, length=length):
        scores = problem._scores(x, w)
        for row, j in zip(scores, range(x.lo, x.hi), strict=True):
            lo = max(0, j - window)
            want = twins.scores(num[:, j], code[:, j], num[:, lo:j], code[:, lo:j], w, layout, -1, np.float64)
            assert row.tolist() == [w[-1], *want, *[-np.inf] * (window - (j - lo))]
        h = problem.predict(x, w)
        parts = [twins.phi(i, j, num, code, layout, -1) for i, j in zip(h.parents, range(x.lo, x.hi), strict=True)]
        total = np.zeros(layout.dimension)
        for part in parts:
            total += part
        assert problem.joint_features(x, h).tolist() == total.tolist()


@pytest.mark.parametrize("absent", ["window", "global"])
@pytest.mark.parametrize("prices", [None, PRICES])
def test_no_arcs_of_a_stretch_beat_ours(absent, prices):
    batch, rng, window = stream(7, n=9, classes=3), np.random.default_rng(1), 3
    layout = WeightLayout(3, WIDTHS, 1)
    problem = NetworkProblem(layout, window, r=0.5, absent=absent, prices=prices)
    for (x, y), w in product(
        cut_network_slices(batch, length=4, is_normal=IS_NORMAL), rng.normal(size=(10, layout.dimension))
    ):
        choices = [[-1, *range(max(0, j - window), j)] for j in range(x.lo, x.hi)]
        every = [Arcs(x.lo, np.array(parents)) for parents in product(*choices)]
        score = {h: float(w @ problem.joint_features(x, h)) for h in every}
        predicted = problem.predict(x, w)
        assert w @ problem.joint_features(x, predicted) == pytest.approx(max(score.values()), abs=1e-9)
        worst, loss = problem.max_violating(x, y, w, C=2.0)
        assert loss == problem.loss(y, worst)
        gold = problem.gold(x, y, w)
        assert problem.loss(y, gold) == 0
        skipped = gold.parents == -2
        assert (skipped == (worst.parents == -2)).all()
        if absent == "window":
            assert not skipped.any()
            top = max(score[h] + 2 * problem.loss(y, h) for h in every)
            assert w @ problem.joint_features(x, worst) + 2 * loss == pytest.approx(top, abs=1e-9)
            right = max(score[h] for h in every if problem.loss(y, h) == 0)
            assert w @ problem.joint_features(x, gold) == pytest.approx(right, abs=1e-9)


def test_a_class_seen_before_but_not_in_the_window_is_passed_over_or_sent_to_the_root():
    a = np.zeros((4, 1), np.float32)
    batch = Batch(num=a, code=np.zeros((4, 0), np.uint16), label=np.array([0, 1, 1, 0]))
    x, y = cut_network_slices(batch, length=4)[0]
    for absent, parents in (("window", [-1, -1, 1, -1]), ("global", [-1, -1, 1, -2])):
        problem = NetworkProblem(WeightLayout(1, (), 1), window=2, absent=absent)
        assert problem.gold(x, y, np.zeros(2)).parents.tolist() == parents
    assert isinstance(y, StreamLabels)


def test_bad_input_is_refused():
    batch = stream()
    with pytest.raises(InputError, match="at least 1 record"):
        cut_network_slices(batch, length=0)
    with pytest.raises(InputError, match="needs a label"):
        cut_network_slices(Batch(num=batch.num, code=batch.code))
    with pytest.raises(InputError, match="training window"):
        NetworkProblem(WeightLayout(3, WIDTHS, 1), window=0)
    x, _ = cut_network_slices(batch)[0]
    with pytest.raises(InputError, match="root features"):
        NetworkProblem(WeightLayout(3, WIDTHS, 0)).predict(x, np.zeros(18))
    with pytest.raises(InputError, match="number of weights"):
        NetworkProblem(WeightLayout(3, WIDTHS, 1)).predict(x, np.zeros(3))
