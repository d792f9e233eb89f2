"""Arrays, frames and pair features as item sets: each becomes the same pairs, and what is no set is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from netclust.errors import InputError
from netclust.models.clustering.set_inputs import SetInput, check_labels, sets_from_frame
from netclust.structures.pairs import ComputedPairs, StoredPairs

X = np.array([[0.0, 10.0], [2.0, 10.0], [4.0, 30.0]])
UNITS = np.eye(3)


def features_of(pairs: Any) -> Any:
    return np.column_stack([pairs.scores(unit) for unit in np.eye(pairs.dimension)])


@pytest.mark.parametrize(
    ("relation", "relate"),
    [
        ("difference", lambda a, b: abs(a - b)),
        ("product", lambda a, b: a * b),
        ("gaussian", lambda a, b: np.exp(-((a - b) ** 2))),
    ],
)
def test_pairs_have_the_features_of_their_items(relation: Any, relate: Any) -> None:
    scale = X.std(axis=0)
    (pairs,) = SetInput(relation).learn([X]).features([X])
    wanted = [[*relate(X[i] / scale, X[j] / scale), 1.0] for i, j in ((0, 1), (0, 2), (1, 2))]
    assert np.allclose(features_of(pairs), wanted)
    (bare,) = SetInput(relation, constant=False).learn([X]).features([X])
    assert bare.dimension == 2


def test_the_scale_is_of_all_training_sets() -> None:
    other = np.array([[100.0, 10.0]])
    learned = SetInput().learn([X, other])
    assert learned.scale is not None
    assert np.allclose(learned.scale, np.concatenate([X, other]).std(axis=0))
    (new,) = learned.features([1000 * X])
    assert np.allclose(features_of(new)[0, 0], 2000 / learned.scale[0])


def test_a_feature_that_never_varies_keeps_scale_1() -> None:
    learned = SetInput().learn([np.ones((3, 2))])
    assert learned.scale is not None
    assert learned.scale.tolist() == [1.0, 1.0]


def test_frames_lists_and_integers_equal_their_array() -> None:
    for given in (pd.DataFrame(X, columns=["a", "b"]), X.tolist(), X.astype(int), X.astype(np.float32)):
        learned = SetInput().learn([given])
        assert np.allclose(
            features_of(learned.features([given])[0]), features_of(SetInput().learn([X]).features([X])[0])
        )


def test_a_square_array_gives_the_pairs_of_its_upper_half() -> None:
    square = np.arange(18.0).reshape(3, 3, 2)
    given = SetInput()
    learned = given.learn([square])
    assert learned.scale is None
    (pairs,) = learned.features([square])
    assert features_of(pairs).tolist() == [[2.0, 3.0], [4.0, 5.0], [10.0, 11.0]]


def test_pair_features_are_taken_as_they_are() -> None:
    dense = StoredPairs(3, np.arange(6.0).reshape(3, 2))
    thin = StoredPairs(3, sparse.csr_matrix(np.arange(6.0).reshape(3, 2)))
    computed = ComputedPairs(X[:, :1])
    found = SetInput().learn([dense, thin, computed]).features([dense, thin, computed])
    assert [a is b for a, b in zip(found, (dense, thin, computed), strict=True)] == [True] * 3


@pytest.mark.parametrize(
    ("sets", "told"),
    [
        (X, "give a list of item sets"),
        (pd.DataFrame(X), "give a list of item sets"),
        ([], "there are no item sets"),
        ([X, np.zeros((0, 2))], "set 1 is empty"),
        ([X, np.array([[1.0, np.nan]])], r"set 1, item and feature \[0, 1\] is nan"),
        ([np.array([[1.0, 2.0], [-np.inf, 2.0]])], r"set 0, item and feature \[1, 0\] is -inf"),
        ([X, X[:, :1]], "different numbers of features: 1, 2"),
        ([[["a", "b"]]], "features that are numbers.*TextPairs"),
        ([[[1.0, 2.0], [1.0]]], "features that are numbers"),
        ([np.zeros(3)], r"not of shape \[3\]"),
        ([np.zeros((2, 3, 1))], r"shape \[2, 3, 1\], expected"),
        ([np.zeros((2, 2, 2, 2))], r"not of shape \[2, 2, 2, 2\]"),
        ([X, np.zeros((3, 3, 2))], "set 1: trained were items' features"),
        ([np.zeros((0, 0, 2))], "set 0 is empty"),
        ([np.full((2, 2, 1), np.nan)], "is nan"),
        ([object()], "features that are numbers"),
    ],
)
def test_what_is_no_list_of_sets_is_refused(sets: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        SetInput().learn(sets).features(sets)


def test_new_sets_with_other_features_are_refused() -> None:
    learned = SetInput().learn([X])
    with pytest.raises(InputError, match="set 0 has 1 features an item, trained were 2"):
        learned.features([X[:, :1]])
    with pytest.raises(InputError, match="set 0: trained were items' features"):
        learned.features([StoredPairs(2, np.ones((1, 2)))], 3)
    with pytest.raises(InputError, match=r"set 0, item and feature \[0, 0\] is inf"):
        learned.features([np.array([[np.inf, 1.0]])])
    with pytest.raises(InputError, match="set 0 is empty"):
        learned.features([X[:0]])


def test_labels_of_any_kind_become_the_same_clusters() -> None:
    pairs = SetInput().features([X] * 5)
    given = [["b", "a", "b"], np.array([7, 3, 7]), (True, False, True), pd.Series(["x", "y", "x"]), [2.5, 1.5, 2.5]]
    for found in check_labels(pairs, given):
        assert found.dtype == np.int64
        assert found[0] == found[2] != found[1]


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([], "1 item sets, but clusterings of 0"),
        ([[0, 1]], "set 0 has 3 items, but 2 labels"),
        ([[[0], [1], [2]]], "set 0 has 3 items, but 3 labels"),
        ([["a", None, "b"]], "set 0: item 1 has no label"),
        ([[0.0, 1.0, np.nan]], "set 0: item 2 has no label"),
        ([pd.array([pd.NA, 1, 2], dtype="Int64")], "set 0: item 0 has no label"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        check_labels(SetInput().features([X]), labels)


def test_a_frame_is_cut_by_its_sets() -> None:
    frame = pd.DataFrame({"day": ["t", "m", "t"], "who": ["a", "b", "c"], "size": [3, 4, 5], "age": [1.0, 2.0, 3.0]})
    sets, labels = sets_from_frame(frame, set_column="day", label="who")
    assert [s.tolist() for s in sets] == [[[3.0, 1.0], [5.0, 3.0]], [[4.0, 2.0]]]
    assert [names.tolist() for names in labels] == [["a", "c"], ["b"]]
    sets, _ = sets_from_frame(frame, set_column="day", fields=["age"])
    assert [s.tolist() for s in sets] == [[[1.0], [3.0]], [[2.0]]]
    with pytest.raises(InputError, match="no column 'week': it has day, who, size, age"):
        sets_from_frame(frame, set_column="week")
    with pytest.raises(InputError, match="features that are numbers"):
        sets_from_frame(frame, set_column="day")
    with pytest.raises(InputError, match="no value in column 'day'"):
        sets_from_frame(frame.assign(day=["t", None, "t"]), set_column="day", label="who")


def test_columns_of_a_frame_are_found_by_name() -> None:
    frame = pd.DataFrame({"a": [0.0, 1.0, 4.0], "b": [5.0, 7.0, 1.0]})
    learned = SetInput().learn([frame])
    w = np.array([1.0, -2.0, 0.5])
    expected = learned.features([frame])[0].scores(w)
    np.testing.assert_array_equal(learned.features([frame[["b", "a"]]])[0].scores(w), expected)
    np.testing.assert_array_equal(learned.features([frame.assign(c=1.0)])[0].scores(w), expected)
    with pytest.raises(InputError, match="no column 'b', which was trained on: it has a, z"):
        learned.features([frame.rename(columns={"b": "z"})])


def test_weights_of_pair_features_are_refused_for_items() -> None:
    pairs = StoredPairs(3, np.ones((3, 3)))
    with pytest.raises(InputError, match="trained were pairs' features"):
        SetInput().learn([pairs]).features([X])
