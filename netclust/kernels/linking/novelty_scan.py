"""Distances of a record to the referents of a site: the exact k-th smallest, or whether it exceeds a threshold.

Referents lie column by column as in `score`, in whole blocks. Their numbers are in units of the
site's spread, counted from the low end of the site's range. A distance is accumulated in float32: the numbers in their
order, then the codes in theirs, so that any implementation that keeps this order agrees bit for bit. Distances are
never negative, hence their bits, read as integers, have the same order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import borrowing, inlined, inner, kernel

BLOCK = 128
"""Referents are scanned in whole blocks; after each, the scan looks whether the answer is known."""
EVEN_CUTS = 12
INFINITE = np.int32(0x7F800000)


class SiteScan(NamedTuple):
    """The referents of a site, and how a record is measured against them.

    A number x of attribute `kept[f]` becomes min(max((x - low_f) slope_f, 0), span_f), and `missing_f` if it is not a
    number. The prices of attribute s start at `offset[s]`.
    """

    num: NDArray[np.float32]
    code: NDArray[np.uint16]
    kept: NDArray[np.int64]
    low: NDArray[np.float32]
    slope: NDArray[np.float32]
    span: NDArray[np.float32]
    missing: NDArray[np.float32]
    price: NDArray[np.float32]
    offset: NDArray[np.int64]


class ScanRoom(NamedTuple):
    """Scratch space: one distance per referent, and one record in the units of the site."""

    acc: NDArray[np.float32]
    x: NDArray[np.float32]
    price: NDArray[np.float32]


def make_scan_room(site: SiteScan, n: int) -> ScanRoom:
    """Return the scratch space for n referents."""
    sizes = (padded(n), len(site.kept), len(site.code))
    return ScanRoom(*(np.zeros(size, np.float32) for size in sizes))


def padded(n: int) -> int:
    """Return how many columns n referents take: whole blocks."""
    return (n + BLOCK - 1) // BLOCK * BLOCK


def block_columns(rows: NDArray[Any]) -> NDArray[Any]:
    """Return records turned into referents: one column each, and zeros up to the end of the block."""
    turned = np.zeros((rows.shape[1], padded(len(rows))), rows.dtype)
    turned[:, : len(rows)] = rows.T
    return turned


@borrowing(inlined)
def measure(x: Any, codes: Any, site: Any, room: Any) -> None:
    """Put a record's numbers into the units of the site, and look up the prices of its codes."""
    zero = np.float32(0)
    for f in range(len(site.kept)):
        value = (x[site.kept[f]] - site.low[f]) * site.slope[f]
        if value != value:
            value = site.missing[f]
        room.x[f] = min(max(value, zero), site.span[f])
    for s in range(len(site.offset)):
        room.price[s] = site.price[site.offset[s] + codes[s]]


@borrowing(inlined)
def add_distances(x: Any, codes: Any, price: Any, num: Any, code: Any, lo: Any, n: Any, acc: Any) -> None:
    """acc[lo + k] = distance of a record (in units, with the prices of its codes) to referent lo + k, for k < n."""
    hi = lo + n
    out = acc[lo:hi]
    for k in range(n):
        out[k] = np.float32(0)
    f, last = 0, len(num)
    # Four attributes a pass: the running sum stays in registers; the order of additions is that of the attributes.
    while f + 4 <= last:
        x0, x1, x2, x3 = x[f], x[f + 1], x[f + 2], x[f + 3]
        r0, r1, r2, r3 = num[f, lo:hi], num[f + 1, lo:hi], num[f + 2, lo:hi], num[f + 3, lo:hi]
        for k in range(n):
            d = out[k] + abs(x0 - r0[k])
            d = d + abs(x1 - r1[k])
            d = d + abs(x2 - r2[k])
            out[k] = d + abs(x3 - r3[k])
        f += 4
    while f + 2 <= last:
        x0, x1 = x[f], x[f + 1]
        r0, r1 = num[f, lo:hi], num[f + 1, lo:hi]
        for k in range(n):
            d = out[k] + abs(x0 - r0[k])
            out[k] = d + abs(x1 - r1[k])
        f += 2
    if f < last:
        xf, rf = x[f], num[f, lo:hi]
        for k in range(n):
            out[k] += abs(xf - rf[k])
    zero = np.float32(0)
    s, last = 0, len(code)
    while s + 2 <= last:
        c0, c1, p0, p1 = codes[s], codes[s + 1], price[s], price[s + 1]
        o0, o1 = code[s, lo:hi], code[s + 1, lo:hi]
        for k in range(n):
            d = out[k] + (zero if o0[k] == c0 else p0)
            out[k] = d + (zero if o1[k] == c1 else p1)
        s += 2
    if s < last:
        c, cost = codes[s], price[s]
        others = code[s, lo:hi]
        for k in range(n):
            out[k] += zero if others[k] == c else cost


