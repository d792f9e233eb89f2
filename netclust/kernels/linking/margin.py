"""The margin learner's arg-max: for every record of a mini-batch, the best candidate of either side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import kernel
from netclust.kernels.linking.score import LANES, best_two, score_referents


class Candidates(NamedTuple):
    """Referents of one step, a column each, LANES longer; `side` is 0 for what is hidden in this step."""

    num: NDArray[np.float32]
    code: NDArray[np.uint16]
    side: NDArray[np.uint8]


class Nearest(NamedTuple):
    """The best normal and the best non-normal candidate of every record: score and position, -1 if there is none."""

    normal: NDArray[np.float32]
    normal_at: NDArray[np.int64]
    other: NDArray[np.float32]
    other_at: NDArray[np.int64]


def room_for(n: int) -> Nearest:
    """What `nearest_sides` fills for n records."""
    scores, at = np.empty((2, n), np.float32), np.empty((2, n), np.int64)
    return Nearest(scores[0], at[0], scores[1], at[1])


@kernel
def nearest_sides(
    num: Any, code: Any, own: Any, candidates: Any, weight: Any, mismatch: Any, far: Any, out: Any
) -> None:
    """Fill `out` for records (rows of num, code); own[i] is where record i is among the candidates, or -1.

    score(a, b) = -sum_f weight_f min(|a_f - b_f|, far_f) - sum_s mismatch_s [a_s != b_s].
    """
    m = len(candidates.side)
    acc = np.empty(m + LANES, np.float32)
    unary = np.zeros(m + LANES, np.float32)
    slope = -weight
    start = np.float32(0)
    for s in range(len(mismatch)):
        start -= mismatch[s]
    none: Any = np.int64(0)
    for i in range(len(num)):
        at = own[i]
        was = candidates.side[at] if at >= 0 else np.uint8(0)
        if at >= 0:  # no record is its own referent
            candidates.side[at] = np.uint8(0)
        score_referents(
            num[i], code[i], start, mismatch, slope, far, candidates.num, candidates.code, unary, none, m, acc
        )
        normal, normal_at, other, other_at = best_two(acc, candidates.side, none, m)
        if at >= 0:
            candidates.side[at] = was
        out.normal[i], out.normal_at[i], out.other[i], out.other_at[i] = normal, normal_at, other, other_at
