"""What two sequences of words have in common: longest common substring and subsequence, greedy string tiling."""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import kernel


@kernel
def common_sequences(a: Any, b: Any) -> Any:
    """(longest common substring, longest common subsequence) of two arrays of word numbers."""
    n = len(b)
    run, row = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    longest = 0
    for i in range(len(a)):
        run_before = row_before = 0  # of the word before in b, one row up
        for j in range(n):
            run_here, row_here = run[j + 1], row[j + 1]
            if a[i] == b[j]:
                run[j + 1] = run_before + 1
                row[j + 1] = row_before + 1
                longest = max(longest, run[j + 1])
            else:
                run[j + 1] = 0
                row[j + 1] = max(row[j + 1], row[j])
            run_before, row_before = run_here, row_here
    return longest, row[n]


@kernel
def tiled_words(a: Any, b: Any, shortest: Any) -> Any:
    """Greedy string tiling: words of a in tiles, the longest common runs first, no word in two; none below `shortest`.

    M. Wise, "String similarity via greedy string tiling and running Karp-Rabin matching", 1993.
    """
    used_a, used_b = np.zeros(len(a), np.bool_), np.zeros(len(b), np.bool_)
    total = 0
    while True:
        best, at_a, at_b = shortest - 1, 0, 0
        for i in range(len(a)):
            for j in range(len(b)):
                k = 0
                while (
                    i + k < len(a)
                    and j + k < len(b)
                    and a[i + k] == b[j + k]
                    and not used_a[i + k]
                    and not used_b[j + k]
                ):
                    k += 1
                if k > best:
                    best, at_a, at_b = k, i, j
        if best < shortest:
            return total
        for k in range(best):
            used_a[at_a + k] = used_b[at_b + k] = True
        total += best