@borrowing(inner)
def count_within(bits: Any, lo: Any, n: Any, most: Any) -> Any:
    """Return how many of n distances from `lo` on are at most `most`, all given by their bits."""
    part = bits[lo : lo + n]
    count = np.int32(0)
    for k in range(n):
        count += np.int32(1) if part[k] <= most else np.int32(0)
    return count


@borrowing(inner)
def split_at(bits: Any, middle: Any) -> Any:
    """Return how many distances are at most `middle`, the largest of these, and the smallest of the others."""
    count, below, above = np.int32(0), np.int32(0), INFINITE
    for k in range(len(bits)):
        value = bits[k]
        within = value <= middle
        count += np.int32(1) if within else np.int32(0)
        below = max(below, value if within else np.int32(0))
        above = min(above, INFINITE if within else value)
    return count, below, above


@borrowing(inner)
def kth_smallest(acc: Any, n: Any, k: Any) -> Any:
    """Return the bits of the k-th smallest of n distances (k from 1); `acc` has whole vectors of them.

    The range of values that holds it is cut where the k-th would be if they were spread evenly, and after EVEN_CUTS in
    the middle. Its ends are distances that occur, so about eight cuts are enough.
    """
    bits = acc.view(np.int32)
    for j in range(n, len(bits)):
        bits[j] = INFINITE
    low, high = INFINITE, np.int32(0)
    for j in range(len(bits)):
        value = bits[j]
        low = min(low, value)
        high = max(high, value if value < INFINITE else np.int32(0))
    less, most = np.int64(0), np.int64(n)  # this many are below `low`, and at most `high`
    turn = 0
    while low < high:
        width = np.int64(high) - np.int64(low)
        evenly = np.int64(width * ((k - less - 0.5) / (most - less)))
        step = evenly if turn < EVEN_CUTS else width >> 1
        middle = np.int32(low + min(step, width - 1))
        count, below, above = split_at(bits, middle)
        if count >= k:
            high, most = below, np.int64(count)
            if count == k:
                return below
        else:
            low, less = above, np.int64(count)
            if count == k - 1:
                return above
        turn += 1
    return high


@borrowing(kernel)
def kth_distances(num: Any, code: Any, site: Any, n: Any, k: Any, room: Any, out: Any) -> None:
    """out[i] = the k-th smallest distance (k from 1) of record i (rows of num, code) to the n referents."""
    none: Any = np.int64(0)
    found = out.view(np.int32)
    for i in range(len(num)):
        measure(num[i], code[i], site, room)
        add_distances(room.x, code[i], room.price, site.num, site.code, none, len(room.acc), room.acc)
        found[i] = kth_smallest(room.acc, n, k)


@borrowing(kernel)
def distances_of(x: Any, codes: Any, site: Any, room: Any) -> None:
    """room.acc[k] = the distance of one record to referent k."""
    none: Any = np.int64(0)
    measure(x, codes, site, room)
    add_distances(room.x, codes, room.price, site.num, site.code, none, len(room.acc), room.acc)


@borrowing(kernel)
def count_below(num: Any, code: Any, site: Any, n: Any, k: Any, threshold: Any, room: Any, out: Any) -> None:
    """out[i] = whether fewer than k of the n referents are within threshold[i] of record i.

    This is whether its k-th smallest distance exceeds the threshold. The scan stops as soon as that is known.
    """
    limits = threshold.view(np.int32)
    bits = room.acc.view(np.int32)
    for i in range(len(num)):
        measure(num[i], code[i], site, room)
        count = np.int64(0)
        lo: Any = np.int64(0)
        most = limits[i]
        while lo < n and count < k and count + n - lo >= k:
            hi = min(lo + BLOCK, n)
            add_distances(room.x, code[i], room.price, site.num, site.code, lo, BLOCK, room.acc)
            count += count_within(bits, lo, hi - lo, most)
            lo = hi
        out[i] = count < k
