"""The largest flow from a source to a sink, and so the smallest cut between them (Dinic, with current arcs).

A graph is arcs sorted by their tail: those of node v are `start[v]` to `start[v + 1]`, arc e goes to `head[e]`, has
`room[e]` left, and `twin[e]` is the arc back. Room of at most `tiny` counts as none: rounding leaves crumbs.

E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", 1970.
"""

from __future__ import annotations

from typing import Any

from netclust.kernels.jit import kernel


@kernel
def lay_arcs(tail: Any, head: Any, there: Any, back: Any, start: Any, to: Any, twin: Any, room: Any) -> None:
    """Edges with room there and back as arcs sorted by tail; `start` has a place a node and one more, all 0."""
    nodes = len(start) - 1
    for e in range(len(tail)):
        start[tail[e] + 1] += 1
        start[head[e] + 1] += 1
    for v in range(nodes):
        start[v + 1] += start[v]
    for e in range(len(tail)):  # start[v] moves on to the end of v's arcs, and is put back below
        a = start[tail[e]]
        start[tail[e]] += 1
        b = start[head[e]]
        start[head[e]] += 1
        to[a], to[b] = head[e], tail[e]
        twin[a], twin[b] = b, a
        room[a], room[b] = there[e], back[e]
    for v in range(nodes, 0, -1):
        start[v] = start[v - 1]
    start[0] = 0


@kernel
def max_flow(
    start: Any, head: Any, twin: Any, room: Any, source: Any, sink: Any, tiny: Any, level: Any, at: Any, queue: Any,
    path: Any,
) -> Any:  # fmt: skip
    """The value of the largest flow; `room` is what is left, `level[v] >= 0` where v can still be reached.

    `level`, `at`, `queue` and `path` are room for working in, a place a node each.
    """
    total = 0.0
    while True:
        level[:] = -1
        level[source] = 0
        queue[0] = source
        first, last = 0, 1
        while first < last:
            v = queue[first]
            first += 1
            for e in range(start[v], start[v + 1]):
                if room[e] > tiny and level[head[e]] < 0:
                    level[head[e]] = level[v] + 1
                    queue[last] = head[e]
                    last += 1
        if level[sink] < 0:
            return total
        at[:] = start[:-1]
        depth, v = 0, source
        while True:
            if v == sink:
                amount = room[path[0]]
                for k in range(1, depth):
                    amount = min(amount, room[path[k]])
                full = depth
                for k in range(depth - 1, -1, -1):
                    room[path[k]] -= amount
                    room[twin[path[k]]] += amount
                    if room[path[k]] <= tiny:
                        full = k
                total += amount
                depth = full
                v = head[twin[path[depth]]]
                continue
            while at[v] < start[v + 1]:
                e = at[v]
                if room[e] > tiny and level[head[e]] == level[v] + 1:
                    break
                at[v] += 1
            if at[v] < start[v + 1]:
                path[depth] = at[v]
                v = head[at[v]]
                depth += 1
            elif depth == 0:
                break
            else:
                depth -= 1
                v = head[twin[path[depth]]]
                at[v] += 1
