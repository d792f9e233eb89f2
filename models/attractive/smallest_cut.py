"""The smallest cut of a graph: which nodes stay with the source when as little capacity as possible is cut.

>>> cut = MinCut(4, [0, 0, 1, 2, 1], [1, 2, 3, 3, 2], [3.0, 1.0, 1.0, 3.0, 1.0])
>>> value, reached = cut.solve(0, 3)
>>> value, reached.tolist()
(3.0, [True, True, False, False])

L. R. Ford and D. R. Fulkerson, "Maximal flow through a network", 1956; the kernel is Dinic's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from netclust.errors import InputError

__all__ = ["TINY", "MinCut"]

TINY = 1e-12
"""Of the largest capacity: what is left of an arc below this is nothing."""


class MinCut:
    """Edges with a capacity from tail to head, and one `back` (0 where it is left out)."""

    def __init__(
        self, nodes: int, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike, back: ArrayLike | None = None
    ) -> None:
        ends = np.asarray(tail, np.int64), np.asarray(head, np.int64)
        there = np.asarray(capacity, np.float64)
        again = np.zeros(len(there)) if back is None else np.asarray(back, np.float64)
        if not len(ends[0]) == len(ends[1]) == len(there) == len(again):
            raise InputError("tails, heads and capacities of a graph must be as many")
        if any(len(end) and not (end.min() >= 0 and end.max() < nodes) for end in ends):
            raise InputError(f"an edge ends at a node that is not there: nodes are 0 to {nodes - 1}")
        if not all((some >= 0).all() and np.isfinite(some).all() for some in (there, again)):
            raise InputError("capacities are finite numbers of at least 0")
        from netclust.kernels.structured.maxflow import lay_arcs

        self.nodes = nodes
        self._tiny = TINY * max(there.max(initial=0.0), again.max(initial=0.0))
        self._start = np.zeros(nodes + 1, np.int64)
        self._head, self._twin = np.zeros(2 * len(there), np.int64), np.zeros(2 * len(there), np.int64)
        self._room = np.zeros(2 * len(there))
        lay_arcs(*ends, there, again, self._start, self._head, self._twin, self._room)

    def solve(self, source: int, sink: int) -> tuple[float, NDArray[np.bool_]]:
        """The value of the smallest cut, and which nodes are on the source's side of it (the fewest possible)."""
        if source == sink or not (0 <= source < self.nodes and 0 <= sink < self.nodes):
            raise InputError(f"source {source} and sink {sink} must be two of the nodes 0 to {self.nodes - 1}")
        from netclust.kernels.structured.maxflow import max_flow

        work: list[Any] = [np.zeros(self.nodes, np.int64) for _ in range(4)]
        room = self._room.copy()
        value = max_flow(self._start, self._head, self._twin, room, source, sink, self._tiny, *work)
        return float(value), work[0] >= 0
