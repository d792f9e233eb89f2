"""Covering: records drawn so that what is far from those drawn before is likelier to come next."""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import kernel
from netclust.kernels.score import LANES, score_referents


@kernel
def cover(num: Any, code: Any, num_columns: Any, code_columns: Any, first: Any, chance: Any, out: Any) -> None:
    """Fill `out` with rows of num, code (given as columns as well), the first one `first`, none of them twice.

    The next row is drawn with probability in proportion to d(row) = min over those drawn of sum_f |a_f - b_f| +
    #{s: a_s != b_s}: `chance` has a number in [0, 1) for every draw. Where all d are 0, the first row left is next.
    """
    n = len(num)
    acc = np.empty(n + LANES, np.float32)
    unary = np.zeros(n + LANES, np.float32)
    slope = np.full(num.shape[1], np.float32(-1))
    far = np.full(num.shape[1], np.float32(np.inf))
    same = np.ones(code.shape[1], np.float32)
    start = -np.float32(code.shape[1])
    nearest = np.full(n, np.float32(np.inf))
    drawn = np.zeros(n, np.bool_)
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
