"""Separation: inequalities of the partition polytope that a relaxed partition violates.

Of every pair (i, k) the item j that violates e_ij + e_jk <= 1 + e_ik most, and stars e_iT - e(T) <= 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import kernel


@kernel
def worst_triangles(e: Any, middle: Any, excess: Any) -> None:
    """All pairs i < k in the order of `pdist`: excess = max over j of e_ij + e_jk - 1 - e_ik; the first j of equals."""
    items = len(e)
    pair = 0
    for i in range(items):
        for k in range(i + 1, items):
            best, at = -np.inf, -1
            for j in range(items):
                both = e[i, j] + e[k, j]
                if both > best and j != i and j != k:
                    best, at = both, j
            middle[pair] = at
            excess[pair] = best - 1.0 - e[i, k]
            pair += 1


@kernel
def worst_stored_triangles(
    left: Any, right: Any, start: Any, neighbour: Any, edge: Any, e: Any, first: Any, second: Any, excess: Any
) -> None:
    """The same over stored pairs: j must have stored pairs with both ends, whose numbers are first and second.

    Item i's neighbours are `neighbour[start[i]:start[i + 1]]`, ascending, and `edge` the numbers of their pairs.
    """
    for pair in range(len(left)):
        a, end_a = start[left[pair]], start[left[pair] + 1]
        b, end_b = start[right[pair]], start[right[pair] + 1]
        best, first[pair], second[pair] = -np.inf, -1, -1
        while a < end_a and b < end_b:
            if neighbour[a] < neighbour[b]:
                a += 1
            elif neighbour[a] > neighbour[b]:
                b += 1
            else:
                both = e[edge[a]] + e[edge[b]]
                if both > best:
                    best, first[pair], second[pair] = both, edge[a], edge[b]
                a += 1
                b += 1
        excess[pair] = best - 1.0 - e[pair]


@kernel
def violated_stars(e: Any, tolerance: Any, leaves: Any, size: Any, excess: Any) -> None:
    """Of every centre i the most violated star found greedily: leaves[i, :size[i]], sum of e_it - sum of e_tu - 1.

    From each partly joined leaf on, the leaf that adds most joins while it adds anything (Groetschel and Wakabayashi).
    """
    items = len(e)
    gain = np.empty(items)
    chosen = np.empty(items, np.int64)
    for i in range(items):
        size[i], excess[i] = 0, tolerance
        for begin in range(items):
            if begin == i or e[i, begin] <= tolerance or e[i, begin] >= 1.0 - tolerance:
                continue
            for j in range(items):
                gain[j] = e[i, j]
            gain[i] = -np.inf
            count, total, t = 0, -1.0, begin
            while gain[t] > tolerance:
                chosen[count] = t
                count += 1
                total += gain[t]
                gain[t] = -np.inf
                for j in range(items):
                    gain[j] -= e[t, j]
                t = 0
                for j in range(items):
                    if gain[j] > gain[t]:
                        t = j
            if total > excess[i]:
                excess[i], size[i] = total, count
                for c in range(count):
                    leaves[i, c] = chosen[c]
