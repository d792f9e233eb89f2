"""The reference set: pinned labelled referents drawn from the training records (TR of spec 6.5).

>>> allocate_references([60, 30, 9, 1], 10)
[5, 3, 1, 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.records.batch import Batch

Choice = Literal["proportional", "balanced", "covering", "normal"]
"""Referents a class: in proportion to its size, to the root of its size, or of normal classes only.

`covering` is proportional too, but within a class the records are drawn apart from each other instead
of as they come.
"""

POOL = 20_000
"""Covering draws from so many records of a class, taken at random, or from twice what it needs if that is more."""


def allocate_references(counts: Sequence[int], total: int, balanced: bool = False) -> list[int]:
    """Allocate referents to classes: one each, the rest by largest remainder, never more than exist.

    Balanced: in proportion to the square root of class size.

    >>> allocate_references([60, 30, 9, 1], 10, balanced=True)
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
    apart: Batch | None = None,
) -> NDArray[np.int64]:
    """Rows of a random reference set, in stream order, every class represented; `normal` says which labels are.

    `apart` are the same records in units of difference (`similarity.in_units`): what `covering` goes by.
    """
    usable = label >= 0
    if choice == "normal" and normal is not None:
        usable &= normal[label]
    classes, counts = np.unique(label[usable], return_counts=True)
    if len(classes) == 0:
        raise InputError("no labelled record to draw a reference set from")
    rows = []
    for c, k in zip(classes, allocate_references([int(n) for n in counts], total, choice == "balanced"), strict=True):
        own = np.flatnonzero(label == c)
        if choice == "covering" and apart is not None and 1 < k < len(own):
            own = rng.choice(own, min(len(own), max(POOL, 2 * k)), replace=False)
            rows.append(own[covering_reference(apart[own], k, rng)])
        else:
            rows.append(rng.choice(own, size=k, replace=False))
    return np.sort(np.concatenate(rows)).astype(np.int64)


def covering_reference(batch: Batch, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw k different rows, each likelier the farther it is from those before (as k-means++, distances not squared).

    >>> twins = Batch(num=np.repeat([[0.0], [5.0], [9.0]], 50, axis=0), code=np.zeros((150, 0)))
    >>> sorted(covering_reference(twins, 3, np.random.default_rng(0)) // 50)  # one of each, always
    [np.int64(0), np.int64(1), np.int64(2)]
    """
    from netclust.kernels.linking.covering_sample import draw_cover, make_room
    from netclust.kernels.linking.score import score_columns

    num, code = np.ascontiguousarray(batch.num, np.float32), np.ascontiguousarray(batch.code, np.uint16)
    out = np.empty(k, np.int64)
    room = make_room(len(batch), num.shape[1], code.shape[1])
    draw_cover(
        num, code, score_columns(num), score_columns(code), int(rng.integers(len(batch))), rng.random(k), room, out
    )
    return out
