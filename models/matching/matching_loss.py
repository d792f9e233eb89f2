"""The Hamming loss of a matching: edges that it misses or has wrong, in percent of the most there may be.

>>> y = np.array([2, 3, 0, 1])  # the partner of every node
>>> others = np.array([[2, 3, 0, 1], [2, -1, 0, -1], [3, 2, 1, 0]])
>>> [wrong_edges(y, h) for h in others], [delta_matching(y, h) for h in others]
([0, 1, 4], [0.0, 25.0, 100.0])

A wrong edge in the place of a right one counts twice, as in the 0/1 vectors of edges; the source's example counts it
once.
"""

from __future__ import annotations

import numpy as np

from netclust.models.matching.matchings import Partners

__all__ = ["delta_matching", "edge_price", "wrong_edges"]


def wrong_edges(y: Partners, h: Partners) -> int:
    """Edges of one of the two matchings alone."""
    return int(np.count_nonzero(y >= 0) + np.count_nonzero(h >= 0) - 2 * np.count_nonzero((y == h) & (y >= 0))) // 2


def edge_price(y: Partners) -> float:
    """What each such edge costs: 100 shared among the edges of y and of a matching of all nodes."""
    return 100.0 / max(int(np.count_nonzero(y >= 0)) // 2 + len(y) // 2, 1)


def delta_matching(y: Partners, h: Partners) -> float:
    """The loss of h where y is true."""
    return wrong_edges(y, h) * edge_price(y)
