"""Metrics: fixture F11, scikit-learn's numbers where it has them, and brute force where it has not."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from netclust.metrics.detection_metrics import (
    auc,
    average_precision,
    decision_metrics,
    detection_at,
    detection_by,
    roc_points,
    share,
)

FUZZ = settings(max_examples=3000 if os.environ.get("NETCLUST_LONG") else 100, deadline=None)

# Few different values, so that ties are the rule; infinities happen where there is no normal referent.
SCORES = st.sampled_from([-np.inf, -3.5, -1.0, -0.0, 0.0, 1e-30, 0.5, 0.5000001, 7.0, 1e30, np.inf])
RANKED = st.lists(st.tuples(SCORES, st.booleans()), min_size=1, max_size=40)


def columns(ranked: list[tuple[float, bool]]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    return np.array([s for s, _ in ranked], np.float32), np.array([t for _, t in ranked], np.bool_)


def finite(score: NDArray[np.float32]) -> NDArray[np.float64]:
    """The ranks of the scores: the same order and ties, without the infinities that scikit-learn refuses."""
    return np.unique(score, return_inverse=True)[1].astype(np.float64)


def decisions(tp: int, fn: int, fp: int, tn: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    anomalous = np.repeat([True, False, True, False], [tp, fn, fp, tn])
    return anomalous, np.repeat([True, True, False, False], [tp, fn, fp, tn])


def test_f11_comes_out() -> None:
    m = decision_metrics(*decisions(86, 14, 8, 92))
    assert (m.true_positives, m.false_negatives, m.false_positives, m.true_negatives) == (86, 14, 8, 92)
    assert (m.accuracy, m.detection_rate, m.false_positive_rate) == (0.89, 0.86, 0.08)
    assert m.precision == 86 / 94
    assert m.f1 == pytest.approx(2 * (86 / 94) * 0.86 / (86 / 94 + 0.86))


@FUZZ
@given(*(st.integers(0, 50) for _ in range(4)))
def test_the_rates_agree(tp: int, fn: int, fp: int, tn: int) -> None:
    m = decision_metrics(*decisions(tp, fn, fp, tn))
    n = tp + fn + fp + tn
    assert (m.accuracy is None) == (n == 0)
    assert (m.detection_rate is None) == (tp + fn == 0)
    assert (m.false_positive_rate is None) == (fp + tn == 0)
    assert (m.precision is None) == (tp + fp == 0)
    if m.detection_rate is not None and m.false_positive_rate is not None:
        p = (tp + fn) / n
        assert m.accuracy == pytest.approx(m.detection_rate * p + (1 - m.false_positive_rate) * (1 - p))
    if m.precision and m.detection_rate:
        assert m.f1 == pytest.approx(2 / (1 / m.precision + 1 / m.detection_rate))


def test_nothing_divides_by_zero() -> None:
    none = np.zeros(0, np.bool_)
    assert decision_metrics(none, none).accuracy is None
    assert share(0, 0) is None
    empty = np.zeros(0, np.float32)
    assert (auc(empty, none), average_precision(empty, none), detection_at(empty, none, 0.1)) == (None, None, None)
    for truth in (np.ones(3, np.bool_), np.zeros(3, np.bool_)):
        assert auc(np.arange(3.0), truth) is None
        assert detection_at(np.arange(3.0), truth, 0.1) is None
    assert average_precision(np.arange(3.0), np.ones(3, np.bool_)) == 1.0


@FUZZ
@given(RANKED)
def test_auc_equals_scikit_learn(ranked: list[tuple[float, bool]]) -> None:
    score, truth = columns(ranked)
    if truth.all() or not truth.any():
        assert auc(score, truth) is None
    else:
        assert auc(score, truth) == pytest.approx(roc_auc_score(truth, finite(score)), abs=1e-12)


@FUZZ
@given(RANKED)
def test_auc_is_the_chance_of_ranking_right(ranked: list[tuple[float, bool]]) -> None:
    score, truth = columns(ranked)
    found = auc(score, truth)
    if found is not None:
        bad, good = score[truth][:, None], score[~truth][None, :]
        assert found == pytest.approx(((bad > good) + 0.5 * (bad == good)).mean(), abs=1e-12)


@FUZZ
@given(RANKED)
def test_average_precision_equals_scikit_learn(ranked: list[tuple[float, bool]]) -> None:
    score, truth = columns(ranked)
    if truth.any():
        expected = average_precision_score(truth, finite(score))
        assert average_precision(score, truth) == pytest.approx(expected, abs=1e-12)
    else:
        assert average_precision(score, truth) is None


@FUZZ
@given(RANKED, st.sampled_from([0.0, 0.001, 0.01, 0.05, 0.1, 1 / 3, 0.5, 1.0]))
def test_detection_at_a_rate_is_the_best_threshold(ranked: list[tuple[float, bool]], rate: float) -> None:
    score, truth = columns(ranked)
    found = detection_at(score, truth, rate)
    if truth.all() or not truth.any():
        assert found is None
        return
    rates = [((score >= t)[truth].mean(), (score >= t)[~truth].mean()) for t in score]
    assert found == pytest.approx(max([d for d, fpr in rates if fpr <= rate + 1e-9], default=0.0))


@FUZZ
@given(RANKED)
def test_roc_points_keep_ties_together_and_rise(ranked: list[tuple[float, bool]]) -> None:
    score, truth = columns(ranked)
    fp, tp = roc_points(score, truth)
    assert (fp[0], tp[0], fp[-1], tp[-1]) == (0, 0, (~truth).sum(), truth.sum())
    assert (np.diff(fp) >= 0).all()
    assert (np.diff(tp) >= 0).all()
    assert len(fp) == len(np.unique(score)) + 1


@FUZZ
@given(RANKED, st.integers(0, 1000))
def test_the_order_of_records_does_not_matter(ranked: list[tuple[float, bool]], seed: int) -> None:
    score, truth = columns(ranked)
    order = np.random.default_rng(seed).permutation(len(ranked))
    for metric in (auc, average_precision):
        assert metric(score, truth) == pytest.approx(metric(score[order], truth[order]), abs=1e-12)


def test_a_large_stream_does_not_overflow_the_area() -> None:
    n = 400_000
    score = np.arange(n, dtype=np.float32)
    assert auc(score, np.arange(n) >= n // 2) == 1.0
    assert auc(score, np.arange(n) < n // 2) == 0.0


def test_groups_are_counted() -> None:
    anomalous = np.array([True, False, True, True])
    assert detection_by(anomalous, ["dos", "dos", "", "probe"]) == {
        "dos": {"records": 2, "detection_rate": 0.5},
        "probe": {"records": 1, "detection_rate": 1.0},
    }
    assert detection_by(np.zeros(0, np.bool_), []) == {}
