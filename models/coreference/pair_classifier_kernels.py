"""Dual coordinate descent for a linear SVM on rows of ones. Row r has a 1 in `slots[at[r]:at[r + 1]]`.

C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan, "A dual coordinate descent method for large-scale
linear SVM", ICML 2008; Algorithm 1, without shrinking.
"""

from __future__ import annotations

from typing import Any

from netclust.kernels.jit import kernel


@kernel
def squared_lengths(at: Any, slots: Any, counts: Any, lengths: Any) -> None:
    """lengths[r] = |row r|^2; a slot that is there k times counts k^2. `counts` is 0 before and after, one a slot."""
    for r in range(len(lengths)):
        total = 0
        for k in range(at[r], at[r + 1]):
            total += 2 * counts[slots[k]] + 1  # (n + 1)^2 - n^2
            counts[slots[k]] += 1
        lengths[r] = total
        for k in range(at[r], at[r + 1]):
            counts[slots[k]] = 0


@kernel
def descend_rows(
    at: Any, slots: Any, signs: Any, lengths: Any, order: Any, cap: Any, diagonal: Any, alpha: Any, w: Any
) -> Any:
    """One step of every row in an order, each to the best alpha in [0, cap]; returns the largest projected gradient."""
    worst = 0.0
    for r in order:
        curve = lengths[r] + diagonal
        if curve == 0.0:  # a row without slots is short of its margin whatever w is
            alpha[r] = cap
            continue
        margin = 0.0
        for k in range(at[r], at[r + 1]):
            margin += w[slots[k]]
        gradient = signs[r] * margin - 1.0 + diagonal * alpha[r]
        if (alpha[r] <= 0.0 and gradient > 0.0) or (alpha[r] >= cap and gradient < 0.0):
            continue
        worst = max(worst, abs(gradient))
        after = min(max(alpha[r] - gradient / curve, 0.0), cap)
        step = (after - alpha[r]) * signs[r]
        alpha[r] = after
        if step != 0.0:
            for k in range(at[r], at[r + 1]):
                w[slots[k]] += step
    return worst
