"""Counts over a sliding window of records, kept up to date as records enter and leave: nothing is ever counted again.

Every record has some keys (its host, its service, both together ...) and a class (0, 1 or 2). A key's counters are: how
many records of the window have it, how many of class 1, how many of class 2, and how many distinct keys of up to two
other columns were seen with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import borrowing, inner, kernel
from netclust.kernels.packets.payload import mix

ALL, FIRST, SECOND, DISTINCT, COUNTERS = 0, 1, 2, 3, 5
# What is kept between calls.
OLDEST, HELD, LATEST, DROPPED, STATES = range(5)
_EMPTY = np.uint64(0)


@borrowing(kernel)
def count_window(
    time: NDArray[np.int64], keys: NDArray[np.uint64], klass: NDArray[np.uint8], parent: NDArray[np.int64],
    span: int, longest: int, ring_time: NDArray[np.int64], ring_keys: NDArray[np.uint64],
    ring_class: NDArray[np.uint8], table: NDArray[np.uint64], counts: NDArray[np.int32], state: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:  # fmt: skip
    """Counts of every record's keys over (time - span, time], at most the last `longest` records, itself included.

    `parent[k]` says that column k's distinct keys are counted for column parent[k, 0] as its DISTINCT + parent[k, 1];
    -1 if they are not. Keys are never 0. If the time goes back, the window begins anew.
    """
    room = len(ring_time)
    columns = keys.shape[1]
    for i in range(len(time)):
        stepped = time[i] < state[LATEST]
        state[LATEST] = time[i]
        while state[HELD] > 0:
            old = state[OLDEST]
            late = stepped or (span > 0 and ring_time[old] <= time[i] - span)
            if not late and state[HELD] < longest:
                break
            if not late and span > 0:
                state[DROPPED] += 1  # there was no room for the whole span
            _change(ring_keys[old], ring_class[old], parent, -1, table, counts)
            state[OLDEST] = (old + 1) % room
            state[HELD] -= 1
        new = (state[OLDEST] + state[HELD]) % room
        ring_time[new], ring_class[new] = time[i], klass[i]
        for k in range(columns):
            ring_keys[new, k] = keys[i, k]
        state[HELD] += 1
        _change(keys[i], klass[i], parent, 1, table, counts)
        for k in range(columns):
            at = _find(table, keys[i, k])
            for c in range(COUNTERS):
                out[i, k, c] = counts[at, c]


@borrowing(inner)
def _find(table: NDArray[np.uint64], key: Any) -> int:
    """Where a key is, or the free place where it would be."""
    mask = np.uint64(len(table) - 1)
    at = key & mask
    while table[at] != key and table[at] != _EMPTY:
        at = (at + np.uint64(1)) & mask
    return np.int64(at)


@borrowing(inner)
def _change(
    keys: NDArray[np.uint64], klass: int, parent: NDArray[np.int64], by: int, table: NDArray[np.uint64],
    counts: NDArray[np.int32],
) -> None:  # fmt: skip
    """A record enters (by = 1) or leaves (by = -1)."""
    for k in range(len(keys)):
        at = _find(table, keys[k])
        table[at] = keys[k]
        counts[at, ALL] += by
        if klass:
            counts[at, klass] += by
        owner = parent[k, 0]
        if owner >= 0 and counts[at, ALL] == (1 if by > 0 else 0):
            above = _find(table, keys[owner])  # parents stand before their children: it is there
            counts[above, DISTINCT + parent[k, 1]] += by
    if by < 0:
        for k in range(len(keys)):
            at = _find(table, keys[k])
            if table[at] == keys[k] and counts[at, ALL] == 0:
                _remove(table, counts, at)


@borrowing(inner)
def _remove(table: NDArray[np.uint64], counts: NDArray[np.int32], hole: int) -> None:
    """Close the hole, so that no search stops short (backward shift)."""
    mask = np.uint64(len(table) - 1)
    gap = np.uint64(hole)
    at = gap
    while True:
        at = (at + np.uint64(1)) & mask
        if table[at] == _EMPTY:
            break
        home = table[at] & mask
        if ((at - home) & mask) >= ((at - gap) & mask):
            table[gap] = table[at]
            for c in range(COUNTERS):
                counts[gap, c] = counts[at, c]
            gap = at
    table[gap] = _EMPTY
    for c in range(COUNTERS):
        counts[gap, c] = 0


@borrowing(kernel)
def mix_keys(parts: NDArray[np.uint64], salt: int, out: NDArray[np.uint64]) -> None:
    """One key of several words a record, never 0."""
    for i in range(len(parts)):
        h = mix(np.uint64(salt + 1))
        for k in range(parts.shape[1]):
            h = mix(h ^ parts[i, k])
        out[i] = h if h else np.uint64(1)


@borrowing(kernel)
def repeat_gaps(
    time: NDArray[np.int64], keys: NDArray[np.uint64], alpha: float, table: NDArray[np.uint64],
    last: NDArray[np.int64], moments: NDArray[np.float64], out: NDArray[np.float64],
) -> None:  # fmt: skip
    """For each record: seconds since the last one with its key (-1 if none), how regular such gaps are, how many.

    Regularity is 1 less the coefficient of variation of recent gaps, between 0 and 1; 0 before the third gap. A key
    lives in one of two neighbouring places; the one that was silent for longer is given up for a new key.
    """
    mask = np.uint64(len(table) - 1)
    for i in range(len(time)):
        key = keys[i]
        at = np.int64(key & mask)
        other = at ^ 1
        if table[at] != key and (table[other] == key or last[other] < last[at]):
            at = other
        out[i, 0], out[i, 1] = -1.0, 0.0
        if table[at] != key:
            table[at], last[at] = key, time[i]
            moments[at, 0] = moments[at, 1] = moments[at, 2] = 0.0
            out[i, 2] = 0.0
            continue
        gap = max(time[i] - last[at], 0) * 1e-9
        last[at] = max(last[at], time[i])
        mean, variance, seen = moments[at, 0], moments[at, 1], moments[at, 2]
        if seen == 0:
            mean = gap
        else:
            delta = gap - mean
            mean += alpha * delta
            variance = (1 - alpha) * (variance + alpha * delta * delta)
        moments[at, 0], moments[at, 1], moments[at, 2] = mean, variance, seen + 1
        out[i, 0] = gap
        out[i, 2] = seen + 1
        if seen >= 2 and mean > 0:
            out[i, 1] = max(1.0 - np.sqrt(variance) / mean, 0.0)
