"""Clustering measures: worked examples of the literature, pairs counted by hand, twins, and properties."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn

from netclust.errors import InputError
from netclust.losses.partition_loss import mitre_loss, pairwise_loss, partition_contingency
from netclust.metrics.clustering_metrics import MEASURES, b3_scores, measure_clustering, measure_sets, muc_scores

labels = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 4), min_size=n, max_size=n), st.lists(st.integers(0, 4), min_size=n, max_size=n)
    )
)


def table(key: str, response: str):
    """Two clusterings written as groups of letters; who is missing from one is alone there."""
    items = sorted(set(key + response) - {" "})
    both = []
    for groups in (key.split(), response.split()):
        where = {item: at for at, group in enumerate(groups) for item in group}
        both.append(np.array([where.get(item, len(groups) + at) for at, item in enumerate(items)]))
    return partition_contingency(*both)


# The examples of M. Vilain et al., "A model-theoretic coreference scoring scheme", 1995, with their recall and
# precision, as S. Pradhan et al. list them for the reference scorer ("Scoring coreference partitions of predicted
# mentions", ACL 2014).
@pytest.mark.parametrize(
    ("key", "response", "recall", "precision"),
    [
        ("ABCD", "AB CD", (2, 3), (2, 2)),
        ("AB CD", "ABCD", (2, 2), (2, 3)),
        ("ABCD", "ABCD", (3, 3), (3, 3)),
        ("ABC", "AC", (1, 2), (1, 1)),
        ("BCDEGHJ", "ABC DEF GHI", (3, 6), (3, 6)),
        ("ABC DEFG", "AB CD FGH", (2, 5), (2, 4)),
        ("12345 67 89ABC", "12345 6789ABC", (9, 9), (9, 10)),
        ("12345 67 89ABC", "1234589ABC 67", (9, 9), (9, 10)),
        ("a bc def", "abcdef", (3, 3), (3, 5)),
    ],
)
def test_muc_gives_no_other_than_the_published_values(key, response, recall, precision):
    found = muc_scores(table(key, response))
    assert found.recall == recall[0] / recall[1]
    assert found.precision == precision[0] / precision[1]


# A. Bagga and B. Baldwin, "Algorithms for scoring coreference chains", 1998: joining a small cluster to a big one costs
# less than joining two big ones; then two cases of the reference scorer.
@pytest.mark.parametrize(
    ("key", "response", "recall", "precision", "f1"),
    [
        ("12345 67 89ABC", "12345 6789ABC", 1, 16 / 21, 0.864864865),
        ("12345 67 89ABC", "1234589ABC 67", 1, 7 / 12, 0.736842105),
        ("a bc def", "a b c d e f", 3 / 6, 1, 0.6667),
        ("a bc def", "abcdef", 1, 7 / 18, 0.5599),
    ],
)
def test_b3_gives_no_other_than_the_published_values(key, response, recall, precision, f1):
    found = b3_scores(table(key, response))
    assert (found.recall, found.precision) == (pytest.approx(recall, abs=1e-12), pytest.approx(precision, abs=1e-12))
    assert found.f1 == pytest.approx(f1, abs=1e-4)


# Fixture F1, key {1,6},{2,3,5,7},{4}: P, R, F1 of MUC, then of B3.
@pytest.mark.parametrize(
    ("response", "muc", "b3"),
    [
        ("16 2 3 4 5 7", ("1", "1/4", "2/5"), ("1", "4/7", "8/11")),
        ("23 1 4 5 6 7", ("1", "1/4", "2/5"), ("1", "1/2", "2/3")),
        ("1234567", ("2/3", "1", "4/5"), ("3/7", "1", "3/5")),
        ("1 2 3 4 5 6 7", ("1", "0", "0"), ("1", "3/7", "3/5")),  # a precision of 0/0 is 1 here, F1 stays 0
        ("164 23 57", ("3/4", "3/4", "3/4"), ("17/21", "5/7", "85/112")),
    ],
)
def test_fixture_f1(response, muc, b3):
    found = table("16 2357 4", response)
    for scores, want in ((muc_scores(found), muc), (b3_scores(found), b3)):
        assert list(scores) == pytest.approx([float(Fraction(part)) for part in want], abs=1e-12)


# Finley 3.2: Delta_M against y = {0,1,2},{3,4}.
@pytest.mark.parametrize(
    ("z", "delta_m"),
    [
        ([0, 0, 0, 1, 1], 0),
        ([0, 1, 2, 3, 4], 100),
        ([0] * 5, 14.286),
        ([0, 0, 1, 1, 1], 33.333),
        ([0, 1, 1, 1, 1], 33.333),
    ],
)
def test_deltas_are_the_losses(z, delta_m):
    y = np.array([0, 0, 0, 1, 1])
    found = measure_clustering(y, z)
    assert found["delta_m"] == pytest.approx(delta_m, abs=1e-3)
    assert found["delta_m"] == pytest.approx(mitre_loss(y, np.array(z)), abs=1e-12)
    assert found["delta_p"] == pytest.approx(pairwise_loss(y, np.array(z)), abs=1e-12)


def test_pairs_counted_by_hand():
    # true pairs 01 02 12 34, found pairs 01 23 24 34: two of each right, 2 + 2 wrong of 10
    found = measure_clustering([0, 0, 0, 1, 1], [0, 0, 1, 1, 1])
    assert (found["pair_precision"], found["pair_recall"], found["pair_f1"]) == (0.5, 0.5, 0.5)
    assert found["rand"] == found["edge_accuracy"] == 0.6
    assert found["delta_p"] == 40
    assert (found["clusters"], found["true_clusters"]) == (2, 2)


@settings(max_examples=80, deadline=None)
@given(labels)
def test_no_measure_differs_from_its_slow_or_scikit_learn_twin(both):
    y, z = (np.array(side) for side in both)
    found = measure_clustering(y, z)
    for ours, theirs in {
        "rand": sklearn.rand_score,
        "adjusted_rand": sklearn.adjusted_rand_score,
        "nmi": sklearn.normalized_mutual_info_score,
        "v_measure": sklearn.v_measure_score,
    }.items():
        assert found[ours] == pytest.approx(theirs(y, z), abs=1e-12)
    pairs = list(combinations(range(len(y)), 2))
    true, claimed = ({p for p in pairs if side[p[0]] == side[p[1]]} for side in (y, z))
    assert found["pair_recall"] == (len(true & claimed) / len(true) if true else 1)
    assert found["pair_precision"] == (len(true & claimed) / len(claimed) if claimed else 1)
    own = [np.flatnonzero(y == y[i]) for i in range(len(y))]
    given_ = [np.flatnonzero(z == z[i]) for i in range(len(y))]
    shared = np.array([len(np.intersect1d(a, b)) for a, b in zip(own, given_, strict=True)])
    assert found["b3_recall"] == pytest.approx(np.mean(shared / [len(a) for a in own]), abs=1e-12)
    assert found["b3_precision"] == pytest.approx(np.mean(shared / [len(b) for b in given_]), abs=1e-12)
    needed = sum(len(set(np.flatnonzero(y == c))) - 1 for c in set(y))
    split = sum((y == c).sum() - len(set(z[y == c])) for c in set(y))
    assert found["muc_recall"] == (split / needed if needed else 1)


@settings(max_examples=80, deadline=None)
@given(labels)
def test_names_and_order_of_items_change_nothing_and_swapping_swaps_precision_and_recall(both):
    y, z = (np.array(side) for side in both)
    found, swapped = measure_clustering(y, z), measure_clustering(z, y)
    renamed = measure_clustering([f"c{-label}" for label in y], (z * 7 + 3) % 50)
    shuffled = measure_clustering(y[::-1], z[::-1])
    mirror = {"precision": "recall", "recall": "precision"}
    other = {
        "homogeneity": "completeness",
        "completeness": "homogeneity",
        "clusters": "true_clusters",
        "true_clusters": "clusters",
    }
    for name in MEASURES:
        assert renamed[name] == pytest.approx(found[name], abs=1e-9)
        assert shuffled[name] == pytest.approx(found[name], abs=1e-9)
        kind, _, part = name.partition("_")
        twin = other.get(name, f"{kind}_{mirror[part]}" if part in mirror else name)
        assert swapped[twin] == pytest.approx(found[name], abs=1e-9)
        if "delta" not in name and "clusters" not in name:
            assert -1 <= found[name] <= 1 + 1e-12


@settings(max_examples=40, deadline=None)
@given(labels)
def test_the_truth_is_perfect_and_nothing_else_is(both):
    y, z = (np.array(side) for side in both)
    perfect = measure_clustering(y, y)
    for name in set(MEASURES) - {"clusters", "true_clusters"}:
        assert perfect[name] == pytest.approx(0 if "delta" in name else 1, abs=1e-9)
    found = measure_clustering(y, z)
    same = found["rand"] == 1
    for name in ("pair_f1", "muc_f1", "b3_f1", "adjusted_rand"):
        assert (found[name] == pytest.approx(1, abs=1e-12)) == same


def test_sets_are_summed_up_over_sets():
    y, z = [0, 0, 0, 1, 1], [0, 0, 1, 1, 1]
    found = measure_sets([(y, y), (y, z), (z, z)])
    assert found["rand"].mean == pytest.approx((1 + 0.6 + 1) / 3)
    assert found["rand"].sd == pytest.approx(np.std([1, 0.6, 1], ddof=1))
    assert list(found) == list(MEASURES)
    assert measure_sets([(y, z)])["delta_p"] == (pytest.approx(40), 0.0)


@pytest.mark.parametrize(
    ("y", "z", "told"),
    [
        ([], [], "at least one item"),
        ([0, 1], [0], "2 true labels and 1 found ones"),
        ([0.0, np.nan], [0, 1], "not a number"),
        ([[0, 1]], [0, 1], "one label an item"),
    ],
)
def test_bad_input_is_refused(y, z, told):
    with pytest.raises(InputError, match=told):
        measure_clustering(y, z)
    with pytest.raises(InputError, match="no sets"):
        measure_sets([])
