"""A loss learned from the measure of the network task: what is counted, what the regression finds, what it changes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.metrics.detection_metrics import decision_metrics
from netclust.models.network.arc_prices import KINDS, PASSED_OVER, RIGHT, ArcPrices, arc_kinds, edge_prices
from netclust.models.network.network_loss import (
    FLOOR,
    BlockLinkCounts,
    Measure,
    collect_blocks,
    fit_prices,
    learn_prices,
)
from netclust.models.network.params import TrainParams
from netclust.models.network.stream_perceptron import StreamRule, root_is_right, train_stream
from netclust.models.network.train_network import fit_network, train_network
from netclust.problems.loss_learning import measure_loss as quality
from netclust.records.batch import Batch
from netclust.scoring.model import Model

ROOT = Path(__file__).parents[3]
IS_NORMAL = np.array([True, False, False])
BUDGET = Measure(name="budget", budget=0.05)


WIDTHS = (4,)


def stream(n=4000, seed=0):
    """Normal records and two attack types in a row, each overlapping the next; a symbol that mostly tells the class.

    Only the symbol lets a similarity prefer referents that look normal: distances are the same both ways.
    """
    rng = np.random.default_rng(seed)
    label = rng.choice(3, n, p=[0.6, 0.2, 0.2]).astype(np.int32)
    num = (label[:, None] / 2 + rng.normal(0, 0.3, (n, 2))).astype(np.float32)
    code = 1 + np.where(rng.random(n) < 0.7, label, rng.integers(0, 3, n))
    return Batch(num=num, code=code[:, None].astype(np.uint16), label=label)


# What is counted


def plain_kind(label, j, parent, root_right):
    """The kind of one arc, by cases."""
    if parent == PASSED_OVER or (parent == -1 and root_right) or (parent >= 0 and label[parent] == label[j]):
        return RIGHT
    if IS_NORMAL[label[j]]:
        name = "false_root" if parent == -1 else "wrong_normal" if IS_NORMAL[label[parent]] else "false_alarm"
    else:
        name = "known_root" if parent == -1 else "miss" if IS_NORMAL[label[parent]] else "wrong_attack"
    return KINDS.index(name)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30), st.integers(1, 6), st.randoms(use_true_random=False))
def test_links_are_of_their_kind(classes, window, random):
    label = np.array(classes, np.int32)
    for absent in ("window", "global"):
        right = root_is_right(label, window, absent)
        seen = [[k for k in range(j) if classes[k] == classes[j]] for j in range(len(classes))]
        if absent == "window":
            assert right.tolist() == [not any(k >= j - window for k in earlier) for j, earlier in enumerate(seen)]
        else:
            assert right.tolist() == [not earlier for earlier in seen]
        parents = np.array([random.randrange(-2, j) for j in range(len(classes))])
        want = [plain_kind(label, j, int(parents[j]), right[j]) for j in range(len(label))]
        assert arc_kinds(label, parents, right, IS_NORMAL).tolist() == want


@pytest.mark.parametrize("absent", ["window", "global"])
def test_blocks_count_the_links_of_the_run(absent):
    batch, outputs = stream(230), []
    rule = StreamRule(training_window=5, epochs=2, absent=absent)
    train_stream(batch, WIDTHS, rule, is_normal=IS_NORMAL, on_outputs=outputs.append)
    blocks = collect_blocks(batch, WIDTHS, rule, IS_NORMAL, records=100)
    right = root_is_right(batch.label, 5, absent)
    rng, normal, of = np.random.default_rng(0), IS_NORMAL[batch.label], np.zeros(230, int)
    for side in (~normal, normal):
        of[side] = rng.permutation(side.sum()) % 2
    rows = []
    for parents in outputs:
        for block in range(2):
            counts = dict.fromkeys((RIGHT, *range(len(KINDS))), 0)
            sides = [0, 0]
            for j in np.flatnonzero(of == block):
                counts[plain_kind(batch.label, j, int(parents[j]), right[j])] += 1
                sides[int(IS_NORMAL[batch.label[j]])] += parents[j] != PASSED_OVER
            rows.append([counts[kind] for kind in range(len(KINDS))] + sides)
    assert np.column_stack([blocks.wrong, blocks.attacks, blocks.normals]).tolist() == rows
    passed_over = 460 - blocks.attacks.sum() - blocks.normals.sum()
    assert (passed_over > 0) == (absent == "global")
    np.testing.assert_allclose(blocks.rates.sum(axis=1), 100 * blocks.wrong.sum(1) / (blocks.attacks + blocks.normals))


def test_every_block_has_attacks_and_normals():
    rare = np.zeros(5000, np.int32)
    rare[2000:2060] = 1
    for label in (np.tile([0, 1], 2500), np.repeat([0, 1], 2500), rare):
        made = stream(5000)
        batch = Batch(num=made.num, code=made.code, label=label.astype(np.int32))
        blocks = collect_blocks(batch, WIDTHS, StreamRule(epochs=1, training_window=5), IS_NORMAL)
        assert min(blocks.attacks.min(), blocks.normals.min()) >= 10


@settings(max_examples=50)
@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.floats(0.01, 100))
def test_f_beta_is_that_of_the_decisions(tp, fp, fn, tn, beta):
    found = float(Measure(beta=beta).value(fp, fn, tp + fn, fp + tn))
    if tp == 0:
        assert found == (100.0 if fp == fn == 0 else 0.0)
        return
    precision, recall = tp / (tp + fp), tp / (tp + fn)
    assert found == pytest.approx(100 * (1 + beta**2) * precision * recall / (beta**2 * precision + recall))
    truth = np.repeat([True, False, True, False], [tp, fp, fn, tn])
    above = np.repeat([True, True, False, False], [tp, fp, fn, tn])
    assert float(Measure().value(fp, fn, tp + fn, fp + tn)) == pytest.approx(100 * decision_metrics(above, truth).f1)


def test_only_false_alarms_beyond_the_budget_cost():
    values = [float(BUDGET.value(false, 20, 100, 200)) for false in (0, 10, 11, 20)]
    assert values == pytest.approx([80, 80, 70, -20])
    assert float(BUDGET.value(0, 0, 0, 0)) == 100


# What the regression finds


def some_blocks(rates, n=400, size=1000, seed=0):
    rng = np.random.default_rng(seed)
    wrong = rng.poisson(np.array(rates) * size, (n, len(KINDS)))
    attacks = np.full(n, size // 2)
    return BlockLinkCounts(wrong, attacks, np.full(n, size) - attacks)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_prices_of_a_good_detector_are_those_of_calculus(beta):
    """With few errors F-beta falls by 1 / p (1 + b^2) a false alarm, b^2 times as much a miss; names do not count."""
    learned = fit_prices(some_blocks([0.004, 0.003, 0.005, 0.01, 0.005, 0.0]), Measure(beta=beta))
    false, miss = 1 / (0.5 * (1 + beta**2)), beta**2 / (0.5 * (1 + beta**2))
    np.testing.assert_allclose(-learned.loss.v[:3], [false, false, miss], rtol=0.08)
    assert np.abs(learned.loss.v[3:]).max() < 0.02
    assert (learned.prices.wrong_normal, learned.blocks) == (learned.prices.wrong_attack, 400)
    assert learned.scc > 0.99
    assert learned.loss.bias == pytest.approx(100, abs=0.2)


def test_every_wrong_link_has_a_price_in_the_unit_of_delta_f():
    blocks = some_blocks([0.02, 0.01, 0.03, 0.01, 0.02, 0.005])
    for r in (0.0, 1.0):
        learned = fit_prices(blocks, Measure(beta=0.5), r)
        taken = np.maximum(0.0, -learned.loss.v) / learned.unit
        links = blocks.wrong.sum(axis=0)
        assert links @ taken == pytest.approx(links @ edge_prices(r).vector)
        np.testing.assert_allclose(learned.prices.vector, np.maximum(FLOOR, taken), rtol=1e-12)
    mse, scc = quality(learned.loss, blocks.rates, blocks.value(Measure(beta=0.5)))
    assert (learned.mse, learned.scc) == (mse, scc)


def test_two_roots_share_one_price():
    blocks = some_blocks([0.02, 0.0, 0.03, 0.01, 0.0, 0.0])
    blocks.wrong[7, 1] = 2
    prices = fit_prices(blocks, BUDGET).prices
    assert prices.false_root == prices.false_alarm
    assert prices.known_root == prices.wrong_attack == prices.wrong_normal


def test_the_budget_decides_what_false_alarms_cost():
    within = fit_prices(some_blocks([0.005, 0.0, 0.02, 0.01, 0.0, 0.0]), BUDGET).prices
    beyond = fit_prices(some_blocks([0.05, 0.0, 0.02, 0.01, 0.0, 0.0]), BUDGET).prices
    assert within.false_alarm < 0.1 * within.miss
    assert beyond.false_alarm > 5 * beyond.miss


def test_a_measure_that_nothing_moves_is_refused():
    with pytest.raises(InputError, match='use loss = "edge"'):
        fit_prices(some_blocks([0.0] * 6), Measure())
    with pytest.raises(InputError, match='use loss = "edge"'):
        fit_prices(some_blocks([0.0, 0.0, 0.0, 0.1, 0.1, 0.0]), Measure())


# What it changes


def test_prices_of_delta_f_train_the_weights_of_delta_f():
    batch = stream(600)
    for update in ("lsp", "lspa"):
        rule = StreamRule(update=update, epochs=2, r=0.3, C=0.7, training_window=30)
        want = train_stream(batch, WIDTHS, rule)
        priced = msgspec.structs.replace(rule, prices=edge_prices(0.3))
        fit = train_stream(batch, WIDTHS, priced, is_normal=IS_NORMAL)
        assert fit.last.tobytes() == want.last.tobytes()
        assert fit.averaged.tobytes() == want.averaged.tobytes()
        assert fit.epochs == want.epochs


def decided(batch, weights, window=100):
    """False-alarm and detection rates of best links, root included, to the records before."""
    from netclust.models.network.network_problem import NetworkProblem, cut_network_slices
    from netclust.scoring.similarity import WeightLayout

    (x, y), *_ = cut_network_slices(batch, length=len(batch))
    parents = NetworkProblem(WeightLayout(2, WIDTHS, 1), window).predict(x, weights).parents
    alarm = (parents < 0) | ~IS_NORMAL[y.label[np.maximum(parents, 0)]]
    normal = IS_NORMAL[y.label]
    return float(alarm[normal].mean()), float(alarm[~normal].mean())


@pytest.mark.parametrize("C", [3.0, 10.0])
def test_false_alarms_that_cost_most_are_fewer(C):
    rule = StreamRule(epochs=3, C=C)
    train, later = stream(seed=1), stream(2000, seed=2)
    measures = {"edge": None, "budget": Measure(name="budget", budget=0.02), "detection": Measure(beta=3.0)}
    rates = {}
    for name, measure in measures.items():
        prices = None if measure is None else learn_prices(train, WIDTHS, rule, IS_NORMAL, measure).prices
        fit = train_stream(train, WIDTHS, msgspec.structs.replace(rule, prices=prices), is_normal=IS_NORMAL)
        rates[name] = decided(later, fit.averaged)
    assert rates["budget"][0] < 0.8 * rates["edge"][0]
    assert rates["detection"][1] > rates["edge"][1] > rates["budget"][1]


def test_the_same_stream_gives_the_same_prices():
    first, second = (learn_prices(stream(), WIDTHS, StreamRule(epochs=2), IS_NORMAL, BUDGET) for _ in range(2))
    assert first.prices == second.prices
    assert first.to_json() == second.to_json()
    priced = StreamRule(epochs=2, prices=first.prices)
    again = learn_prices(stream(), WIDTHS, priced, IS_NORMAL, BUDGET)  # the ordinary run is with Delta_F all the same
    assert again.prices == first.prices


def test_a_model_remembers_its_learned_loss(tmp_path):
    table = simulate(2000, seed=1).table()
    params = TrainParams(epochs=2, C=3.0, loss="learned", measure="budget", alarm_budget=0.02, reference_size=60)
    done = []
    fit = fit_network(table, params, on_progress=lambda at, of: done.append((at, of)))
    assert done == sorted(done)
    assert done[-1] == (8000, 8000)
    is_normal = fit.encoding.label_table().is_normal
    learned = learn_prices(fit.seen, fit.encoding.widths, params.rule, is_normal, params.judged_by)
    rule = msgspec.structs.replace(params.rule, prices=learned.prices)
    want = train_stream(fit.seen, fit.encoding.widths, rule, is_normal=is_normal)
    assert fit.averaged.tobytes() == want.averaged.tobytes()
    fit.draw(0).save(tmp_path / "model")
    noted = Model.load(tmp_path / "model").provenance.params
    assert noted["learned_loss"] == learned.to_json()
    assert noted["loss"] == "learned"
    assert "learned_loss" not in train_network(table, TrainParams(epochs=1)).provenance.params


def test_the_command_says_what_was_learned(run, tmp_path):
    (tmp_path / "params.toml").write_text('loss = "learned"\nbeta = 0.5\nepochs = 1\nreference_size = 60\n')
    simulate(2000, seed=1).write(tmp_path / "past.txt")
    args = ("train", "network", tmp_path / "past.txt", "--params", tmp_path / "params.toml", "-o", tmp_path / "m")
    ran = run(*args)
    assert ran.code == 0
    assert re.search(r"false alarm\W+\d+\.\d\d", ran.out)
    assert "squared correlation" in ran.out
    body = json.loads(run(*args, "--json", "-").out)
    assert set(body["learned_loss"]["prices"]) == set(KINDS)


@pytest.mark.parametrize("learner", ["margin", "unlearned"])
def test_learners_without_a_loss_refuse_one(learner):
    with pytest.raises(InputError, match=f"loss learned is for learners lsp and lspa, not {learner}"):
        TrainParams(learner=learner, loss="learned")


def test_nonsense_is_refused():
    for price in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="price of miss"):
            ArcPrices(false_alarm=1, false_root=1, miss=price, wrong_attack=1, known_root=1)
    with pytest.raises(InputError, match="which classes are normal"):
        train_stream(stream(50), WIDTHS, StreamRule(prices=edge_prices()))
    with pytest.raises(InputError, match="beta"):
        Measure(beta=0.0)
    with pytest.raises(InputError, match="budget"):
        Measure(budget=1.0)


def test_the_python_of_the_guide_runs(capsys):
    section = (ROOT / "docs" / "learners.md").read_text().split("## A loss learned from the metric: network")[1]
    code = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0]
    exec(compile(code, "learners.md", "exec"), {})  # noqa: S102 (our own file)
    assert "false alarms" in capsys.readouterr().out
