"""Two methods on the same sets: is one better, or was it luck? Paired t, Wilcoxon's signed ranks, and counts of wins.

>>> iterative, spectral = [43.3, 53.4, 56.0, 39.3, 40.3], [55.6, 58.7, 56.7, 59.5, 63.4]
>>> ranks = wilcoxon(iterative, spectral)
>>> ranks.W, ranks.n, ranks.p_one_sided
(15.0, 5, 0.03125)
>>> wins = sign_test(iterative, spectral, better="lower")
>>> wins.win, wins.tie, wins.lose
(5, 0, 0)
>>> found = paired_comparison(iterative, spectral, better="lower")
>>> round(found.difference, 2), found.interval.excludes_zero
(-12.32, True)

Differences are `a - b`; those closer than 1e-9 count as equal, so that 23.7 - 20.6 and 3.1 have one rank. W is the sum
of the signed ranks, without its sign, as T. Finley prints it ("Supervised Clustering with Structural SVMs", PhD thesis,
Cornell University, 2009; table 4.5); sets without a difference are left out of it.

F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1, 1945.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.models.experiments.bootstrap import ConfidenceInterval, paired_interval

__all__ = [
    "PairedComparison",
    "PairedT",
    "SignTest",
    "SignedRanks",
    "paired_comparison",
    "paired_t",
    "sign_test",
    "wilcoxon",
]

Better = Literal["higher", "lower"]

EXACT_UP_TO = 200
"""With so many differences the exact distribution of W is still counted; above, it is taken as normal."""

_DECIMALS = 9


class PairedT(msgspec.Struct, frozen=True):
    """Student's t of the differences; p is two-sided."""

    t: float
    n: int
    p: float


class SignedRanks(msgspec.Struct, frozen=True):
    """Wilcoxon's W of the n differences that are not 0; `exact` says whether p was counted over all 2^n signs."""

    W: float
    n: int
    p: float
    p_one_sided: float
    exact: bool


class SignTest(msgspec.Struct, frozen=True):
    """On how many sets a is better, as good, worse; p is two-sided, ties left out."""

    win: int
    tie: int
    lose: int
    p: float


class PairedComparison(msgspec.Struct, frozen=True):
    """Two methods on n sets: means, the difference of a from b with its bootstrap interval, and three tests."""

    n: int
    mean_a: float
    mean_b: float
    difference: float
    interval: ConfidenceInterval
    t: PairedT
    ranks: SignedRanks
    signs: SignTest


def paired_t(a: ArrayLike, b: ArrayLike) -> PairedT:
    """Is the mean difference 0, if differences are normal? Equal differences leave no doubt: p is then 0 or 1."""
    stats = require_optional("scipy.stats", "a paired test")
    d = _differences(a, b)
    if np.ptp(d) == 0:
        return PairedT(float(np.sign(d[0]) * np.inf) if d[0] else 0.0, len(d), 0.0 if d[0] else 1.0)
    t = float(d.mean() / (d.std(ddof=1) / np.sqrt(len(d))))
    return PairedT(t, len(d), float(2 * stats.t.sf(abs(t), len(d) - 1)))


def wilcoxon(a: ArrayLike, b: ArrayLike) -> SignedRanks:
    """Are differences as often and as far above 0 as below? Equal ones share their mean rank, also in the exact p."""
    stats = require_optional("scipy.stats", "a paired test")
    d = _differences(a, b)
    d = d[d != 0]
    if not len(d):
        return SignedRanks(0.0, 0, 1.0, 1.0, exact=True)
    ranks = stats.rankdata(np.abs(d))
    W = float(abs((np.sign(d) * ranks).sum()))
    exact = len(d) <= EXACT_UP_TO
    one_sided = _exact_tail(ranks, W) if exact else float(stats.norm.sf(W / np.sqrt((ranks**2).sum())))
    return SignedRanks(W, len(d), min(1.0, 2 * one_sided), one_sided, exact)


def sign_test(a: ArrayLike, b: ArrayLike, *, better: Better = "higher") -> SignTest:
    """How often a is better than b, and how likely so one-sided a count is by chance."""
    stats = require_optional("scipy.stats", "a paired test")
    d = _differences(a, b) * (1 if better == "higher" else -1)
    win, lose = int((d > 0).sum()), int((d < 0).sum())
    p = float(stats.binomtest(win, win + lose).pvalue) if win + lose else 1.0
    return SignTest(win, len(d) - win - lose, lose, p)


def paired_comparison(a: ArrayLike, b: ArrayLike, *, better: Better = "higher", seed: int = 0) -> PairedComparison:
    """Run every test of two methods on the same sets, and resample the mean differences."""
    first, second = _pair(a, b)
    interval = paired_interval(first[None], second[None], seed=seed)
    return PairedComparison(
        n=len(first),
        mean_a=float(first.mean()),
        mean_b=float(second.mean()),
        difference=interval.difference,
        interval=interval,
        t=paired_t(first, second),
        ranks=wilcoxon(first, second),
        signs=sign_test(first, second, better=better),
    )


def _exact_tail(ranks: NDArray[np.float64], W: float) -> float:
    """The chance of a sum of randomly signed ranks of at least W, each sign as likely."""
    doubled = np.rint(2 * ranks).astype(np.int64)  # mean ranks are halves
    chance = np.zeros(int(doubled.sum()) + 1)
    chance[0] = 1.0
    for rank in doubled:
        moved = np.zeros_like(chance)
        moved[rank:] = chance[: len(chance) - rank]
        chance = (chance + moved) / 2
    # positive ranks that sum to s give the signed sum 2s - total, here in halves
    least = int(np.ceil((doubled.sum() + 2 * W) / 2 - 1e-6))
    return float(min(1.0, chance[least:].sum()))


def _differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    first, second = _pair(a, b)
    return np.round(first - second, _DECIMALS)


def _pair(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(f"paired results have shapes {list(first.shape)} and {list(second.shape)}: one of each a set")
    if len(first) < 2:
        raise InputError(f"a paired test needs at least 2 sets, not {len(first)}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise InputError("a result is not a number: leave out the sets on which a method failed, for both methods")
    return first, second
