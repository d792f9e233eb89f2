"""Roof duality (QPBO): the linear relaxation of a binary network by one maximum flow a row.

Minimised is E = -f = sum a_u y_u + sum e_uv y_u y_v. Every label has two nodes, p_u (the literal y_u) and q_u
(1 - y_u); on the source's side a literal is 0. A pair that repels (e > 0) is cut where both labels are 1; one that
attracts is written e y_u + k y_u (1 - y_v), k = -e. Every cost is in the graph twice, with half its size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import inner, kernel
from netclust.kernels.structured.maxflow import lay_arcs, max_flow

TINY = 1e-12
"""Of the largest capacity: what is left of an arc below this is nothing."""


@inner
def _fix_labels(theta: Any, pair: Any, y: Any, alone: Any) -> Any:
    """Fix labels that no choice of the others can change, until none is left; the others are -1, and counted.

    `alone` is left as the potentials of what is open, given what is settled.
    """
    count = len(theta)
    left = count
    for u in range(count):
        y[u], alone[u] = -1.0, theta[u]
    changed = True
    while changed:
        changed = False
        for u in range(count):
            if y[u] >= 0.0:
                continue
            least = most = alone[u]
            for v in range(count):
                if y[v] < 0.0:
                    least += min(pair[u, v], 0.0)
                    most += max(pair[u, v], 0.0)
            if most <= 0.0:  # also where nothing speaks for or against it
                y[u] = 0.0
            elif least >= 0.0:
                y[u] = 1.0
                for v in range(count):
                    alone[v] += pair[u, v]
            else:
                continue
            left -= 1
            changed = True
    return left


@inner
def _lay(alone: Any, pair: Any, live: Any, tail: Any, head: Any, room: Any, spare: Any) -> Any:
    """The edges of the open labels with a first flow in them: (how many, the constant of E, the flow).

    `room` is what is left there and back, `spare` what source and sink have left for every node. The first flow goes by
    paths of three edges, source to node to node to sink; most of the whole flow does.
    """
    count = len(live)
    constant, flow = 0.0, 0.0
    for u in range(count):
        a = -alone[live[u]]
        for v in range(u + 1, count):
            a -= max(pair[live[u], live[v]], 0.0)
        up = 2 * u if a > 0.0 else 2 * u + 1  # the node that the source feeds; the sink takes from the other
        down = 2 * u + 1 if a > 0.0 else 2 * u
        spare[0, up] = spare[1, down] = abs(a) / 2
        spare[0, down] = spare[1, up] = 0.0
        constant += min(a, 0.0)
    edges = 0
    for u in range(count):
        for v in range(u + 1, count):
            e = -pair[live[u], live[v]]
            if e == 0.0:
                continue
            if e > 0.0:
                tail[edges], head[edges] = 2 * u + 1, 2 * v
                tail[edges + 1], head[edges + 1] = 2 * v + 1, 2 * u
            else:
                tail[edges], head[edges] = 2 * u + 1, 2 * v + 1
                tail[edges + 1], head[edges + 1] = 2 * v, 2 * u
            for k in range(edges, edges + 2):
                amount = min(abs(e) / 2, spare[0, tail[k]], spare[1, head[k]])
                spare[0, tail[k]] -= amount
                spare[1, head[k]] -= amount
                room[0, k], room[1, k] = abs(e) / 2 - amount, amount
                flow += amount
            edges += 2
    for node in range(2 * count):  # back to the source or from the sink no path leads that matters
        for k in range(2):
            if spare[k, node] > 0.0:
                tail[edges], head[edges] = (2 * count, node) if k == 0 else (node, 2 * count + 1)
                room[0, edges], room[1, edges] = spare[k, node], 0.0
                edges += 1
    return edges, constant, flow


@kernel
def cut_labels(theta: Any, pair: Any, labels: Any, bound: Any) -> None:
    """Labels 0, 1/2 (open) or 1 of every row, and the relaxed optimum of f, from the flow alone.

    What is settled beforehand is so in some relaxed optimum (in all, but for ties): the graph is of the others.
    """
    n, count = theta.shape
    most = 2 * count + count * (count - 1)
    tail, head, edge_room = np.empty(most, np.int64), np.empty(most, np.int64), np.empty((2, most))
    to, twin, room = np.empty(2 * most, np.int64), np.empty(2 * most, np.int64), np.empty(2 * most)
    start, spare = np.zeros(2 * count + 3, np.int64), np.empty((2, 2 * count))
    work = np.empty((4, 2 * count + 2), np.int64)
    alone, open_ = np.empty(count), np.empty(count, np.int64)
    for i in range(n):
        left = _fix_labels(theta[i], pair, labels[i], alone)
        bound[i], k = 0.0, 0
        for u in range(count):
            if labels[i, u] < 0.0:
                open_[k] = u
                k += 1
            elif labels[i, u] > 0.0:
                bound[i] += theta[i, u]
                for v in range(u):
                    bound[i] += pair[u, v] if labels[i, v] > 0.0 else 0.0
        if left == 0:
            continue
        live = open_[:left]
        edges, constant, flow = _lay(alone, pair, live, tail, head, edge_room, spare)
        nodes = 2 * left + 2
        start[:] = 0
        there, back = edge_room[0, :edges], edge_room[1, :edges]
        lay_arcs(tail[:edges], head[:edges], there, back, start[: nodes + 1], to, twin, room)
        tiny = TINY * (there + back).max() if edges else 0.0
        level = work[0, :nodes]
        flow += max_flow(
            start[: nodes + 1], to, twin, room, nodes - 2, nodes - 1, tiny,
            level, work[1, :nodes], work[2, :nodes], work[3, :nodes],
        )  # fmt: skip
        bound[i] -= constant + flow
        for j in range(left):
            p, q = level[2 * j] >= 0, level[2 * j + 1] >= 0
            labels[i, open_[j]] = 0.5 if p == q else (0.0 if p else 1.0)
