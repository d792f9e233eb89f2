"""Who linked to whom, for the last records of a stream: a ring by arrival number.

Some records are kept for showing, most are not: a kept one is hung on its nearest kept ancestor, and how many links lie
between is counted. Depth is the number of links up to the root or to a pinned reference, 0 where that is not known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import borrowing, inner, kernel

# What a record hangs on, if not on a record: the root, a pinned reference, one that the ring no longer has.
ON_ROOT, ON_REFERENCE, ON_FORGOTTEN = -1, -2, -3
UNKNOWN = np.iinfo(np.int64).min  # no handle


class Lineage(NamedTuple):
    """A ring of 2^k records: record t is at t modulo the length, if `tick` says so."""

    tick: NDArray[np.int64]  # -1: nobody
    parent: NDArray[np.int64]  # a handle: an arrival number, the root, or reference k as -2-k
    link: NDArray[np.int64]  # nearest kept ancestor, or what else it hangs on
    hops: NDArray[np.int64]  # links up to there
    depth: NDArray[np.int64]
    end: NDArray[np.int64]  # the handle at the end of its path: the root, a reference, or UNKNOWN
    kept: NDArray[np.uint8]


def new_lineage(bits: int) -> Lineage:
    """An empty ring of 2^bits records."""
    n = 1 << bits
    numbers = {name: np.zeros(n, np.int64) for name in Lineage._fields if name != "kept"}
    numbers["tick"] -= 1
    return Lineage(**numbers, kept=np.zeros(n, np.uint8))


@borrowing(inner)
def _place(lineage: Any, tick: Any) -> Any:
    """Where a record is in the ring, -1 if it is not."""
    at = tick & (len(lineage.tick) - 1)
    return at if lineage.tick[at] == tick else -1


@borrowing(kernel)
def follow_lineage(first: Any, parent: Any, keep: Any, lineage: Any) -> Any:
    """Take in consecutive records from arrival number `first` on: what each was linked to, and whether it is kept."""
    for i in range(len(parent)):
        handle = parent[i]
        link, hops, depth, end = ON_FORGOTTEN, 1, 0, UNKNOWN
        if handle < 0:
            link = ON_ROOT if handle == -1 else ON_REFERENCE
            depth, end = 1, handle
        else:
            at = _place(lineage, handle)
            if at >= 0:
                end = lineage.end[at]
                if lineage.depth[at] > 0:
                    depth = lineage.depth[at] + 1
                if lineage.kept[at]:
                    link = handle
                else:
                    link, hops = lineage.link[at], lineage.hops[at] + 1
        tick = first + i
        at = tick & (len(lineage.tick) - 1)
        lineage.tick[at] = tick
        lineage.parent[at] = handle
        lineage.link[at] = link
        lineage.hops[at] = hops
        lineage.depth[at] = depth
        lineage.end[at] = end
        lineage.kept[at] = keep[i]


@borrowing(kernel)
def walk_lineage(lineage: Any, tick: Any, newest: Any, oldest: Any) -> Any:
    """Go from a record to where its path ends: the first places of the ring into `newest`, the last into `oldest`.

    `oldest` is a ring as well: the place of step k is at k modulo its length. Returns how many steps there are.
    """
    steps = 0
    while tick >= 0:
        at = _place(lineage, tick)
        if at < 0:
            break
        if steps < len(newest):
            newest[steps] = at
        oldest[steps % len(oldest)] = at
        steps += 1
        tick = lineage.parent[at]
    return steps
