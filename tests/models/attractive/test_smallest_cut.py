"""Flows: against scipy's, every cut of small graphs, and a twin that takes the shortest way each time."""

from __future__ import annotations

from collections import deque
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from needed import need_module

from netclust.errors import InputError
from netclust.models.attractive.smallest_cut import MinCut


def edges(nodes: int, count: int, seed: int, top: int = 9) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    tail, head = rng.integers(0, nodes, count), rng.integers(0, nodes, count)
    return tail, head, rng.integers(0, top, count).astype(float), rng.integers(0, top // 3 + 1, count).astype(float)


def shortest_ways(nodes: int, tail, head, there, back, source: int, sink: int) -> tuple[float, np.ndarray]:
    """Edmonds and Karp on a matrix."""
    room = np.zeros((nodes, nodes))
    np.add.at(room, (tail, head), there)
    np.add.at(room, (head, tail), back)
    np.fill_diagonal(room, 0)
    total = 0.0
    while True:
        before = np.full(nodes, -1)
        before[source] = source
        queue = deque([source])
        while queue:
            v = queue.popleft()
            for u in np.flatnonzero((room[v] > 0) & (before < 0)):
                before[u] = v
                queue.append(u)
        if before[sink] < 0:
            return total, before >= 0
        way, v = [], sink
        while v != source:
            way.append((before[v], v))
            v = before[v]
        amount = min(room[a, b] for a, b in way)
        for a, b in way:
            room[a, b] -= amount
            room[b, a] += amount
        total += amount


@given(st.integers(2, 9), st.integers(0, 30), st.integers(0, 10_000))
def test_value_and_side_are_those_of_the_twin_and_of_the_best_cut(nodes: int, count: int, seed: int) -> None:
    tail, head, there, back = edges(nodes, count, seed)
    value, reached = MinCut(nodes, tail, head, there, back).solve(0, nodes - 1)
    assert (value, reached.tolist()) == (
        (twin := shortest_ways(nodes, tail, head, there, back, 0, nodes - 1))[0],
        twin[1].tolist(),
    )
    best = min(
        there[side[tail] & ~side[head]].sum() + back[side[head] & ~side[tail]].sum()
        for middle in product((False, True), repeat=nodes - 2)
        for side in [np.array([True, *middle, False])]
    )
    assert value == best


def test_large_graphs_have_the_value_that_scipy_finds() -> None:
    sparse, graph = need_module("scipy.sparse"), need_module("scipy.sparse.csgraph")
    for seed in range(5):
        tail, head, there, _ = edges(400, 3000, seed, top=1000)
        matrix = sparse.csr_matrix((there.astype(np.int32), (tail, head)), shape=(400, 400))
        value, reached = MinCut(400, tail, head, there).solve(0, 399)
        assert value == graph.maximum_flow(matrix, 0, 399).flow_value
        assert there[reached[tail] & ~reached[head]].sum() == value


def test_broken_numbers_cut_what_they_say_they_cut() -> None:
    rng = np.random.default_rng(0)
    for seed in range(100):
        tail, head, there, back = edges(30, 120, seed)
        there, back = there * rng.uniform(0, 1, 120), back * rng.uniform(0, 1e-6, 120)
        value, reached = MinCut(30, tail, head, there, back).solve(3, 7)
        cut = there[reached[tail] & ~reached[head]].sum() + back[reached[head] & ~reached[tail]].sum()
        assert value == pytest.approx(cut, abs=1e-9)
        assert reached[3]
        assert not reached[7]


def test_what_is_no_graph_is_refused() -> None:
    with pytest.raises(InputError, match="nodes are 0 to 1"):
        MinCut(2, [0], [2], [1.0])
    with pytest.raises(InputError, match="finite numbers"):
        MinCut(2, [0], [1], [-1.0])
    with pytest.raises(InputError, match="as many"):
        MinCut(2, [0], [1], [1.0, 2.0])
    with pytest.raises(InputError, match="two of the nodes"):
        MinCut(2, [0], [1], [1.0]).solve(0, 0)
