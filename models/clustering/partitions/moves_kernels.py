"""Moving items between clusters, and clusters seen as items: the steps of local search.

A graph is in compressed rows: the neighbours of i are `other[start[i]:start[i + 1]]`, with their scores in `score`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import inner, kernel
from netclust.models.clustering.partitions.merging_kernels import merging_cost, merging_loss, tally


class GraphRows(NamedTuple):
    """A symmetric graph in compressed rows."""

    start: NDArray[np.int64]
    other: NDArray[np.int32]
    score: NDArray[np.float64]


def empty_rows(items: int, pairs: int) -> GraphRows:
    """Room for so many pairs."""
    return GraphRows(np.zeros(items + 1, np.int64), np.empty(2 * pairs, np.int32), np.empty(2 * pairs))


@kernel
def fill_rows(left: Any, right: Any, values: Any, rows: Any) -> None:
    """Rows from pairs, neighbours in the order of the pairs."""
    for e in range(len(left)):
        rows.start[left[e] + 1] += 1
        rows.start[right[e] + 1] += 1
    for i in range(len(rows.start) - 1):
        rows.start[i + 1] += rows.start[i]
    at = rows.start[:-1].copy()
    for e in range(len(left)):
        i, j = left[e], right[e]
        rows.other[at[i]], rows.score[at[i]] = j, values[e]
        rows.other[at[j]], rows.score[at[j]] = i, values[e]
        at[i] += 1
        at[j] += 1


@kernel
def fill_complete_rows(values: Any, rows: Any) -> None:
    """Rows from the scores of all pairs, in the order of `pdist`."""
    m = len(rows.start) - 1
    for i in range(m):
        rows.start[i + 1] = rows.start[i] + m - 1
    at = 0
    for i in range(m):
        for j in range(i + 1, m):
            here, there = rows.start[i] + j - 1, rows.start[j] + i
            rows.other[here], rows.score[here] = j, values[at]
            rows.other[there], rows.score[there] = i, values[at]
            at += 1


@inner
def sum_by_cluster(rows: Any, labels: Any, i: Any, total: Any, seen: Any, found: Any) -> Any:
    """Scores of an item with every cluster that it has a neighbour in, listed in `found`; returns how many."""
    count = 0
    for at in range(rows.start[i], rows.start[i + 1]):
        c = labels[rows.other[at]]
        if seen[c] != i:
            seen[c] = i
            total[c] = 0.0
            found[count] = c
            count += 1
        total[c] += rows.score[at]
    return count


@kernel
def move_items(rows: Any, labels: Any, order: Any, least: Any) -> Any:
    """Move items to the cluster that they like best, or to be alone, until no item gains more than `least`.

    Items wait in a queue, at first in this order; a move calls those back that it may have given a reason. Labels are
    below the number of items; returns how many moves there were.
    """
    m = len(labels)
    size, free, free_count = np.zeros(m, np.int64), np.empty(m, np.int64), 0
    for i in range(m):
        size[labels[i]] += 1
    for c in range(m - 1, -1, -1):
        if size[c] == 0:
            free[free_count] = c
            free_count += 1
    total, seen, found = np.zeros(m), np.full(m, -1), np.empty(m, np.int64)
    queue, waiting = np.empty(m, np.int64), np.zeros(m, np.bool_)
    head, count, moves = 0, len(order), 0
    for k in range(len(order)):
        queue[k] = order[k]
        waiting[order[k]] = True
    while count > 0:
        i = queue[head]
        head = (head + 1) % m
        count -= 1
        waiting[i] = False
        a = labels[i]
        kinds = sum_by_cluster(rows, labels, i, total, seen, found)
        own = total[a] if seen[a] == i else 0.0
        best, to = 0.0, -1  # alone
        for c in found[:kinds]:
            if c != a and (total[c] > best or (total[c] == best and 0 <= c < to)):
                best, to = total[c], c
        for c in found[:kinds]:
            seen[c] = -1
        if best - own <= least:
            continue
        if to < 0:
            free_count -= 1
            to = free[free_count]
        labels[i] = to
        moves += 1
        size[a] -= 1
        size[to] += 1
        if size[a] == 0:
            free[free_count] = a
            free_count += 1
        for at in range(rows.start[i], rows.start[i + 1]):
            j = rows.other[at]
            # Those who like i and have it now, and those who do not and are rid of it, have no new reason.
            content = labels[j] == to if rows.score[at] > 0.0 else labels[j] == a
            if not waiting[j] and not content:
                waiting[j] = True
                queue[(head + count) % m] = j
                count += 1
    return moves


@kernel
def contract(rows: Any, labels: Any, clusters: Any, left: Any, right: Any, values: Any) -> Any:
    """Pairs of clusters 0, 1, ... that have neighbours in each other, and their sums; returns how many there are."""
    m = len(labels)
    begin, members = np.zeros(clusters + 1, np.int64), np.empty(m, np.int64)
    for i in range(m):
        begin[labels[i] + 1] += 1
    for c in range(clusters):
        begin[c + 1] += begin[c]
    at = begin[:-1].copy()
    for i in range(m):
        members[at[labels[i]]] = i
        at[labels[i]] += 1
    total, seen, found = np.zeros(clusters), np.full(clusters, -1), np.empty(clusters, np.int64)
    pairs = 0
    for a in range(clusters):
        kinds = 0
        for i in members[begin[a] : begin[a + 1]]:
            for e in range(rows.start[i], rows.start[i + 1]):
                b = labels[rows.other[e]]
                if b > a:
                    if seen[b] != a:
                        seen[b] = a
                        total[b] = 0.0
                        found[kinds] = b
                        kinds += 1
                    total[b] += rows.score[e]
        for b in found[:kinds]:
            left[pairs], right[pairs], values[pairs] = a, b, total[b]
            pairs += 1
    return pairs


@kernel
def move_violating(S: Any, labels: Any, truth: Any, G: Any, counts: Any, within: Any, target: Any, least: Any) -> Any:
    """Move items, in their order, to where H is highest, until a round moves none; returns the score within clusters.

    G [cluster, item] holds the sum of an item's scores with a cluster, counts [cluster, truth] the items of both; there
    are as many rows as items, so that an item can always be alone.
    """
    m = len(labels)
    G[:] = 0.0
    counts[:] = 0
    size = np.zeros(m, np.int64)
    for i in range(m):
        counts[labels[i], truth[i]] += 1
        size[labels[i]] += 1
        for j in range(m):
            G[labels[i], j] += S[i, j]
    wrong, cells, clusters = tally(target, counts)
    cost = merging_cost(target, within, merging_loss(target, wrong, cells, clusters))
    quiet, i = 0, 0
    while quiet < m:
        a, t = labels[i], truth[i]
        # i taken out of its cluster: fewer wrong pairs where it had strangers, more where it had kin.
        out = 2 * (counts[a, t] - 1) - (size[a] - 1)
        rest = cells - (counts[a, t] == 1)
        best, to, empty = cost + least * max(1.0, abs(cost)), -1, -1
        for c in range(m):
            if c == a:
                continue
            if size[c] == 0:
                if empty >= 0 or size[a] == 1:
                    continue
                empty = c
            now = merging_loss(
                target,
                wrong + out + size[c] - 2 * counts[c, t],
                rest + (counts[c, t] == 0),
                clusters - (size[a] == 1) + (size[c] == 0),
            )
            moved = merging_cost(target, within - G[a, i] + G[c, i], now)
            if moved > best:
                best, to = moved, c
        quiet += 1
        if to >= 0:
            quiet = 0
            within += G[to, i] - G[a, i]
            wrong += out + size[to] - 2 * counts[to, t]
            cells = rest + (counts[to, t] == 0)
            clusters += np.int64(size[to] == 0) - np.int64(size[a] == 1)
            counts[a, t] -= 1
            counts[to, t] += 1
            size[a] -= 1
            size[to] += 1
            labels[i] = to
            cost = best
            for j in range(m):
                G[a, j] -= S[i, j]
                G[to, j] += S[i, j]
        i = (i + 1) % m
    return within


@kernel
def pair_up(rows: Any, labels: Any, order: Any, group: Any) -> Any:
    """Pairs of neighbours in one cluster, the best first chosen in this order; returns how many groups there are."""
    group[:] = -1
    groups = 0
    for i in order:
        if group[i] >= 0:
            continue
        best, mate = 0.0, -1
        for at in range(rows.start[i], rows.start[i + 1]):
            j = rows.other[at]
            if group[j] < 0 and labels[j] == labels[i] and rows.score[at] > best:
                best, mate = rows.score[at], j
        group[i] = groups
        if mate >= 0:
            group[mate] = groups
        groups += 1
    return groups
