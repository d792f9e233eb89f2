"""Scoring and training kernels against the spec's fixtures and their numpy twins, bit for bit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import twins
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.kernels.jit import kernel
from netclust.kernels.linking import link, score
from netclust.models.network.arc_prices import ArcPrices
from netclust.models.network.stream_perceptron import StreamRule, train_stream
from netclust.records.batch import Batch
from netclust.records.labels import NOVEL
from netclust.scoring.similarity import WeightLayout, unlearned_weights


# Parts of kernels have no entry from Python: these are theirs.
@kernel
def score_referents(x, codes, start, matches, slope, far, num, code, unary, lo, hi, acc):
    score.score_referents(x, codes, start, matches, slope, far, num, code, unary, lo, hi, acc)


@kernel
def best_two(acc, side, lo, n):
    return score.best_two(acc, side, lo, n)


@kernel
def best_augmented(acc, label, normal, lo, n, y, to_attack, to_normal):
    return score.best_augmented(acc, label, normal, lo, n, y, to_attack, to_normal)


def test_a_part_of_a_kernel_called_from_python_crashes_nothing():
    with pytest.raises(TypeError, match="best_two is a part of other kernels"):
        score.best_two(np.zeros(1, np.float32), np.zeros(1, np.uint8), 0, 1)


def random_problem(seed: int, n: int = 60, features: int = 6, widths: tuple[int, ...] = (2, 5, 2, 9)):
    rng = np.random.default_rng(seed)
    layout = WeightLayout(features, widths, 1)
    # Few distinct values, so that equal scores occur and the tie rule is tested.
    num = (rng.integers(0, 5, (features, n)) / 4).astype(np.float32)
    code = (
        np.stack([rng.integers(0, w, n) for w in widths]).astype(np.uint16) if widths else np.zeros((0, n), np.uint16)
    )
    w = rng.normal(size=layout.dimension) * (rng.random(layout.dimension) < 0.8)
    return rng, layout, num, code, w


def folded(w, layout, sign, far=None):
    offset = np.concatenate([[0], np.cumsum(layout.width)])[: len(layout.width)].astype(np.int64)
    slope = np.zeros(layout.features, np.float32)
    lookups = [np.zeros(int(layout.width.sum()), np.float32) for _ in range(3)]
    base = score.fold_weights(w, layout.features, sign, layout.at, layout.width, offset, slope, *lookups)
    limit = np.full(layout.features, np.inf, np.float32) if far is None else far.astype(np.float32)
    return score.Scorer(np.float32(base), slope, limit, *lookups, offset)


def kernel_scores(x_num, x_code, num, code, w, layout, sign, lo=0, hi=None, far=None):
    scorer = folded(w, layout, sign, far)
    hi = num.shape[1] if hi is None else hi
    acc = np.zeros(hi - lo + score.LANES, np.float32)
    num, code = score.score_columns(num.T), score.score_columns(code.T)
    unary = score.unary_parts(code, scorer)
    start, matches = scorer.base, np.zeros(len(code), np.float32)
    for s, c in enumerate(x_code):
        start += scorer.own[scorer.offset[s] + c]
        matches[s] = scorer.match[scorer.offset[s] + c]
    score_referents(x_num, x_code, start, matches, scorer.slope, scorer.far, num, code, unary, lo, hi, acc)
    return acc[: hi - lo]


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(
    ("features", "widths"), [(6, (2, 5, 2, 9)), (1, ()), (0, (4,)), (9, (2, 2)), (33, (4, 71, 12, 2))]
)
def test_scores_equal_their_numpy_twin_bit_for_bit(features, widths, sign):
    for seed in range(5):
        rng, layout, num, code, w = random_problem(seed, 100, features, widths)
        for lo, hi in ((0, 100), (3, 71), (50, 50)):
            j = int(rng.integers(100))
            for far in (None, rng.choice([0.1, 0.3, 0.5, 2.0], features)):
                past = num[:, lo:hi], code[:, lo:hi]
                want = twins.scores(num[:, j], code[:, j], *past, w, layout, sign, np.float32, far)
                got = kernel_scores(num[:, j].copy(), code[:, j].copy(), num, code, w, layout, sign, lo, hi, far)
                assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("sign", [-1, 1])
def test_folded_scores_equal_the_dense_product_of_weights_and_features(sign):
    _, layout, num, code, w = random_problem(1)
    for j in range(20):
        got = kernel_scores(num[:, j].copy(), code[:, j].copy(), num, code, w, layout, sign)
        dense = [w @ twins.pair_features(num[:, i], code[:, i], num[:, j], code[:, j], layout, sign) for i in range(60)]
        np.testing.assert_allclose(got, dense, rtol=0, atol=2e-5)


def test_fixture_f8_pair_features():
    layout = WeightLayout(features=1, widths=(2, 4), roots=0)
    a = np.array([0.3], np.float64), np.array([1, 1], np.uint16)  # bit set, tcp
    b = np.array([0.8], np.float64), np.array([0, 2], np.uint16)  # bit not set, udp
    ab = [0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1]
    aa = [1, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1]
    np.testing.assert_allclose(twins.pair_features(*a, *b, layout, 1), [1.5, *ab])
    np.testing.assert_allclose(twins.pair_features(*a, *a, layout, 1), [1.0, *aa])
    np.testing.assert_allclose(twins.pair_features(*a, *b, layout, -1), [0.5, *ab])
    np.testing.assert_allclose(twins.pair_features(*a, *a, layout, -1), [1.0, *aa])


def test_the_sign_of_the_continuous_feature_only_shifts_the_root():
    # Spec 6.3: weights w with "plus" equal -w with "minus" once the root is shifted by -2 sum w.
    _, layout, num, code, w = random_problem(2, 200, 5, (3, 2))
    flipped = w.copy()
    flipped[: layout.features] *= -1
    shift = 2 * w[: layout.features].sum()
    for j in range(100, 200):
        plus = np.array([w @ twins.phi(i, j, num, code, layout, 1) for i in range(100)])
        minus = np.array([flipped @ twins.phi(i, j, num, code, layout, -1) for i in range(100)])
        np.testing.assert_allclose(plus, minus + shift)


def test_unknown_values_match_nothing_not_even_themselves():
    layout = WeightLayout(0, (4,), 0)
    w = unlearned_weights(layout, -1)
    unknown, known = np.zeros(1, np.uint16), np.ones(1, np.uint16)
    none = np.zeros(0, np.float32)
    refs = np.array([[0, 1]], np.uint16)
    assert kernel_scores(none, unknown, np.zeros((0, 2), np.float32), refs, w, layout, -1).tolist() == [0, 0]
    assert kernel_scores(none, known, np.zeros((0, 2), np.float32), refs, w, layout, -1).tolist() == [0, 1]


@given(st.lists(st.tuples(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), st.sampled_from([0, 1, 2])), max_size=40))
def test_best_two_takes_the_first_maximum_of_each_side(pairs):
    acc = np.array([s for s, _ in pairs], np.float32)
    side = np.array([k for _, k in pairs], np.uint8)
    normal, normal_at, other, other_at = best_two(acc, side, 0, len(pairs))
    for which, value, at in ((1, normal, normal_at), (2, other, other_at)):
        mine = [(s, k) for k, (s, b) in enumerate(zip(acc, side, strict=True)) if b == which]
        best = max((s for s, _ in mine), default=-np.inf)
        assert value == best
        assert at == next((k for s, k in mine if s == best), -1)


@given(
    st.lists(st.tuples(st.sampled_from([-1.0, 0.0, 1.0]), st.integers(0, 2)), max_size=30),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0.0, 1.0, 2.0]),
)
def test_loss_augmented_best_link_is_the_first_maximum_of_the_augmented_scores(pairs, to_attack, to_normal):
    acc = np.array([s for s, _ in pairs])
    label = np.array([y for _, y in pairs], np.int32)
    worst, worst_at, right, right_at = best_augmented(acc, label, label == 0, 0, len(pairs), 1, to_attack, to_normal)
    augmented = np.where(label == 1, acc, acc + np.where(label == 0, to_normal, to_attack))
    same = np.where(label == 1, acc, -np.inf)
    assert worst_at == (int(np.argmax(augmented)) if pairs else -1)
    assert worst == (augmented.max() if pairs else -np.inf)
    assert right_at == (int(np.argmax(same)) if (label == 1).any() else -1)
    assert right == (same.max() if pairs else -np.inf)


PRICES = ArcPrices(false_alarm=3.0, false_root=2.5, miss=0.25, wrong_attack=0.01, known_root=0.4, wrong_normal=0.5)
IS_NORMAL = np.array([True, False, False, True])


def stream_of(num, code, label) -> Batch:
    return Batch(num=num.T, code=code.T, label=label)


@pytest.mark.parametrize(
    ("update", "absent", "sign", "prices"),
    [
        *itertools.product(["lsp", "lspa"], ["window", "global"], [-1, 1], [None]),
        *itertools.product(["lsp", "lspa"], ["window", "global"], [-1], [PRICES]),
    ],
)
def test_training_equals_its_numpy_twin_bit_for_bit(update, absent, sign, prices):
    for seed in range(3):
        rng, layout, num, code, _ = random_problem(seed, 80, 5, (2, 4))
        label = rng.integers(0, 4, 80).astype(np.int32)
        rule = StreamRule(
            update=update, training_window=7, epochs=3, C=0.7, r=0.3, absent=absent, sign=sign, cap=0.5, prices=prices
        )
        outputs = []
        fit = train_stream(
            stream_of(num, code, label), layout.widths, rule, is_normal=IS_NORMAL, on_outputs=outputs.append
        )
        last, averaged, trace = twins.train(
            num, code, label, layout, window=7, C=0.7, r=0.3, absent=absent, update=update, sign=sign, cap=0.5,
            epochs=3, prices=prices, is_normal=IS_NORMAL,
        )  # fmt: skip
        assert all(outputs[epoch - 1][j] == h_hat for epoch, j, h_hat, *_ in trace)
        assert sum(e.updates for e in fit.epochs) == len(trace)
        assert sum(e.loss for e in fit.epochs) >= sum(t[4] for t in trace) - 1e-9
        assert fit.last.tobytes() == last.tobytes()
        assert fit.averaged.tobytes() == averaged.tobytes()


F9_VALUES = np.array([0.1, 0.9, 0.2, 0.8, 0.5, 0.15], np.float32)
F9_CLASSES = np.array([0, 1, 0, 1, 2, 0], np.int32)


def test_fixture_f9_training_trace():
    layout = WeightLayout(1, (), 1)
    no_code = np.zeros((0, 6), np.uint16)
    _, _, trace = twins.train(
        F9_VALUES[None], no_code, F9_CLASSES, layout, window=3, C=1, r=1, absent="window", update="lsp", sign=-1,
        cap=np.inf, epochs=2,
    )  # fmt: skip
    steps = [(epoch, j + 1, h_hat + 1, h_star + 1) for epoch, j, h_hat, h_star, _, _ in trace]
    assert steps == [
        (1, 2, 1, 0), (1, 3, 0, 1), (1, 4, 0, 2), (1, 5, 3, 0), (1, 6, 0, 3),
        (2, 2, 1, 0), (2, 3, 0, 1), (2, 5, 3, 0), (2, 6, 5, 3),
    ]  # fmt: skip
    weights = np.cumsum([g for *_, g in trace], axis=0)
    printed = [[-0.2, 1], [0.7, 0], [1.6, -1], [0.9, 0], [1.85, -1], [1.65, 0], [2.55, -1], [1.85, 0], [2.15, 0]]
    np.testing.assert_allclose(weights, printed, atol=1e-6)
    fit = train_stream(stream_of(F9_VALUES[None], no_code, F9_CLASSES), (), StreamRule(training_window=3, epochs=2))
    np.testing.assert_allclose(fit.last, [2.15, 0], atol=1e-6)
    assert [e.updates for e in fit.epochs] == [5, 4]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_the_segment_update_equals_the_update_on_the_mistaken_record(seed):
    # Spec 6.4: for a correct record h^ = h*, so its terms cancel out of the segment's update.
    rng, layout, num, code, _ = random_problem(seed, 40, 3, (3,))
    label = rng.integers(0, 3, 40).astype(np.int32)
    rule = StreamRule(training_window=5, epochs=1)
    fit = train_stream(stream_of(num, code, label), layout.widths, rule)
    w = np.zeros(layout.dimension)
    segment = []
    for j in range(40):
        lo = max(0, j - 5)
        s = twins.scores(num[:, j], code[:, j], num[:, lo:j], code[:, lo:j], w, layout, -1, np.float64)
        same = label[lo:j] == label[j]
        augmented = [w[-1] + (2.0 if same.any() else 0.0), *np.where(same, s, s + 1)]
        h_hat = int(np.argmax(augmented)) - 1 + (lo if np.argmax(augmented) else 0)
        h_star = lo + int(np.argmax(np.where(same, s, -np.inf))) if same.any() else -1
        segment.append((h_hat, h_star, j))
        wrong = same.any() if h_hat < 0 else label[h_hat] != label[j]
        if wrong:
            for a, b, k in segment:
                w += twins.phi(b, k, num, code, layout, -1) - twins.phi(a, k, num, code, layout, -1)
            segment = []
    np.testing.assert_allclose(fit.last, w, atol=1e-9)


def test_lspa_meets_the_margin_exactly_after_each_step():
    rng, layout, num, code, _ = random_problem(3, 50, 4, (3,))
    label = rng.integers(0, 3, 50).astype(np.int32)
    _, _, trace = twins.train(
        num, code, label, layout, window=5, C=1.0, r=1.0, absent="window", update="lspa", sign=-1, cap=np.inf, epochs=1
    )  # fmt: skip
    w = np.zeros(layout.dimension)
    for *_, loss, g in trace:
        w += (loss - w @ g) / (g @ g) * g
        assert w @ g == pytest.approx(loss)
    fit = train_stream(
        stream_of(num, code, label), layout.widths, StreamRule(update="lspa", training_window=5, epochs=1)
    )
    np.testing.assert_allclose(fit.last, w, atol=1e-9)


def test_the_learner_stops_making_mistakes_on_separable_streams():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 400).astype(np.int32)
    code = (label + 1)[None].astype(np.uint16)
    noise = rng.random((4, 400)).astype(np.float32)
    for update in ("lsp", "lspa"):
        rule = StreamRule(update=update, training_window=50, epochs=30, C=0.1)
        fit = train_stream(stream_of(noise, code, label), (4,), rule)
        assert fit.epochs[-1].updates < 0.02 * fit.epochs[0].updates + 3


def test_root_features_may_be_absent_or_many():
    rng, layout, num, code, _ = random_problem(4, 50, 4, (3,))
    label = rng.integers(0, 3, 50).astype(np.int32)
    for root, roots in (("none", 0), ("bias", 1), ("attributes", 5)):
        fit = train_stream(stream_of(num, code, label), layout.widths, StreamRule(root=root, training_window=5))
        assert len(fit.last) == 4 + 6 + roots


def test_constants_that_kernels_cannot_import_agree():
    from netclust.linking import verdicts

    assert link.NOVEL_LABEL == NOVEL
    assert (link.NORMAL, link.KNOWN_ATTACK, link.NOVEL) == (verdicts.NORMAL, verdicts.KNOWN_ATTACK, verdicts.NOVEL)
    vias = (verdicts.REFERENCE, verdicts.WINDOW, verdicts.ROOT, verdicts.DESCENDANT)
    assert vias == (link.VIA_REFERENCE, link.VIA_WINDOW, link.VIA_ROOT, link.VIA_DESCENDANT)
    assert (link.ROOT, link.NOTHING) == (verdicts.ROOT_HANDLE, verdicts.NO_REFERENT)
