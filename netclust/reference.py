"""The reference set: pinned labelled referents drawn from the training records (TR of spec 6.5).

>>> allocate([60, 30, 9, 1], 10)
[5, 3, 1, 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError

Choice = Literal["proportional", "balanced", "normal"]
"""Referents a class: in proportion to its size, to the root of its size, or of normal classes only."""


def allocate(counts: Sequence[int], total: int, balanced: bool = False) -> list[int]:
    """Referents a class: one each, the rest in proportion to class size by largest remainder, never more than exist.

    Balanced: in proportion to the square root of class size.

    >>> allocate([60, 30, 9, 1], 10, balanced=True)
    [4, 3, 2, 1]
    """
    sizes = np.array(counts, np.int64)
    weights = np.sqrt(sizes) if balanced else sizes
    taken = np.minimum(sizes, 1)
    left = min(total, int(sizes.sum())) - int(taken.sum())
    if left < 0:
        raise InputError(f"a reference set of {total} cannot hold one record of each of {int(taken.sum())} classes")
    while left > 0:
        # A class that runs out hands its share to the others, hence the loop.
        open_sizes = np.where(taken < sizes, weights, 0)
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


def draw_reference(
    label: NDArray[np.int32],
    total: int,
    rng: np.random.Generator,
    choice: Choice = "proportional",
    normal: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Rows of a random reference set, in stream order, every class represented; `normal` says which labels are."""
    usable = label >= 0
    if choice == "normal" and normal is not None:
        usable &= normal[label]
    classes, counts = np.unique(label[usable], return_counts=True)
    if len(classes) == 0:
        raise InputError("no labelled record to draw a reference set from")
    rows = [
        rng.choice(np.flatnonzero(label == c), size=k, replace=False)
        for c, k in zip(classes, allocate([int(n) for n in counts], total, choice == "balanced"), strict=True)
    ]
    return np.sort(np.concatenate(rows)).astype(np.int64)
