"""The margin learner: kernel against a numpy twin, gradient against differences, weights against brute force."""

from __future__ import annotations

import numpy as np
import pytest
import twins

from netclust.kernels.linking import margin as kernels
from netclust.kernels.linking.score import score_columns
from netclust.models.network import margin_learner
from netclust.models.network.margin_learner import MarginRule, Start, train_margin
from netclust.records.batch import Batch
from netclust.scoring.similarity import WeightLayout, distance_weights, spread_units


def stream(seed: int = 0, n: int = 400, noise: int = 3) -> tuple[Batch, np.ndarray]:
    """Two attack types that differ from normal in the first number and in the first symbol; the rest is noise."""
    rng = np.random.default_rng(seed)
    label = rng.choice(3, n, p=[0.6, 0.3, 0.1]).astype(np.int32)
    signal = label * 0.3 + rng.normal(0, 0.08, n)
    num = np.column_stack([signal, rng.random((n, noise))]).astype(np.float32)
    code = np.column_stack([np.where(rng.random(n) < 0.8, label, 0) + 1, rng.integers(1, 5, n)]).astype(np.uint16)
    return Batch(num=num, code=code, label=label), label == 0


def unlearned(batch: Batch) -> Start:
    features = batch.num.shape[1]
    return Start(np.ones(features) * 4, np.ones(batch.code.shape[1]), np.full(features, 0.7))


def twin_scores(batch: Batch, i: int, rows: np.ndarray, start: Start) -> np.ndarray:
    """Float32, in the kernel's order of additions."""
    acc = np.full(len(rows), -np.float32(0), np.float32)
    base = np.float32(0)
    for price in start.mismatch.astype(np.float32):
        base -= price
    acc = acc + base
    for f, (w, far) in enumerate(zip(start.weight.astype(np.float32), start.far.astype(np.float32), strict=True)):
        acc += -w * np.minimum(np.abs(batch.num[i, f] - batch.num[rows, f]), far)
    for s, price in enumerate(start.mismatch.astype(np.float32)):
        if batch.code[i, s]:
            acc += np.where(batch.code[rows, s] == batch.code[i, s], price, np.float32(0))
    return acc


@pytest.mark.parametrize("seed", range(4))
def test_the_kernel_equals_its_numpy_twin_bit_for_bit(seed):
    batch, normal = stream(seed)
    rng = np.random.default_rng(seed)
    start = Start(rng.random(4) * 5, rng.random(2), rng.choice([0.2, 0.5, np.inf], 4))
    chosen = rng.choice(len(batch), 150, replace=False)
    side = np.where(normal[chosen], 1, 2).astype(np.uint8)
    side[rng.random(150) < 0.2] = 0
    records = np.concatenate([chosen[:20], rng.choice(len(batch), 40)])
    place = np.full(len(batch), -1, np.int64)
    place[chosen] = np.arange(150)
    out = kernels.Nearest(*(np.empty(60, kind) for kind in (np.float32, np.int64, np.float32, np.int64)))
    candidates = kernels.Candidates(score_columns(batch.num[chosen]), score_columns(batch.code[chosen]), side.copy())
    weights = (each.astype(np.float32) for each in (start.weight, start.mismatch, start.far))
    kernels.nearest_sides(batch.num[records], batch.code[records], place[records], candidates, *weights, out)
    assert (candidates.side == side).all()
    for k, i in enumerate(records):
        scores = twin_scores(batch, i, chosen, start)
        for which, score, at in ((1, out.normal[k], out.normal_at[k]), (2, out.other[k], out.other_at[k])):
            usable = np.where((side == which) & (chosen != i), scores, -np.inf)
            assert (score, at) == (usable.max(), int(np.argmax(usable)))


def test_a_side_without_candidates_is_none():
    batch, _ = stream(n=20)
    candidates = kernels.Candidates(score_columns(batch.num[:5]), score_columns(batch.code[:5]), np.ones(5, np.uint8))
    out = kernels.Nearest(*(np.empty(1, kind) for kind in (np.float32, np.int64, np.float32, np.int64)))
    start = unlearned(batch)
    weights = (each.astype(np.float32) for each in (start.weight, start.mismatch, start.far))
    kernels.nearest_sides(batch.num[:1], batch.code[:1], np.array([-1]), candidates, *weights, out)
    assert out.other[0] == -np.inf
    assert out.other_at[0] == -1


