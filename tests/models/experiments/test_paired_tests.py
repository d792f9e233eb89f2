"""Paired tests: the W of published tables, scipy as a twin, ties, and bad input."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from netclust.errors import InputError
from netclust.models.experiments.paired_tests import EXACT_UP_TO, paired_comparison, paired_t, sign_test, wilcoxon

# Test losses of iterative and spectral k-means: T. Finley, PhD thesis, 2009, tables 4.3 and 4.4.
PRINTED = {
    "WebKB-L": ("45.3 59.8 53.1 47.3", "53.3 56.7 46.6 60.2"),
    "WebKB-N": ("63.0 69.9 68.8 72.6", "61.4 56.8 58.2 66.2"),
    "Synth": ("43.3 53.4 56.0 39.3 40.3", "55.6 58.7 56.7 59.5 63.4"),
    "News": (
        "23.7 12.7 28.1 3.8 15.2 35.9 3.7 3.6 22.7 20.4 24.6 20.2 16.1 12.2 19.7 4.6 15.0 19.4 19.0 5.8 4.8",
        "20.6 22.2 28.7 3.8 14.3 30.4 2.4 4.6 9.5 20.4 23.7 15.8 13.8 11.9 14.9 6.3 16.2 20.3 19.0 11.6 5.8",
    ),
}
TABLES = {name: [[float(word) for word in row.split()] for row in rows] for name, rows in PRINTED.items()}


@pytest.mark.parametrize(
    ("name", "W", "n", "wins"),
    [
        ("WebKB-L", 4, 4, (2, 0, 2)),
        ("WebKB-N", 10, 4, (0, 0, 4)),  # printed as 4, but all four differences have one sign
        ("News", 31, 18, (8, 3, 10)),  # printed as 30
        ("Synth", 15, 5, (5, 0, 0)),
    ],
)
def test_published_tables_give_no_other_w(name, W, n, wins):
    found = paired_comparison(*TABLES[name], better="lower")
    assert (found.ranks.W, found.ranks.n, found.ranks.exact) == (W, n, True)
    assert (found.signs.win, found.signs.tie, found.signs.lose) == wins


def test_published_chances_come_out():
    assert wilcoxon(*TABLES["Synth"]).p_one_sided == 1 / 32
    assert wilcoxon(*TABLES["News"]).p_one_sided == pytest.approx(0.25, abs=0.01)
    assert wilcoxon(*TABLES["WebKB-L"]).p_one_sided > 0.05
    assert wilcoxon(*TABLES["WebKB-N"]).p_one_sided == 1 / 16


def test_published_means_come_out():
    for name, a, b in [
        ("WebKB-L", 51.38, 54.20),
        ("WebKB-N", 68.57, 60.65),
        ("Synth", 46.46, 58.78),
        ("News", 15.77, 15.06),
    ]:
        found = paired_comparison(*TABLES[name])
        assert (found.mean_a, found.mean_b) == (pytest.approx(a, abs=0.006), pytest.approx(b, abs=0.006))
        assert found.difference == pytest.approx(found.mean_a - found.mean_b, abs=1e-12)
        assert found.interval.low <= found.difference <= found.interval.high


@pytest.mark.parametrize("n", [2, 5, 12, 40])
def test_without_ties_nothing_differs_from_scipy(n):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=n), rng.normal(0.3, 1, n)
    ours, theirs = wilcoxon(a, b), stats.wilcoxon(a, b, method="exact")
    assert ours.p == pytest.approx(theirs.pvalue, abs=1e-12)
    assert (n * (n + 1) / 2 - ours.W) / 2 == theirs.statistic  # scipy's is the lesser of the two sums
    t = stats.ttest_rel(a, b)
    assert (paired_t(a, b).t, paired_t(a, b).p) == (pytest.approx(t.statistic, 1e-6), pytest.approx(t.pvalue, 1e-6))
    signs = sign_test(a, b)
    assert signs.p == stats.binomtest(int((a > b).sum()), n).pvalue


def test_with_ties_the_chance_is_that_of_all_signs():
    d = np.array([1.0, 1.0, -2.0, 3.0, 3.0, 3.0, -1.0])
    ranks = stats.rankdata(abs(d))
    W = abs((np.sign(d) * ranks).sum())
    sums = np.array([np.dot(signs, ranks) for signs in product([-1, 1], repeat=len(d))])
    found = wilcoxon(d, np.zeros(7))
    assert (found.W, found.p_one_sided) == (W, pytest.approx((sums >= W).mean(), abs=1e-15))
    assert found.p == pytest.approx((abs(sums) >= W).mean(), abs=1e-15)


def test_the_normal_approximation_takes_over_without_a_jump():
    rng = np.random.default_rng(0)
    d = rng.normal(0.1, 1, EXACT_UP_TO + 1)
    many, fewer = wilcoxon(d, 0 * d), wilcoxon(d[:-1], 0 * d[:-1])
    assert (many.exact, fewer.exact) == (False, True)
    assert many.p == pytest.approx(stats.wilcoxon(d, method="approx").pvalue, rel=1e-9)
    assert stats.wilcoxon(d[:-1], method="approx").pvalue == pytest.approx(fewer.p, rel=0.02)


def test_swapping_the_methods_changes_only_signs():
    a, b = TABLES["News"]
    there, back = paired_comparison(a, b, better="lower"), paired_comparison(b, a, better="lower")
    assert there.ranks == back.ranks
    assert (there.t.t, there.t.p) == (-back.t.t, back.t.p)
    assert (there.signs.win, there.signs.lose) == (back.signs.lose, back.signs.win)
    assert there.signs.p == back.signs.p
    assert there == paired_comparison(a, b, better="lower")


def test_methods_without_a_difference_are_not_told_apart():
    same = paired_comparison([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert (same.t.p, same.ranks.p, same.signs.p, same.signs.tie) == (1.0, 1.0, 1.0, 3)
    assert not same.interval.excludes_zero
    constant = paired_t([2.0, 3.0, 4.0], [1.0, 2.0, 3.0])
    assert (constant.t, constant.p) == (np.inf, 0.0)
    assert paired_t([1.0, 2.0], [2.0, 3.0]).t == -np.inf


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ([1.0, 2.0], [1.0], "one of each a set"),
        ([1.0], [2.0], "at least 2 sets"),
        ([1.0, np.nan], [1.0, 2.0], "not a number"),
        ([[1.0, 2.0]], [[1.0, 2.0]], "one of each a set"),
    ],
)
def test_bad_input_is_refused(a, b, told):
    with pytest.raises(InputError, match=told):
        paired_comparison(a, b)
