"""Coreference metrics: published cases of the reference scorer, the spec's table, definitions, twins, properties."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from coreference_twins import best_by_trying, letters, plain_counts, slow_blocks, slow_cells, slow_sums
from hypothesis import given
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.metrics.clustering_metrics import PrecisionRecall
from netclust.models.coreference import coreference_count_kernels as kernels
from netclust.models.coreference.coreference_metrics import (
    METRICS,
    BlancCounts,
    Counts,
    best_assignment,
    coreference_scores,
    document_counts,
    label_counts,
    mela_of_labels,
    mention_table,
    score_documents,
    total_counts,
)

# What the reference scorer publishes for its test cases (S. Pradhan, X. Luo, M. Recasens, E. Hovy, V. Ng, M. Strube,
# "Scoring coreference partitions of predicted mentions: a reference implementation", ACL 2014;
# github.com/conll/reference-coreference-scorers, test/TestCases.README with LEA, test/CorefMetricTestConfig.pm). Recall
# before precision; of BLANC, those of coreferent pairs, then of pairs apart; 0/0 is as printed there, and means 0.
# Cases F to L are the examples of M. Vilain et al. 1995, D and E those of A. Bagga and B. Baldwin 1998, B and C stand
# for X. Luo et al. 2014. A capital B in A5 and A6 overlaps b and is another mention; in A7 to A9 b itself is repeated.
# Erratum there: the F1 of A9's CEAF_m is printed as 8/14 in the README, while its recall and precision give 8/13, as
# does the configuration of the tests (0.61538).
OFFICIAL = {
    "A1": ("a bc def", "a bc def", "muc 1 1, b3 1 1, ceafm 1 1, ceafe 1 1, blanc 4/4 4/4 11/11 11/11, lea 1 1"),
    "A2": (
        "a bc def", "a de",
        "muc 1/3 1/1, b3 7/18 1, ceafm 3/6 3/3, ceafe 3/5 9/10, blanc 1/4 1/1 2/11 2/2, lea 2/6 1",
    ),
    "A3": (
        "a bc def", "a bcx defy z",
        "muc 3/3 3/5, b3 1 55/108, ceafm 6/6 6/9, ceafe 93/105 93/140, blanc 4/4 4/9 11/11 11/27, lea 1 4/9",
    ),
    "A4": (
        "a bc def", "a bcx dy z",
        "muc 1/3 1/3, b3 5/9 17/42, ceafm 4/6 4/7, ceafe 11/15 11/20, blanc 1/4 1/4 5/11 5/17, lea 3/6 2/7",
    ),
    "A5": (
        "a bc def", "a bcxB dy z",
        "muc 1/3 1/4, b3 5/9 5/16, ceafm 4/6 4/8, ceafe 31/45 31/60, blanc 1/4 1/7 5/11 5/21, lea 3/6 5/24",
    ),
    "A6": (
        "a bc def", "a bcx dy Bz",
        "muc 1/3 1/4, b3 5/9 17/48, ceafm 4/6 4/8, ceafe 11/15 11/20, blanc 1/4 1/5 5/11 5/23, lea 3/6 2/8",
    ),
    "A7": (
        "a bc def", "a bcxb dy z",
        "muc 1/3 1/3, b3 5/9 17/42, ceafm 4/6 4/7, ceafe 11/15 11/20, blanc 1/4 1/4 5/11 5/17, lea 3/6 2/7",
    ),
    "A8": (
        "a bc def", "a bcx dy bz",
        "muc 1/3 1/3, b3 5/9 17/42, ceafm 4/6 4/7, ceafe 11/15 11/20, blanc 1/4 1/4 5/11 5/17, lea 3/6 2/7",
    ),
    "A9": (
        "a bc def", "a bcx dy bbbbbbbbbbz",
        "muc 1/3 1/3, b3 5/9 17/42, ceafm 4/6 4/7, ceafe 11/15 11/20, blanc 1/4 1/4 5/11 5/17, lea 3/6 2/7",
    ),
    "A10": ("a bc def", "a b c d e f", "muc 0/3 0/0, b3 3/6 6/6, blanc 0/4 0/0 11/11 11/15, lea 1/6 1/6"),
    "A11": ("a bc def", "abcdef", "muc 3/3 3/5, b3 6/6 7/18, blanc 4/4 4/15 0/11 0/0, lea 5/6 4/15"),
    "A12": ("a bc def", "a x y c d e z", "muc 0/3 0/0, b3 13/36 4/7, blanc 0/4 0/0 5/11 5/21, lea 1/6 1/7"),
    "A13": ("a bc def", "axycdez", "muc 1/3 1/6, b3 17/36 6/49, blanc 1/4 1/21 0/11 0/0, lea 1/6 1/21"),
    "B1": ("ab cde", "bcx de", "blanc 1/4 1/4 2/6 2/6, lea 1/5 2/5"),
    "C1": ("ab cde fg", "bcx de fg", "blanc 2/5 2/5 10/16 10/16, lea 3/7 4/7"),
    "D1": ("12345 67 89ABC", "12345 6789ABC", "muc 9/9 9/10, b3 12/12 16/21, lea 1 26/36"),
    "E1": ("12345 67 89ABC", "1234589ABC 67", "muc 9/9 9/10, b3 1 7/12, lea 1 29/54"),
    "F1": ("ABCD", "AB CD", "muc 2/3 2/2, lea 2/6 1"),
    "G1": ("AB CD", "ABCD", "muc 2/2 2/3, lea 1 2/6"),
    "H1": ("ABCD", "ABCD", "muc 3/3 3/3, lea 1 1"),
    "I1": ("ABCD", "AB CD", "muc 2/3 2/2, lea 2/6 1"),
    "J1": ("ABC", "AC", "muc 1/2 1/1, lea 1/3 1"),
    "K1": ("BCDEGHJ", "ABC DEF GHI", "muc 3/6 3/6, lea 3/21 3/9"),
    "L1": ("ABC DEFG", "AB CD FGH", "muc 2/5 2/4, lea 5/21 3/7"),
    "M1": ("abcdef", "abcdef", "muc 1 1, b3 1 1, ceafm 1 1, ceafe 1 1, blanc 15/15 15/15 0/0 0/0, lea 1 1"),
    "M2": ("abcdef", "a b c d e f", "muc 0/5 0/0, blanc 0/15 0/0 0/0 0/15, lea 0/6 0/6"),
    "M3": ("abcdef", "ab cde f", "blanc 4/15 4/4 0/0 0/11, lea 4/15 5/6"),
    "M4": ("abcdef", "abcxyz", "blanc 3/15 3/15 0/0 0/0, lea 3/15 3/15"),
    "M5": ("abcdef", "a b c x y z", "muc 0/5 0/0, blanc 0/15 0/0 0/0 0/15, lea 0/6 0/6"),
    "M6": ("abcdef", "ab cxy z", "blanc 1/15 1/4 0/0 0/11, lea 1/15 2/6"),
    "N1": (
        "a b c d e f", "a b c d e f",
        "muc 0/0 0/0, b3 1 1, ceafm 1 1, ceafe 1 1, blanc 0/0 0/0 15/15 15/15, lea 1 1",
    ),
    "N2": ("a b c d e f", "abcdef", "muc 0/0 0/5, blanc 0/0 0/15 0/15 0/0, lea 0/6 0/6"),
    "N3": ("a b c d e f", "ab cde f", "blanc 0/0 0/4 11/15 11/11, lea 1/6 1/6"),
    "N4": ("a b c d e f", "a b c x y z", "muc 0/0 0/0, blanc 0/0 0/0 3/15 3/15, lea 3/6 3/6"),
    "N5": ("a b c d e f", "abcxyz", "blanc 0/0 0/15 0/15 0/0, lea 0/6 0/6"),
    "N6": ("a b c d e f", "ab cxy z", "blanc 0/0 0/4 2/15 2/11, lea 0/6 0/6"),
}  # fmt: skip

# The decimals of CorefMetricTestConfig.pm for BLANC: recall, precision, F1.
OFFICIAL_BLANC = {
    "A1": (1, 1, 1), "A2": (0.21591, 1, 0.35385), "A3": (1, 0.42593, 0.59717), "A4": (0.35227, 0.27206, 0.30357),
    "A5": (0.35227, 0.19048, 0.24716), "A6": (0.35227, 0.20870, 0.25817), "A7": (0.35227, 0.27206, 0.30357),
    "A8": (0.35227, 0.27206, 0.30357), "A9": (0.35227, 0.27206, 0.30357), "A10": (0.5, 0.36667, 0.42308),
    "A11": (0.5, 0.13333, 0.21053), "A12": (0.22727, 0.11905, 0.15625), "A13": (0.125, 0.02381, 0.04),
    "B1": (7 / 24, 7 / 24, 7 / 24), "C1": (0.5125, 0.5125, 0.5125), "M1": (1, 1, 1), "M2": (0, 0, 0),
    "M3": (4 / 15, 1, 8 / 19), "M4": (0.2, 0.2, 0.2), "M5": (0, 0, 0), "M6": (1 / 15, 1 / 4, 2 / 19),
    "N1": (1, 1, 1), "N2": (0, 0, 0), "N3": (11 / 15, 1, 11 / 13), "N4": (0.2, 0.2, 0.2), "N5": (0, 0, 0),
    "N6": (2 / 15, 2 / 11, 2 / 13),
}  # fmt: skip

# F1 as published, where it is a number of its own and not the formula of recall and precision.
OFFICIAL_F1 = {
    ("A2", "b3"): 14 / 25, ("A3", "b3"): 110 / 163, ("A5", "b3"): 0.4, ("A10", "b3"): 2 / 3, ("A11", "b3"): 14 / 25,
    ("D1", "b3"): 0.864864865, ("E1", "b3"): 0.736842105, ("D1", "muc"): 0.947368421, ("A13", "muc"): 2 / 9,
    ("A2", "ceafe"): 0.72, ("A3", "ceafe"): 0.75918, ("A4", "ceafe"): 0.62857, ("A5", "ceafe"): 0.59048,
    ("A2", "ceafm"): 0.66667, ("A5", "ceafm"): 0.57143, ("A7", "ceafm"): 0.61538, ("A9", "ceafm"): 8 / 13,
}  # fmt: skip


def fraction(text: str) -> Fraction:
    return Fraction(0) if text.endswith("/0") else Fraction(text)


def f1(recall: Fraction, precision: Fraction) -> Fraction:
    return 2 * recall * precision / (recall + precision) if recall + precision else Fraction(0)


def exactly(scores: PrecisionRecall, recall: Fraction, precision: Fraction) -> None:
    assert scores == pytest.approx((float(precision), float(recall), float(f1(recall, precision))), abs=1e-12)


@pytest.mark.parametrize("case", OFFICIAL)
def test_no_published_result_of_the_reference_scorer_is_missed(case: str) -> None:
    key, response, published = OFFICIAL[case]
    counts = document_counts(key.split(), response.split())
    scores = coreference_scores(counts)
    for line in published.split(", "):
        name, *values = line.split()
        exact = [fraction(value) for value in values]
        if name != "blanc":
            exactly(scores[name], *exact)
            continue
        blanc: Any = counts["blanc"]
        exactly(blanc.coreferent.scores(), *exact[:2])
        exactly(blanc.apart.scores(), *exact[2:])
        sums = [(*map(int, r.split("/")), *map(int, p.split("/"))) for r, p in (values[:2], values[2:])]
        assert [tuple(kind) for kind in blanc] == sums
    for (of, name), value in OFFICIAL_F1.items():
        if of == case:
            assert scores[name].f1 == pytest.approx(value, abs=5e-6 if len(repr(value)) < 9 else 1e-9)


@pytest.mark.parametrize("case", OFFICIAL_BLANC)
def test_blanc_is_the_published_one_where_a_kind_of_pairs_is_absent(case: str) -> None:
    recall, precision, both = OFFICIAL_BLANC[case]
    key, response, _ = OFFICIAL[case]
    found = score_documents([key.split()], [response.split()], ["blanc"])["blanc"]
    assert (found.recall, found.precision, found.f1) == pytest.approx((recall, precision, both), abs=5e-6)


def test_the_worked_example_of_the_reference_implementation_comes_out() -> None:
    """The clusters that Pradhan et al. 2014 go through; every metric by hand from its definition, as they do."""
    counts: Any = document_counts(["abc", "defg"], ["ab", "cd", "fghi"])
    scores = coreference_scores(counts)
    exactly(scores["muc"], Fraction(2, 5), Fraction(2, 5))
    exactly(scores["b3"], Fraction(35, 84), Fraction(4, 8))
    exactly(scores["ceafm"], Fraction(4, 7), Fraction(4, 8))
    exactly(scores["ceafe"], Fraction(13, 20), Fraction(13, 30))
    assert counts["blanc"] == BlancCounts(Counts(2, 9, 2, 8), Counts(8, 12, 8, 20))
    assert scores["blanc"].f1 == pytest.approx((4 / 17 + 1 / 2) / 2)
    exactly(scores["mentions"], Fraction(6, 7), Fraction(6, 8))


SPEC_KEY = "16 2357 4"
SPEC = {
    # response: MUC, B3, CEAF_e as precision, recall, F1; MELA x 100
    "16 2 3 4 5 7": ("1 1/4 2/5", "1 4/7 8/11", "2/5 4/5 8/15", 55.353535),
    "23 1 4 5 6 7": ("1 1/4 2/5", "1 1/2 2/3", "7/18 7/9 14/27", 52.839506),
    "1234567": ("2/3 1 4/5", "3/7 1 3/5", "8/11 8/33 4/11", 58.787879),
    "1 2 3 4 5 6 7": ("0 0 0", "1 3/7 3/5", "31/105 31/45 31/75", 33.777778),
    "164 23 57": ("3/4 3/4 3/4", "17/21 5/7 85/112", "22/45 22/45 22/45", 66.593915),
    "16 238 57 9": ("3/4 3/4 3/4", "2/3 4/7 8/13", "5/12 5/9 10/21", 61.385836),
    "16 2357 4": ("1 1 1", "1 1 1", "1 1 1", 100.0),
}


@pytest.mark.parametrize("response", SPEC)
def test_the_table_of_the_specification_holds(response: str) -> None:
    *parts, mela = SPEC[response]
    scores = score_documents([SPEC_KEY.split()], [response.split()])
    for name, text in zip(("muc", "b3", "ceafe"), parts, strict=True):
        assert scores[name] == pytest.approx([float(Fraction(x)) for x in str(text).split()], abs=1e-12)
    assert 100 * scores["mela"].f1 == pytest.approx(mela, abs=5e-7)


@pytest.mark.parametrize(("key", "response"), [("", ""), ("ab c", ""), ("", "ab c")])
def test_an_empty_side_scores_nothing_instead_of_dividing_by_it(key: str, response: str) -> None:
    for scores in score_documents([key.split()], [response.split()]).values():
        assert scores == PrecisionRecall(0.0, 0.0, 0.0)
    assert score_documents([], [])["mela"] == PrecisionRecall(0.0, 0.0, 0.0)


def test_the_score_of_documents_is_not_the_mean_of_their_scores() -> None:
    key, response = ["ab", "cdef gh"], ["ab", "cd ef gh"]
    documents = [[text.split()] for text in (key[0], key[1], response[0], response[1])]
    together = score_documents([d[0] for d in documents[:2]], [d[0] for d in documents[2:]])
    assert together["muc"] == pytest.approx((1.0, 4 / 5, 8 / 9))
    assert together["b3"] == pytest.approx((1.0, (2 + 2 + 2) / 8, 6 / 7))
    assert together["blanc"] == pytest.approx(((1 + 8 / 12) / 2, (4 / 8 + 1) / 2, (2 / 3 + 4 / 5) / 2))


def test_a_name_that_is_no_metric_is_refused() -> None:
    with pytest.raises(InputError, match="no metric 'bcub': there are mentions, muc"):
        score_documents([], [], ["bcub"])


def test_documents_and_labels_that_do_not_pair_up_are_refused() -> None:
    with pytest.raises(InputError, match="1 documents in the key and 0 in the response"):
        score_documents([[]], [])
    with pytest.raises(InputError, match="2 labels in the key and 1 in the response"):
        label_counts([0, 1], [0])
    with pytest.raises(InputError, match="one whole number a mention"):
        mela_of_labels([0.5, 1.0], [0, 1])


def test_only_what_was_asked_for_is_counted() -> None:
    assert list(document_counts(["ab"], ["ab"], ["lea"])) == ["lea"]
    assert list(document_counts(["ab"], ["ab"], ["mela"])) == ["muc", "b3", "ceafe"]
    assert list(score_documents([["ab"]], [["ab"]], ["mela", "lea"])) == ["mela", "lea"]


# Properties

MENTIONS = 9
labels = st.lists(st.integers(-1, 4), min_size=MENTIONS, max_size=MENTIONS)


def clusters(label: list[int]) -> list[frozenset[int]]:
    """The clusters of a labelling by number, the empty ones left out."""
    return [frozenset(i for i, number in enumerate(label) if number == c) for c in sorted(set(label) - {-1})]


def flat(counts: Any) -> list[float]:
    return [x for c in (counts if isinstance(counts[0], tuple) else [counts]) for x in c]


@given(labels, labels)
def test_sums_are_those_of_the_definitions_on_sets(y: list[int], z: list[int]) -> None:
    key, response = clusters(y), clusters(z)
    plain = plain_counts(key, response)
    for found in (document_counts(key, response), label_counts(y, z)):
        for name, counts in found.items():
            assert flat(counts) == pytest.approx(flat(plain[name]), abs=1e-12), name


@given(labels, labels)
def test_kernels_equal_their_twins(y: list[int], z: list[int]) -> None:
    table = mention_table(y, z)
    rows, columns = ([side.count(c) for c in range(max(side) + 1)] for side in (y, z))
    cells = slow_cells(y, z)
    assert (table.rows.tolist(), table.columns.tolist()) == (rows, columns)
    assert list(zip(table.row.tolist(), table.column.tolist(), table.cells.tolist(), strict=True)) == cells
    sums = np.empty((6, 4))
    kernels.sum_table(table.rows, table.columns, table.row, table.column, table.cells, sums)
    assert [tuple(line) for line in sums.tolist()] == slow_sums(rows, columns, cells)
    for by_mention in (False, True):
        small, shapes, values = kernels.assignment_blocks(
            table.rows, table.columns, table.row, table.column, table.cells, by_mention
        )
        assert (small, shapes.tolist(), values.tolist()) == slow_blocks(rows, columns, cells, by_mention)


@given(labels, labels)
def test_no_one_to_one_map_is_better_than_the_assignment(y: list[int], z: list[int]) -> None:
    for by_mention in (False, True):
        found = best_assignment(mention_table(y, z), by_mention=by_mention)
        assert found == pytest.approx(best_by_trying(clusters(y), clusters(z), by_mention), abs=1e-12)


@given(labels, labels)
def test_swapping_key_and_response_swaps_precision_and_recall(y: list[int], z: list[int]) -> None:
    one, other = coreference_scores(label_counts(y, z)), coreference_scores(label_counts(z, y))
    for name in METRICS:
        if name == "blanc":  # not so where the key lacks a kind of pairs: what counts then is up to the key alone
            kinds: Any = label_counts(y, z)["blanc"]
            if any(bool(kind.wanted) != bool(kind.claimed) for kind in kinds):
                continue
        swapped = (other[name].recall, other[name].precision, other[name].f1)
        assert one[name] == pytest.approx(swapped, abs=1e-12), name


@given(labels, labels)
def test_scores_are_fractions_and_a_perfect_response_gets_all(y: list[int], z: list[int]) -> None:
    for scores in coreference_scores(label_counts(y, z)).values():
        assert all(0.0 <= part <= 1.0 + 1e-12 for part in scores)
    perfect = coreference_scores(label_counts(y, y))
    linked = any(len(cluster) > 1 for cluster in clusters(y))
    for name in METRICS:
        there = {"muc": linked, "mela": linked, "blanc": len(y) - y.count(-1) > 1}.get(name, any(c >= 0 for c in y))
        if there:
            assert perfect[name] == pytest.approx((1.0, 1.0, 1.0), abs=1e-12), name


@given(st.lists(st.tuples(labels, labels), min_size=1, max_size=4))
def test_sums_over_documents_are_those_of_one_long_document_where_pairs_within_count(
    pairs: list[tuple[list[int], list[int]]],
) -> None:
    total: Any = total_counts(label_counts(y, z) for y, z in pairs)
    long: Any = document_counts(
        [{(d, m) for m in c} for d, (y, _) in enumerate(pairs) for c in clusters(y)],
        [{(d, m) for m in c} for d, (_, z) in enumerate(pairs) for c in clusters(z)],
    )
    for name in ("mentions", "muc", "b3", "ceafm", "ceafe", "lea"):
        assert total[name] == pytest.approx(long[name], abs=1e-9), name
    assert total["blanc"].coreferent == long["blanc"].coreferent  # those apart are never counted across documents


@given(labels, labels, st.permutations(range(MENTIONS)), st.permutations(range(5)))
def test_neither_order_of_mentions_nor_numbers_of_clusters_matter(
    y: list[int], z: list[int], order: list[int], numbers: list[int]
) -> None:
    assert label_counts([y[i] for i in order], [z[i] for i in order]) == label_counts(y, z)
    renamed = [10**12 + numbers[c] if c >= 0 else -7 for c in z]
    for name, counts in label_counts(y, renamed).items():
        assert flat(counts) == pytest.approx(flat(label_counts(y, z)[name]), abs=1e-12)


def test_a_large_document_is_scored_as_by_the_definitions() -> None:
    random = np.random.default_rng(0)
    y, z = random.integers(-1, 60, 300), random.integers(-1, 80, 300)
    near = np.where(random.random(300) < 0.7, y, z)
    for response in (z, near, np.zeros(300, int), np.arange(300)):
        plain: Any = plain_counts(clusters(y.tolist()), clusters(response.tolist()))
        for name, counts in label_counts(y, response).items():
            assert flat(counts) == pytest.approx(flat(plain[name]), rel=1e-9), name
        three = [coreference_scores(label_counts(y, response))[name].f1 for name in ("muc", "b3", "ceafe")]
        assert mela_of_labels(y, response) == pytest.approx(sum(three) / 3, abs=1e-12)


def test_repeated_mentions_count_where_they_come_first() -> None:
    assert letters("a bcx dy bz") == [{"a"}, {"b", "c", "x"}, {"d", "y"}, {"z"}]
    for key, response, _ in OFFICIAL.values():
        once: Any = document_counts(letters(key), letters(response))
        assert document_counts(key.split(), response.split()) == once
