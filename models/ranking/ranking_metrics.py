"""How good rankings are: average precision, reciprocal rank, precision at 1, and their means over queries.

A ranking is judged by the labels of its items in ranked order, right (above 0) or wrong:

>>> average_precision([1, 0, 1, 0]).__round__(6), reciprocal_rank([0, 0, 1, 1]).__round__(6), precision_at([0, 1], 1)
(0.833333, 0.333333, 0.0)
>>> measure_rankings([[0, 1, 0, 1], [1, 0, 0]])
RankingScores(map=0.75, mrr=0.75, p1=0.5, queries=2, skipped=0)

A query without a right item has no average precision: it is not counted, and told (`skipped`).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import ArrayLike

__all__ = ["RankingScores", "average_precision", "measure_rankings", "precision_at", "reciprocal_rank"]


class RankingScores(msgspec.Struct, frozen=True):
    """Means over the queries that have a right item, as fractions."""

    map: float
    mrr: float
    p1: float
    queries: int
    skipped: int


def average_precision(ranked: ArrayLike) -> float:
    """The mean, over right items, of the share of right ones down to them."""
    places = np.flatnonzero(np.asarray(ranked) > 0) + 1
    return float((np.arange(1, len(places) + 1) / places).mean()) if len(places) else float("nan")


def reciprocal_rank(ranked: ArrayLike) -> float:
    """1 over the place of the first right item."""
    places = np.flatnonzero(np.asarray(ranked) > 0)
    return 1.0 / (int(places[0]) + 1) if len(places) else float("nan")


def precision_at(ranked: ArrayLike, k: int) -> float:
    """The share of right items among the first k."""
    return float((np.asarray(ranked)[:k] > 0).sum() / k)


def measure_rankings(rankings: Iterable[ArrayLike]) -> RankingScores:
    """MAP, MRR and P@1 of the labels of each query's items, in ranked order."""
    given = [np.asarray(ranked) for ranked in rankings]
    judged = [ranked for ranked in given if (ranked > 0).any()]
    if not judged:
        return RankingScores(float("nan"), float("nan"), float("nan"), 0, len(given))
    return RankingScores(
        float(np.mean([average_precision(ranked) for ranked in judged])),
        float(np.mean([reciprocal_rank(ranked) for ranked in judged])),
        float(np.mean([precision_at(ranked, 1) for ranked in judged])),
        len(judged),
        len(given) - len(judged),
    )
