"""Greedy merging of clusters of which only some pairs have a score: C_G in memory linear in those pairs (spec 3.4).

A pair of clusters is an edge with a sum; edges of a positive sum are in a heap. Merging moves the edges of the cluster
that has fewer to the other one; a hash table tells whether the other one has such an edge already, which then takes
the sum. An edge has two ends, 2 e and 2 e + 1, each in the list of its cluster; ends of edges that are gone are dropped
when a list is walked. Sums are added as in `merging.merge_dense`, so that both find the same merges to the last bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import inlined, kernel

GONE = -1


class ClusterGraph(NamedTuple):
    """Clusters and the edges between them; updated in place. About 56 bytes an edge."""

    cluster: NDArray[np.int32]  # of every end
    next_end: NDArray[np.int32]
    total: NDArray[np.float64]  # of every edge
    rank: NDArray[np.int64]  # what decides between equal sums: the lowest pair of names
    place: NDArray[np.int32]  # in the heap, or GONE
    heap: NDArray[np.int32]
    table: NDArray[np.int32]  # edges by their clusters; open addressing
    first_end: NDArray[np.int32]  # of every cluster
    degree: NDArray[np.int32]
    name: NDArray[np.int32]  # the smallest member
    heaped: NDArray[np.int64]  # how many edges the heap has
    taken: NDArray[np.int64]  # how many cells of the table are in use


def cluster_graph(items: int, left: NDArray[np.int64], right: NDArray[np.int64], values: Any) -> ClusterGraph:
    """Every item a cluster of its own."""
    edges = len(left)
    graph = ClusterGraph(
        cluster=np.empty(2 * edges, np.int32),
        next_end=np.empty(2 * edges, np.int32),
        total=np.array(values, np.float64),
        rank=np.empty(edges, np.int64),
        place=np.full(edges, GONE, np.int32),
        heap=np.empty(edges, np.int32),
        table=np.full(1 << max(2 * edges, 2).bit_length(), GONE, np.int32),
        first_end=np.full(items, GONE, np.int32),
        degree=np.zeros(items, np.int32),
        name=np.arange(items, dtype=np.int32),
        heaped=np.zeros(1, np.int64),
        taken=np.zeros(1, np.int64),
    )
    _enter(graph, left, right)
    return graph


# --- the heap: the highest sum first, then the lowest names


@inlined
def _before(g: Any, e: Any, f: Any) -> Any:
    return g.total[e] > g.total[f] or (g.total[e] == g.total[f] and g.rank[e] < g.rank[f])


@inlined
def _sift_up(g: Any, e: Any) -> None:
    at = g.place[e]
    while at > 0:
        up = (at - 1) >> 1
        f = g.heap[up]
        if not _before(g, e, f):
            break
        g.heap[at] = f
        g.place[f] = at
        at = up
    g.heap[at] = e
    g.place[e] = at


@inlined
def _sift_down(g: Any, e: Any) -> None:
    at = g.place[e]
    while True:
        down = 2 * at + 1
        if down >= g.heaped[0]:
            break
        if down + 1 < g.heaped[0] and _before(g, g.heap[down + 1], g.heap[down]):
            down += 1
        f = g.heap[down]
        if not _before(g, f, e):
            break
        g.heap[at] = f
        g.place[f] = at
        at = down
    g.heap[at] = e
    g.place[e] = at


@inlined
def _unheap(g: Any, e: Any) -> None:
    if g.place[e] == GONE:
        return
    g.heaped[0] -= 1
    last = g.heap[g.heaped[0]]
    if last != e:
        g.place[last] = g.place[e]
        _sift_up(g, last)
        _sift_down(g, last)
    g.place[e] = GONE


@inlined
def _reheap(g: Any, e: Any) -> None:
    """Put an edge where its sum and names now belong."""
    if g.total[e] <= 0.0:
        _unheap(g, e)
        return
    if g.place[e] == GONE:
        g.place[e] = g.heaped[0]
        g.heaped[0] += 1
    _sift_up(g, e)
    _sift_down(g, e)


# --- the table: which edge is between two clusters


@inlined
def _cell(g: Any, a: Any, b: Any) -> Any:
    """Where the search for an edge begins."""
    key = np.uint64(min(a, b)) * np.uint64(len(g.name)) + np.uint64(max(a, b))
    mixed = key * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed >> np.uint64(32)) & np.uint64(len(g.table) - 1))


@inlined
def _find(g: Any, a: Any, b: Any) -> Any:
    """The cell of the edge between two clusters, or the empty one where it would be."""
    low, high, cell = min(a, b), max(a, b), _cell(g, a, b)
    while g.table[cell] != GONE:
        e = g.table[cell]
        if min(g.cluster[2 * e], g.cluster[2 * e + 1]) == low and max(g.cluster[2 * e], g.cluster[2 * e + 1]) == high:
            break
        cell = (cell + 1) & (len(g.table) - 1)
    return cell


@inlined
def _enter_edge(g: Any, e: Any) -> None:
    """Note an edge under its clusters. Cells are not given back: a merged cluster is never asked for again.

    When three quarters are taken, edges that still are enter a cleared table; at most half of it is theirs.
    """
    if 4 * g.taken[0] >= 3 * len(g.table):
        g.table[:] = GONE
        g.taken[0] = 0
        for f in range(len(g.total)):
            if f != e and g.cluster[2 * f] != GONE:
                g.table[_find(g, g.cluster[2 * f], g.cluster[2 * f + 1])] = f
                g.taken[0] += 1
    g.table[_find(g, g.cluster[2 * e], g.cluster[2 * e + 1])] = e
    g.taken[0] += 1


# --- clusters


@inlined
def _rank(g: Any, e: Any) -> Any:
    a, b = np.int64(g.name[g.cluster[2 * e]]), np.int64(g.name[g.cluster[2 * e + 1]])
    return min(a, b) * len(g.name) + max(a, b)


@inlined
def _attach(g: Any, end: Any, c: Any) -> None:
    """Put an end in the list of a cluster."""
    g.cluster[end] = c
    g.next_end[end] = g.first_end[c]
    g.first_end[c] = end
    g.degree[c] += 1


@kernel
def _enter(g: Any, left: Any, right: Any) -> None:
    for e in range(len(left)):
        _attach(g, 2 * e, left[e])
        _attach(g, 2 * e + 1, right[e])
        _enter_edge(g, e)
        g.rank[e] = _rank(g, e)
        if g.total[e] > 0.0:
            g.heap[g.heaped[0]] = e
            g.place[e] = g.heaped[0]
            g.heaped[0] += 1
    for at in range(g.heaped[0] // 2 - 1, -1, -1):
        _sift_down(g, g.heap[at])


@inlined
def _drop(g: Any, e: Any) -> None:
    """An edge is no more; its ends stay in the lists, marked."""
    _unheap(g, e)
    g.degree[g.cluster[2 * e]] -= 1
    g.degree[g.cluster[2 * e + 1]] -= 1
    g.cluster[2 * e] = GONE
    g.cluster[2 * e + 1] = GONE


@inlined
def _rename(g: Any, c: Any, name: Any) -> None:
    """A cluster has a new smallest member: edges of equal sums may change their order."""
    g.name[c] = name
    before, end = GONE, g.first_end[c]
    while end != GONE:
        after = g.next_end[end]
        if g.cluster[end] == GONE:
            if before == GONE:
                g.first_end[c] = after
            else:
                g.next_end[before] = after
        else:
            e = end >> 1
            g.rank[e] = _rank(g, e)
            if g.place[e] != GONE:
                _sift_up(g, e)
            before = end
        end = after


@inlined
def _move_edges(g: Any, small: Any, big: Any) -> None:
    """All edges of one cluster become those of another."""
    end = g.first_end[small]
    while end != GONE:
        after = g.next_end[end]
        if g.cluster[end] != GONE:
            e, other = end >> 1, g.cluster[end ^ 1]
            f = g.table[_find(g, big, other)]
            if f != GONE:
                g.total[f] += g.total[e]
                _drop(g, e)
                _reheap(g, f)
            else:
                g.degree[small] -= 1
                _attach(g, end, big)
                _enter_edge(g, e)
                g.rank[e] = _rank(g, e)
                if g.place[e] != GONE:
                    _reheap(g, e)
        end = after
    g.first_end[small] = GONE


@kernel
def merge_sparse(g: Any, merges: Any) -> Any:
    """Algorithm 3: merge along the highest positive sum until there is none; returns how many merges there are."""
    done = 0
    while g.heaped[0] > 0:
        e = g.heap[0]
        a, b = g.cluster[2 * e], g.cluster[2 * e + 1]
        low, high = min(g.name[a], g.name[b]), max(g.name[a], g.name[b])
        merges.a[done], merges.b[done], merges.gain[done] = low, high, g.total[e]
        done += 1
        _drop(g, e)
        big, small = (a, b) if g.degree[a] >= g.degree[b] else (b, a)
        if low < g.name[big]:
            _rename(g, big, low)
        _move_edges(g, small, big)
    return done


@kernel
def merged_sparse_labels(merges: Any, done: Any, labels: Any) -> None:
    """Label every item with the smallest member of its cluster, from names of items: b joins a < b."""
    for i in range(len(labels)):
        labels[i] = i
    for k in range(done):
        labels[merges.b[k]] = merges.a[k]
    for i in range(len(labels)):  # a is lower, so its label is final
        labels[i] = labels[labels[i]]
