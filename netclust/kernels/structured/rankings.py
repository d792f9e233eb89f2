"""Rankings of one query's items: the max-violating one (exact, greedy), and the best one that keeps clusters together.

Positions count from 1 and have non-increasing weights; `gain` is what a ranking is searched for: the sum of weight
times score, less C times average precision (that is, plus C times its loss, up to the constant C).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import inner, kernel
from netclust.kernels.structured.union_find import find

LEAST_GAIN = 1e-12
"""A swap must gain more than this: rounding must not make two orders take turns for ever."""


@kernel
def place_exactly(right: Any, wrong: Any, weight: Any, C: Any, is_right: Any) -> Any:
    """Spec 8.3: the best interleaving of right and wrong items, scores of both descending; returns its gain plus C.

    V[a, b] is the best gain with a right and b wrong items in the first a + b places. On ties the right item is lower.
    """
    P, Q = len(right), len(wrong)
    V = np.empty((P + 1, Q + 1))
    from_right = np.zeros((P + 1, Q + 1), np.bool_)
    V[0, 0] = C
    for a in range(P + 1):
        for b in range(Q + 1):
            if a + b == 0:
                continue
            k = a + b
            best = -np.inf
            if b > 0:
                best = V[a, b - 1] + weight[k - 1] * wrong[b - 1]
            if a > 0:
                value = V[a - 1, b] + weight[k - 1] * right[a - 1] - C * a / (P * k)
                if value >= best:
                    best = value
                    from_right[a, b] = True
            V[a, b] = best
    a, b = P, Q
    while a + b > 0:
        taken = from_right[a, b]
        is_right[a + b - 1] = taken
        if taken:
            a -= 1
        else:
            b -= 1
    return V[P, Q]


@kernel
def place_greedily(right: Any, wrong: Any, weight: Any, C: Any, is_right: Any) -> None:
    """The printed search (spec 8.2): positions are filled from the last up, each by the item that costs least there."""
    a, b = len(right), len(wrong)
    P = max(a, 1)
    below = 0.0  # l_p: the sum of 1/k over right items further down, over P
    for k in range(a + b, 0, -1):
        # a wrong item further up costs C*l_p less to leave where it is
        take = b == 0 or (a > 0 and weight[k - 1] * right[a - 1] <= weight[k - 1] * wrong[b - 1] + C * below)
        is_right[k - 1] = take
        if take:
            a -= 1
            below += 1.0 / (P * k)
        else:
            b -= 1


@inner
def _part_gain(
    order: Any, first: Any, count: Any, at: Any, above: Any, score: Any, y: Any, weight: Any, share: Any
) -> Any:
    """(gain, right items above the end) of order[first : first + count] if put to positions from `at` on."""
    gain = 0.0
    for k in range(count):
        item = order[first + k]
        position = at + k
        gain += weight[position] * score[item]
        if y[item] > 0:
            above += 1
            gain -= share * above / (position + 1)
    return gain, above


@inner
def _swap_parts(order: Any, first: Any, one: Any, other: Any, spare: Any) -> None:
    """Of two neighbouring parts of `order`, lengths `one` and `other`, the second goes first."""
    for k in range(one):
        spare[k] = order[first + k]
    for k in range(other):
        order[first + k] = order[first + one + k]
    for k in range(one):
        order[first + other + k] = spare[k]


@inner
def _gain_of_swap(
    order: Any, first: Any, one: Any, other: Any, above: Any, score: Any, y: Any, weight: Any, share: Any
) -> Any:
    """What it gains to swap two neighbouring parts; what is above and below them is not concerned."""
    before_a, mid = _part_gain(order, first, one, first, above, score, y, weight, share)
    before_b, _ = _part_gain(order, first + one, other, first + one, mid, score, y, weight, share)
    after_b, mid = _part_gain(order, first + one, other, first, above, score, y, weight, share)
    after_a, _ = _part_gain(order, first, one, first + other, mid, score, y, weight, share)
    return (after_b + after_a) - (before_a + before_b)


@inner
def _improve(
    order: Any, size: Any, count: Any, score: Any, y: Any, weight: Any, share: Any, gold: Any, spare: Any
) -> Any:
    """Swap neighbouring clusters (and, where there is a loss, neighbours within one) while that gains; the gain."""
    changed = True
    while changed:
        changed = False
        first, above = 0, 0
        for c in range(count):
            if share > 0.0:
                inside = above
                for k in range(size[c] - 1):
                    at = first + k
                    if _gain_of_swap(order, at, 1, 1, inside, score, y, weight, share) > LEAST_GAIN:
                        _swap_parts(order, at, 1, 1, spare)
                        changed = True
                    inside += y[order[at]] > 0
            below = 0 if c + 1 == count or (gold and y[order[first]] != y[order[first + size[c]]]) else size[c + 1]
            if below and _gain_of_swap(order, first, size[c], below, above, score, y, weight, share) > LEAST_GAIN:
                _swap_parts(order, first, size[c], below, spare)
                size[c], size[c + 1] = below, size[c]
                changed = True
            for k in range(size[c]):
                above += y[order[first + k]] > 0
            first += size[c]
    gain, _ = _part_gain(order, 0, len(order), 0, 0, score, y, weight, share)
    return gain


@inner
def _find_max_rank(
    parent: Any, base: Any, score: Any, y: Any, weight: Any, share: Any, gold: Any, order: Any, work: Any, key: Any
) -> Any:
    """FindMaxRank into `order`; the gain. Tried are clusters by their mean place in `base`, and by their best one.

    Within a cluster items stand as in `base`, which is the best ranking without clusters.
    """
    n = len(base)
    cluster, trial, size, rank, spare, place = work[0], work[1], work[2], work[3], work[4], work[5]
    best = -np.inf
    for start in range(2):
        for i in range(n):
            size[i] = 0
            key[i] = 0.0
        for p in range(n):
            root = find(parent, base[p])
            cluster[p] = root
            if start == 0 or size[root] == 0:
                key[root] += p
            size[root] += 1
        count = 0
        for p in range(n):  # every cluster once, by insertion
            root = cluster[p]
            if size[root] <= 0:
                continue
            if start == 0:
                key[root] /= size[root]
            k = count
            while k > 0 and key[rank[k - 1]] > key[root]:
                rank[k] = rank[k - 1]
                k -= 1
            rank[k] = root
            count += 1
            size[root] = -size[root]
        at = 0
        for k in range(count):
            place[rank[k]] = at
            spare[k] = -size[rank[k]]
            at += spare[k]
        for p in range(n):
            trial[place[cluster[p]]] = base[p]
            place[cluster[p]] += 1
        for k in range(count):
            size[k] = spare[k]
        gain = _improve(trial, size, count, score, y, weight, share, gold, spare)
        if gain > best:
            best = gain
            for p in range(n):
                order[p] = trial[p]
    return best


@kernel
def find_max_rank(parent: Any, base: Any, score: Any, y: Any, weight: Any, C: Any, gold: Any, order: Any) -> Any:
    """The best ranking (into `order`) that keeps the clusters of `parent` together; its gain.

    `gold`: right items stay above wrong ones, as they are in `base`; clusters then hold one kind of item only.
    """
    n = len(base)
    share = _share(y, C)
    return _find_max_rank(parent, base, score, y, weight, share, gold, order, np.empty((6, n), np.int64), np.empty(n))


@inner
def _share(y: Any, C: Any) -> Any:
    right = 0
    for i in range(len(y)):
        right += y[i] > 0
    return C / max(right, 1)


@kernel
def join_ranking(
    left: Any, right: Any, value: Any, base: Any, score: Any, y: Any, weight: Any, C: Any, gold: Any, passes: Any,
    parent: Any, order: Any, taken: Any,
) -> Any:  # fmt: skip
    """Algorithm 7: of the pairs in their order, take those whose value is more than what the ranking loses by them.

    Into `taken` their places, into `order` the ranking, into `parent` the clusters; returns how many were taken. The
    pass over the pairs is repeated until nothing more is taken, `passes` times at most (printed: once).
    """
    n = len(base)
    share = _share(y, C)
    work, key = np.empty((6, n), np.int64), np.empty(n)
    trial, kept = np.empty(n, np.int64), np.empty(n, np.int64)
    best = _find_max_rank(parent, base, score, y, weight, share, gold, order, work, key)
    count = 0
    for _ in range(passes):
        before = count
        for k in range(len(left)):
            a, b = find(parent, left[k]), find(parent, right[k])
            if a == b:
                continue
            for i in range(n):
                kept[i] = parent[i]
            parent[max(a, b)] = min(a, b)
            gain = _find_max_rank(parent, base, score, y, weight, share, gold, trial, work, key)
            if best < gain + value[k]:
                best = gain
                taken[count] = k
                count += 1
                for i in range(n):
                    order[i] = trial[i]
            else:
                for i in range(n):
                    parent[i] = kept[i]
        if count == before or count == n - 1:
            break
    return count
