"""The reference set: pinned labelled referents drawn from the training records (TR of spec 6.5).

>>> allocate([60, 30, 9, 1], 10)
[5, 3, 1, 1]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError


def allocate(counts: Sequence[int], total: int) -> list[int]:
    """Referents a class: one each, the rest in proportion to class size by largest remainder, never more than exist."""
    sizes = np.array(counts, np.int64)
    taken = np.minimum(sizes, 1)
    left = min(total, int(sizes.sum())) - int(taken.sum())
    if left < 0:
        raise InputError(f"a reference set of {total} cannot hold one record of each of {int(taken.sum())} classes")
    while left > 0:
        # A class that runs out hands its share to the others, hence the loop.
        open_sizes = np.where(taken < sizes, sizes, 0)
        shares = left * open_sizes / open_sizes.sum()
        extra = np.minimum(np.floor(shares).astype(np.int64), sizes - taken)
        rest = left - int(extra.sum())
        by_remainder = np.argsort(-(shares - np.floor(shares)), kind="stable")
        for k in by_remainder[: rest if rest < len(sizes) else 0]:
            if taken[k] + extra[k] < sizes[k]:
                extra[k] += 1
        if not extra.any():
            extra[int(np.argmax(sizes - taken))] = 1
        taken += extra
        left -= int(extra.sum())
    return [int(k) for k in taken]


def draw_reference(label: NDArray[np.int32], total: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of a random reference set, in stream order, every class represented in proportion."""
    classes, counts = np.unique(label[label >= 0], return_counts=True)
    if len(classes) == 0:
        raise InputError("no labelled record to draw a reference set from")
    rows = [
        rng.choice(np.flatnonzero(label == c), size=k, replace=False)
        for c, k in zip(classes, allocate([int(n) for n in counts], total), strict=True)
    ]
    return np.sort(np.concatenate(rows)).astype(np.int64)