def test_the_gradient_is_that_of_the_distance():
    batch, _ = stream()
    start = unlearned(batch)
    rng = np.random.default_rng(1)
    draw = margin_learner._Draw(
        batch, rng.choice(400, 50), rng.choice(400, 80, replace=False), np.ones(80, np.uint8), np.ones(50, bool)
    )
    share, at = rng.normal(size=50), rng.integers(-1, 80, 50)

    def total(values: np.ndarray) -> float:
        found = 0.0
        for k in np.flatnonzero(at >= 0):
            i, j = draw.records[k], draw.chosen[at[k]]
            gap = np.minimum(np.abs(batch.num[i] - batch.num[j]), start.far)
            found += share[k] * (values[:4] @ gap + values[4:] @ (batch.code[i] != batch.code[j]))
        return found

    gradient = draw.distances(share, at, start.far.astype(np.float32))
    for d in range(6):
        step = np.zeros(6)
        step[d] = 0.5
        assert gradient[d] == pytest.approx(total(step) - total(-step), abs=1e-5)


def test_learning_finds_what_tells_apart_and_lowers_the_loss():
    batch, normal = stream(n=1500)
    fit = train_margin(batch, normal, unlearned(batch), MarginRule(candidates=200, steps=200), seed=0)
    assert fit.averaged.weight[0] > 2 * fit.averaged.weight[1:].max()
    assert fit.averaged.mismatch[0] > fit.averaged.mismatch[1]
    assert fit.reports[-1].loss < fit.reports[0].loss
    assert fit.reports[-1].step == 200


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    batch, normal = stream()
    rule = MarginRule(candidates=50, steps=20)
    a, b, c = (train_margin(batch, normal, unlearned(batch), rule, seed=s) for s in (1, 1, 2))
    assert a.averaged.weight.tobytes() == b.averaged.weight.tobytes()
    assert a.root == b.root
    assert a.averaged.weight.tobytes() != c.averaged.weight.tobytes()


@pytest.mark.parametrize("reach", [0.0, 0.3])
def test_weights_stay_within_reach(reach):
    batch, normal = stream()
    start, rule = unlearned(batch), MarginRule(candidates=100, steps=100, reach=reach, temperature=2.0)
    fit = train_margin(batch, normal, start, rule, seed=0)
    for found, first in ((fit.last.weight, start.weight), (fit.averaged.mismatch, start.mismatch)):
        assert (np.abs(np.log(found * 2.0 / first)) <= reach + 1e-9).all()


@pytest.mark.parametrize("all_normal", [True, False])
def test_one_side_alone_teaches_nothing(all_normal):
    batch, _ = stream()
    fit = train_margin(batch, np.full(400, all_normal), unlearned(batch), MarginRule(temperature=1.0, steps=5), seed=0)
    assert fit.averaged.weight == pytest.approx(unlearned(batch).weight)
    assert not np.isfinite(fit.root)


def test_with_every_attack_type_hidden_only_the_root_is_left():
    batch, normal = stream()
    fit = train_margin(batch, normal, unlearned(batch), MarginRule(candidates=100, steps=30, hide=0.95), seed=0)
    assert np.isfinite(fit.root)
    assert np.isfinite(fit.averaged.weight).all()


@pytest.mark.parametrize("sign", [-1, 1])
def test_distance_weights_score_as_the_distance_up_to_a_constant(sign):
    rng = np.random.default_rng(3)
    layout = WeightLayout(3, (2, 5, 2, 1), 1)
    binary = [True, False, False, False]  # the third is a symbolic attribute of which one value is known
    weight, mismatch, far = rng.random(3), rng.random(4), np.array([0.3, 0.6, 9.0])
    w = distance_weights(layout, binary, weight, mismatch, -0.75, sign)
    constant = w[:3].sum()
    assert w[-1] - constant == pytest.approx(-0.75)
    for _ in range(200):
        a_num, b_num = (rng.random(3).astype(np.float32) for _ in range(2))
        a_code, b_code = (np.array([rng.integers(0, k) for k in (2, 5, 2, 1)], np.uint16) for _ in range(2))
        phi = twins.pair_features(a_num, a_code, b_num, b_code, layout, sign, far)
        want = -weight @ np.minimum(np.abs(a_num - b_num), far)
        for s in range(3):
            same = a_code[s] == b_code[s] and (binary[s] or a_code[s] > 0)
            want -= 0 if same else mismatch[s]
        assert w[:-1] @ phi[:-1] == pytest.approx(want + constant, abs=1e-6)


def test_an_attribute_that_hardly_varies_has_a_floor():
    num = np.zeros((1000, 2), np.float32)
    num[0, 0] = 1
    num[::2, 1] = 1
    assert spread_units(num) == pytest.approx([0.125, 0.5])
