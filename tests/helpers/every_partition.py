"""All partitions of small sets, sets that the literature names, and random ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.structures.partition import PairScores


@cache
def partitions(items: int) -> NDArray[np.int64]:
    """Every partition as a row of labels that are numbered by first appearance: Bell(items) rows."""
    return np.array(list(_grown([], items)), np.int64).reshape(-1, items)


def _grown(labels: list[int], items: int) -> Iterator[list[int]]:
    if len(labels) == items:
        yield list(labels)
        return
    for label in range(max(labels, default=-1) + 2):
        yield from _grown([*labels, label], items)


@cache
def memberships(items: int) -> NDArray[np.float64]:
    """[partitions, pairs]: 1 where a pair is in one cluster, pairs in the order of `pdist`."""
    rows = partitions(items)
    left, right = np.triu_indices(items, 1)
    return (rows[:, left] == rows[:, right]).astype(np.float64)


def brute_force(scores: PairScores) -> float:
    """The best partition's value by trying them all."""
    matrix = scores.matrix()[np.triu_indices(scores.items, 1)]
    return float((memberships(scores.items) @ matrix).max())


def full_lp(scores: PairScores) -> float:
    """The relaxation with all triangles at once, by another interface and method (scipy, interior point)."""
    from scipy.optimize import linprog

    rows = all_triangles(scores.items)
    solved = linprog(-scores.values, A_ub=rows, b_ub=np.ones(len(rows)), bounds=(0, 1), method="highs-ipm")
    return float(-solved.fun)


def all_triangles(items: int) -> NDArray[np.float64]:
    """Every row e_ij + e_jk - e_ik, one loop a rotation."""
    left, right = np.triu_indices(items, 1)
    number = {pair: at for at, pair in enumerate(zip(left.tolist(), right.tolist(), strict=True))}
    rows = []
    for i, j, k in combinations(range(items), 3):
        for closing in ((i, j), (i, k), (j, k)):
            row = np.zeros(len(left))
            for pair in ((i, j), (i, k), (j, k)):
                row[number[pair]] = -1.0 if pair == closing else 1.0
            rows.append(row)
    return np.array(rows).reshape(-1, len(left))


def random_scores(items: int, rng: Any) -> PairScores:
    return PairScores(items, rng.normal(size=items * (items - 1) // 2))


def planted(items: int, clusters: int, noise: float, seed: int) -> PairScores:
    rng = np.random.default_rng(seed)
    y = rng.integers(clusters, size=items)
    left, right = np.triu_indices(items, 1)
    return PairScores(items, np.where(y[left] == y[right], 1.0, -1.0) + noise * rng.normal(size=len(left)))


def upper(*rows: list[float]) -> PairScores:
    return PairScores(len(rows) + 1, np.array([value for row in rows for value in row], np.float64))


def star(leaves: int) -> PairScores:
    return PairScores(leaves + 1, np.r_[np.ones(leaves), -np.ones(leaves * (leaves - 1) // 2)])


def cycle5() -> PairScores:
    """A cycle of five items joined by 1, its chords -1."""
    left, right = np.triu_indices(5, 1)
    return PairScores(5, np.where(np.isin(right - left, (1, 4)), 1.0, -1.0))


FIGURE_31 = upper(
    [9, -9, 1, -7, -5, -2, -6, -8], [7, 9, -8, -3, -4, 8, -6], [9, -4, -3, -4, -9, -5], [-8, -4, -9, -9, -3],
    [4, 7, -3, -6], [6, -6, -5], [-8, -4], [4],
)  # fmt: skip
FIGURE_32 = upper([9, -4, -1, -7], [7, -3, -8], [2, -4], [9])
FIVE = upper([1, -0.4, -1, 0.2], [0.9, -0.5, -0.3], [0.3, -0.6], [0.7])
"""Fixture F2: five items whose best partition is 0, 1, 2 against 3, 4."""
