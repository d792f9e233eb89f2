"""Covering: records drawn so that what is far from those drawn before is likelier to come next."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import borrowing, kernel
from netclust.kernels.linking.score import LANES, score_referents


class Room(NamedTuple):
    """What covering works with: room for each row, and weights that make a score of a distance."""

    acc: NDArray[np.float32]
    unary: NDArray[np.float32]
    nearest: NDArray[np.float32]
    drawn: NDArray[np.bool_]
    slope: NDArray[np.float32]
    far: NDArray[np.float32]
    same: NDArray[np.float32]


def make_room(rows: int, numbers: int, codes: int) -> Room:
    """Return the room that `cover` needs for so many rows with so many numbers and codes each."""
    return Room(
        acc=np.empty(rows + LANES, np.float32),
        unary=np.zeros(rows + LANES, np.float32),
        nearest=np.full(rows, np.inf, np.float32),
        drawn=np.zeros(rows, np.bool_),
        slope=np.full(numbers, -1, np.float32),
        far=np.full(numbers, np.inf, np.float32),
        same=np.ones(codes, np.float32),
    )


@borrowing(kernel)
def draw_cover(
    num: Any, code: Any, num_columns: Any, code_columns: Any, first: Any, chance: Any, room: Any, out: Any
) -> None:
    """Fill `out` with rows of num, code (given as columns as well), the first one `first`, none of them twice.

    The next row is drawn with probability in proportion to d(row) = min over those drawn of sum_f |a_f - b_f| +
    #{s: a_s != b_s}: `chance` has a number in [0, 1) for every draw. Where all d are 0, the first row left is next.
    """
    n = len(num)
    acc, unary, nearest, drawn, slope, far, same = room
    start = -np.float32(code.shape[1])
    none: Any = np.int64(0)
    at = first
    for j in range(len(out)):
        out[j] = at
        drawn[at] = True
        score_referents(num[at], code[at], start, same, slope, far, num_columns, code_columns, unary, none, n, acc)
        total = 0.0
        for i in range(n):
            nearest[i] = np.float32(0) if drawn[i] else min(nearest[i], -acc[i])
            total += nearest[i]
        wanted = chance[j] * total
        passed = 0.0
        at = -1
        for i in range(n):
            passed += nearest[i]
            if not drawn[i] and (passed > wanted or (total == 0.0 and at < 0)):
                at = i
                break
        if at < 0:  # of all but the last of `out` there is one: rounding kept `passed` from `wanted`
            for i in range(n):
                if not drawn[i]:
                    at = i
