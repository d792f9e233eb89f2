"""Multi-label measures: by hand, and as scikit-learn has them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from netclust.errors import InputError
from netclust.models.multilabel.label_metrics import default_labels, default_loss, hamming_loss, measure_labels


def test_measures_equal_those_by_hand() -> None:
    Y = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    found = np.array([[1, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]])
    scores = measure_labels(Y, found)
    assert scores.rows == 3
    assert scores.hamming_loss == pytest.approx(2 / 12)
    assert scores.hamming_error == pytest.approx(np.std([0.5, 0, 0], ddof=1) / np.sqrt(3))
    assert scores.subset_accuracy == pytest.approx(2 / 3)
    assert scores.example_f1 == pytest.approx((0.5 + 1 + 1) / 3)
    assert scores.micro_f1 == pytest.approx(2 * 2 / (3 + 3))
    assert scores.macro_f1 == pytest.approx((1 + 0 + 1 + 0) / 4)
    assert scores.jaccard == pytest.approx((1 / 3 + 1 + 1) / 3)
    assert (scores.cardinality, scores.predicted_cardinality) == (1, 1)


tables = st.integers(1, 12).flatmap(
    lambda n: st.integers(2, 5).flatmap(
        lambda k: st.tuples(*[st.lists(st.integers(0, 1), min_size=n * k, max_size=n * k) for _ in "ab"]).map(
            lambda both: (np.array(both[0]).reshape(n, k), np.array(both[1]).reshape(n, k))
        )
    )
)


@pytest.mark.peers
@given(tables)
def test_measures_equal_those_of_scikit_learn(given: tuple[np.ndarray, np.ndarray]) -> None:
    Y, found = given
    scores = measure_labels(Y, found)
    assert scores.hamming_loss == pytest.approx(metrics.hamming_loss(Y, found))
    assert scores.subset_accuracy == pytest.approx(metrics.accuracy_score(Y, found))
    for name, average, empty in (("example_f1", "samples", 1), ("micro_f1", "micro", 0), ("macro_f1", "macro", 0)):
        expected = metrics.f1_score(Y, found, average=average, zero_division=empty)
        assert getattr(scores, name) == pytest.approx(expected), name
    alike = metrics.jaccard_score(Y, found, average="samples", zero_division=1)
    assert scores.jaccard == pytest.approx(alike)


def test_the_default_is_the_best_single_labelling() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        Y = (rng.random((9, 3)) < 0.5).astype(np.uint8)
        every = [np.array([n >> k & 1 for k in range(3)]) for n in range(8)]
        best = min(hamming_loss(Y, np.broadcast_to(one, Y.shape)) for one in every)
        assert default_loss(Y) == pytest.approx(best)
    assert default_loss([[0, 1]], [[1, 0]]) == 1.0
    assert default_labels([[1, 0], [0, 0]]).tolist() == [0, 0]  # at one half the label is off


def test_what_is_no_labelling_is_refused() -> None:
    with pytest.raises(InputError, match="neither 0 nor 1"):
        measure_labels([[0.5]], [[1]])
    with pytest.raises(InputError, match="shape"):
        measure_labels([[1, 0]], [[1]])
    with pytest.raises(InputError, match="expected"):
        measure_labels([], [])
    assert np.isnan(measure_labels([[1]], [[1]]).hamming_error)
