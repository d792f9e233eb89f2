"""Rows of a sparse matrix of ones: scores, and sums of some of them. Row r has a 1 in `slots[at[r]:at[r + 1]]`."""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import kernel


@kernel
def score_rows(at: Any, slots: Any, w: Any, scores: Any) -> None:
    """scores[r] = the sum of w over row r, added from first to last."""
    for r in range(len(at) - 1):
        total = 0.0
        for k in range(at[r], at[r + 1]):
            total += w[slots[k]]
        scores[r] = total


@kernel
def add_rows(at: Any, slots: Any, rows: Any, amount: Any, total: Any) -> None:
    """total += amount * the sum of some rows."""
    for r in rows:
        for k in range(at[r], at[r + 1]):
            total[slots[k]] += amount


@kernel
def add_weighted_rows(at: Any, slots: Any, e: Any, total: Any) -> None:
    """total += the sum over rows of e * row; rows of weight 0 cost nothing."""
    for r in range(len(e)):
        if e[r] != 0.0:
            for k in range(at[r], at[r + 1]):
                total[slots[k]] += e[r]


@kernel
def keep_slots(at: Any, slots: Any, number: Any, kept_at: Any, kept: Any) -> Any:
    """Rows of fewer slots: slot s becomes number[s], or is left out where that is below 0; returns how many remain."""
    n = 0
    kept_at[0] = 0
    for r in range(len(at) - 1):
        for k in range(at[r], at[r + 1]):
            if number[slots[k]] >= 0:
                kept[n] = number[slots[k]]
                n += 1
        kept_at[r + 1] = n
    return n


@kernel
def score_some_rows(at: Any, slots: Any, rows: Any, w: Any, scores: Any) -> None:
    """As `score_rows` for some rows; the other scores are left alone."""
    for r in rows:
        total = 0.0
        for k in range(at[r], at[r + 1]):
            total += w[slots[k]]
        scores[r] = total


@kernel
def signed_slots(at: Any, slots: Any, plus: Any, minus: Any, keys: Any) -> Any:
    """Write the slots of some rows, doubled, and those of others, doubled plus 1; returns how many."""
    n = 0
    for r in plus:
        for k in range(at[r], at[r + 1]):
            keys[n] = 2 * np.int64(slots[k])
            n += 1
    for r in minus:
        for k in range(at[r], at[r + 1]):
            keys[n] = 2 * np.int64(slots[k]) + 1
            n += 1
    return n


@kernel
def sum_signed_slots(keys: Any, slots: Any, values: Any) -> Any:
    """Sum sorted keys of `signed_slots` slot by slot; what cancels is left out; returns how many slots remain."""
    n, k = 0, 0
    while k < len(keys):
        slot, total = keys[k] >> 1, 0
        while k < len(keys) and keys[k] >> 1 == slot:
            total += 1 - 2 * (keys[k] & 1)
            k += 1
        if total != 0:
            slots[n], values[n] = slot, total
            n += 1
    return n
