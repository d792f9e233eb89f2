"""Hashed pairs for tests: random ones, those of the fixtures, and their twins in dense arrays."""

from __future__ import annotations

import numpy as np

from netclust.structures.hashed_pairs import HashedPairs
from netclust.structures.pairs import PairIndex, StoredPairs

UNIT = 5
"""Fixture F5's distances are fifths; its features times 5 are whole numbers, so slots that are there several times."""


def random_pairs(rng, n, dimension=6, reach=None, most=4):
    """n items, each paired with at most `reach` before it; slots may be there twice."""
    counts = [min(j, int(rng.integers(0, n)) if reach is None else reach) for j in range(1, n)]
    rows = [rng.integers(0, dimension, rng.integers(0, most + 1)).tolist() for _ in range(sum(counts))]
    return HashedPairs.of_rows(n, dimension, counts, rows)


def dense_psi(x):
    """Features of the rows as an array."""
    psi = np.zeros((len(x.at) - 1, x.dimension))
    for r in range(len(psi)):
        np.add.at(psi[r], x.slots[x.at[r] : x.at[r + 1]], 1.0)
    return psi


def stored(x):
    """The same pairs as `StoredPairs`."""
    return StoredPairs(x.items, dense_psi(x), PairIndex(*x.index))


def pairs_of_scores(n, scores):
    """All pairs, each with a slot of its own: the weights are the scores. Rows are those of the later items."""
    size = n * (n - 1) // 2
    x = HashedPairs.of_rows(n, size, list(range(1, n)), [[r] for r in range(size)])
    return x, np.array([scores[pair] for pair in zip(x.index.left.tolist(), x.index.right.tolist(), strict=True)])


def f5_pairs():
    """Fixture F5 times 5: [same colour, distance, not the root].

    The root's own feature becomes one of all pairs with its weight turned round: every tree loses the same by it.
    """
    a, colour = [0, 1, 5], [0, 0, 1]
    rows = [
        [0] * (UNIT * (colour[i] == colour[j])) + [1] * abs(a[i] - a[j]) + [2] * UNIT
        for j in range(3)
        for i in range(j)
    ]
    return HashedPairs.of_rows(3, 3, [1, 2], rows), np.array([1, 1, 2])


def as_f5(w):
    """Weights of `f5_pairs` as those of the fixture, which has the root's weight last."""
    return np.array([w[0], w[1], -w[2]]) / UNIT
