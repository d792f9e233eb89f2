"""The peers that a table sets beside netclust: what they decide, which labels they see, and the perceptron's kernel."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.svm import SVC

from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.metrics.detection_metrics import auc
from netclust.models.experiments.peers import PEERS, PeerRun, anomalies, run_peer, unary_features
from netclust.models.experiments.perceptron_kernels import Perceptron, follow, learn_perceptron
from netclust.records.encoding import fit_encoding
from netclust.records.table import Table

pytestmark = pytest.mark.peers

ONLINE = [name for name, peer in PEERS.items() if peer.setting == "late labels"]
OFFLINE = [name for name in PEERS if name not in ONLINE]
DELAY = 30


@pytest.fixture(scope="module")
def past() -> Table:
    return simulate(2000, seed=1, attack_share=0.5).table()


@pytest.fixture(scope="module")
def today() -> Table:
    return simulate(1000, seed=2, day=1, attack_share=0.5).table()


def quick(name: str, past: Table, today: Table, seed: int = 0) -> PeerRun:
    """Few records for the slow ones; half-space trees forget nothing before 250 more normal ones."""
    pretrain, length = {"river-arf": (100, 100), "river-hat": (300, 200), "river-hst": (800, 1000)}.get(
        name, (800, 200)
    )
    return run_peer(name, past, today[:length], seed=seed, delay=DELAY, false_alarm_rate=0.05, pretrain=pretrain)


def relabelled(table: Table, rows: slice) -> Table:
    """The records with normal and anomalous exchanged in some rows."""
    normal = table.labels.index("normal")
    other = next(i for i, label in enumerate(table.labels) if label not in ("", "normal"))
    label = table.label.copy()
    label[rows] = np.where(anomalies(table)[rows], normal, other)
    return replace(table, label=label)


# Decisions


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_is_better_than_chance(name: str, past: Table, today: Table) -> None:
    today = today[:400]
    pretrain = {"river-arf": 300, "river-hat": 1000}.get(name)
    run = run_peer(name, past, today, delay=DELAY, pretrain=pretrain, false_alarm_rate=0.05)
    area = auc(run.score, anomalies(today))
    assert area is not None
    assert area > 0.6  # chance is 0.5, give or take 0.03
    assert (run.anomalous.shape, run.anomalous.dtype) == ((400,), np.bool_)
    assert (run.score.shape, run.score.dtype) == ((400,), np.float64)
    assert np.isfinite(run.score).all()
    assert run.score[run.anomalous].min(initial=np.inf) > run.score[~run.anomalous].max(initial=-np.inf)
    assert run.seconds > 0
    assert run.training_seconds > 0


@pytest.mark.parametrize("name", PEERS)
def test_the_same_seed_decides_the_same(name: str, past: Table, today: Table) -> None:
    first, again, other = (quick(name, past, today, seed).score for seed in (3, 3, 4))
    assert (first == again).all()
    assert bool(PEERS[name].varies) == (first != other).any()


def test_draw_0_keeps_the_order(past: Table, today: Table) -> None:
    past, today = past[:500], today[:100]
    order = np.random.default_rng(5).permutation(len(past))
    for name in ("perceptron", "river-lr"):
        assert (run_peer(name, past, today, seed=5).score == run_peer(name, past[order], today, seed=0).score).all()


def test_only_the_last_records_are_learned(past: Table, today: Table) -> None:
    assert (
        run_peer("perceptron", past, today, pretrain=500).score == run_peer("perceptron", past[-500:], today).score
    ).all()


@pytest.mark.parametrize("rate", [0.02, 0.2])
def test_half_space_trees_keep_the_false_alarms_asked_for(rate: float) -> None:
    # Exchangeable normal records; the few attacks are only there because training asks for some.
    day = simulate(6000, seed=3, attack_share=0.05).table()
    day = day[np.random.default_rng(0).permutation(len(day))]
    run = run_peer("river-hst", day[:5000], day[5000:], false_alarm_rate=rate)
    alarms = run.anomalous[~anomalies(day[5000:])].mean()
    assert abs(alarms - rate) <= 4 * np.sqrt(rate * (1 - rate) * (1 / 475 + 1 / 950))


def test_the_approximated_kernel_follows_the_exact_one(past: Table, today: Table) -> None:
    past = past[:1000]
    linear = replace(past, schema=past.schema.with_transform("none"))
    encoding = fit_encoding(linear)
    exact = SVC(kernel="poly", degree=3, gamma="auto", coef0=0.0, C=1.0)
    exact.fit(unary_features(encoding, linear), anomalies(past))
    scores = exact.decision_function(unary_features(encoding, today))
    assert np.corrcoef(run_peer("cubic-svm", past, today).score, scores)[0, 1] > 0.999


# Which labels are seen


@pytest.mark.parametrize("name", OFFLINE)
def test_an_offline_peer_sees_no_test_labels(name: str, past: Table, today: Table) -> None:
    bare = replace(today, label=np.zeros(len(today), np.int32))
    assert (quick(name, past, today).score == quick(name, past, bare).score).all()


@pytest.mark.parametrize("name", ONLINE)
def test_a_label_is_not_used_before_it_arrives(name: str, past: Table, today: Table) -> None:
    base = quick(name, past, today)
    late = quick(name, past, relabelled(today, slice(len(base.score) - DELAY, None)))
    assert (base.score == late.score).all()
    assert (base.anomalous == late.anomalous).all()
    changed = quick(name, past, relabelled(today, slice(20, 40)))
    assert (base.score == changed.score)[: 20 + DELAY].all()
    assert (base.score != changed.score)[20 + DELAY :].any()


def test_a_label_is_used_once_it_arrives(past: Table, today: Table) -> None:
    # The first one counts for the very record that the protocol names.
    past, today = past[:500], today[:50]
    base, changed = (run_peer("river-lr", past, t, delay=7).score for t in (today, relabelled(today, slice(0, 1))))
    assert int(np.argmax(base != changed)) == 7


# Refusals


@pytest.mark.parametrize("name", [name for name, peer in PEERS.items() if peer.package])
def test_a_missing_extra_is_named(name: str, past: Table, today: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "river" if PEERS[name].package == "river" else "sklearn", None)
    with pytest.raises(InputError, match=r"needs (river|sklearn): pip install 'netclust\[bench\]'"):
        run_peer(name, past, today)


def test_impossible_peers_are_refused(past: Table, today: Table) -> None:
    gap = replace(today, label=np.where(np.arange(len(today)) == 17, 0, today.label).astype(np.int32))
    with pytest.raises(InputError, match=r"no peer is called 'svm'. Known: linear-svm, cubic-svm, "):
        run_peer("svm", past, today)
    with pytest.raises(InputError, match="delay must be at least 1, not 0"):
        run_peer("perceptron", past, today, delay=0)
    with pytest.raises(InputError, match="pretrain must be at least 1, not 0"):
        run_peer("perceptron", past, today, pretrain=0)
    with pytest.raises(InputError, match="seed must be at least 0, not -1"):
        run_peer("perceptron", past, today, seed=-1)
    with pytest.raises(InputError, match=r"training data: 1 records have no label \(column label\)"):
        run_peer("perceptron", gap, today)
    with pytest.raises(InputError, match=r"test data: 1 records have no label \(column label\)"):
        run_peer("river-lr", past, gap)
    with pytest.raises(InputError, match="test data: no records"):
        run_peer("linear-svm", past, today[:0])
    with pytest.raises(InputError, match="needs normal and anomalous records"):
        run_peer("linear-svm", past[~anomalies(past)], today)
    with pytest.raises(InputError, match="needs at least 9999 held-out normal records"):
        run_peer("river-hst", past, today, false_alarm_rate=0.0001)


# The perceptron kernel


class Twin:
    """The perceptron without cleverness: the average is formed from the weights after every step."""

    def __init__(self, features: int) -> None:
        self.w, self.total, self.steps = np.zeros(features), np.zeros(features), 0
        self.u = np.zeros(features)

    def learn(self, x: NDArray[np.float64], y: float) -> None:
        if y * in_order(self.w * x) <= 0:
            self.w = self.w + y * x
            self.u = self.u + self.steps * (y * x)
        self.steps += 1
        self.total = self.total + self.w

    def score(self, x: NDArray[np.float64], averaged: bool) -> float:
        last = in_order(self.w * x)
        return last - in_order(self.u * x) / self.steps if averaged and self.steps else last


def in_order(terms: NDArray[np.float64]) -> float:
    total = 0.0
    for term in terms.tolist():
        total += term
    return total


@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("trained", [0, 150])
@pytest.mark.parametrize("delay", [1, 10, 1000])
def test_the_kernel_equals_its_twin(averaged: bool, trained: int, delay: int) -> None:
    rng = np.random.default_rng(delay + trained)
    x = np.concatenate([rng.random((300, 4)), rng.integers(0, 2, (300, 5))], axis=1)
    y = rng.choice([-1.0, 1.0], 300)
    order = rng.permutation(trained)
    p, twin = Perceptron(np.zeros(9), np.zeros(9), np.zeros(1, np.int64)), Twin(9)
    learn_perceptron(p, x, y, order)
    for i in order:
        twin.learn(x[i], y[i])
    scores = np.full(300, np.nan)
    follow(p, x, y, delay, averaged, scores)
    for j in range(300):
        if j >= delay:
            twin.learn(x[j - delay], y[j - delay])
        assert scores[j] == twin.score(x[j], averaged)
    assert (p.w == twin.w).all()
    assert (p.u == twin.u).all()
    assert p.step[0] == twin.steps
    if twin.steps:
        np.testing.assert_allclose(p.w - p.u / p.step[0], twin.total / twin.steps, rtol=1e-9, atol=1e-9)
