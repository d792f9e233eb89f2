"""How connections leave the flow table: when they fall due, how they are written out, how their slot becomes free."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import borrowing, inner
from netclust.kernels.packets.flow_layout import (
    ATTEMPT_LIST,
    ATTEMPT_NS,
    CLOSE_NS,
    CLOSED_LIST,
    DUE,
    END_CLOCK,
    END_CLOSED,
    FREE,
    IDLE_LIST,
    IDLE_NS,
    LISTS,
    NO_APP,
    NOW,
)

_NONE = -1
_NEVER = np.iinfo(np.int64).max


@borrowing(inner)
def due_time(start: int, conf: NDArray[np.int64], which: int) -> int:
    """When what counts from `start` falls due; never so late that the sum overflows."""
    wait = conf[ATTEMPT_NS] if which == ATTEMPT_LIST else conf[IDLE_NS] if which == IDLE_LIST else conf[CLOSE_NS]
    return min(start, _NEVER - 1 - wait) + wait


@borrowing(inner)
def take_out_flow(chain: NDArray[np.int32], ends: NDArray[np.int32], slot: int, which: int) -> None:
    """Take a flow out of its list."""
    before, behind = chain[slot, 0], chain[slot, 1]
    if before >= 0:
        chain[before, 1] = behind
    else:
        ends[which, 0] = behind
    if behind >= 0:
        chain[behind, 0] = before
    else:
        ends[which, 1] = before


@borrowing(inner)
def append_flow(chain: NDArray[np.int32], ends: NDArray[np.int32], slot: int, which: int) -> None:
    """Append a flow to the end of a list."""
    tail = ends[which, 1]
    chain[slot, 0], chain[slot, 1] = tail, _NONE
    if tail >= 0:
        chain[tail, 1] = slot
    else:
        ends[which, 0] = slot
    ends[which, 1] = slot


@borrowing(inner)
def end_due(
    flows: NDArray[Any], flow_words: NDArray[np.uint64], side_words: NDArray[np.uint64],
    name_words: NDArray[np.uint64], lines: NDArray[np.uint8], chain: NDArray[np.int32], ends: NDArray[np.int32],
    buckets: NDArray[np.int32], free: NDArray[np.int32], conf: NDArray[np.int64], state: NDArray[np.int64], now: int,
    out: NDArray[np.uint64], done: int, room: int,
) -> int:  # fmt: skip
    """Finish what falls due before `now`, in the order in which it does."""
    while done < room:
        first, due = _NONE, _NEVER
        for which in range(LISTS):
            slot = ends[which, 0]
            if slot >= 0 and due_time(flows[slot].due_from, conf, which) < due:
                first, due = np.int64(slot), due_time(flows[slot].due_from, conf, which)
        state[DUE] = due
        if due >= now:
            break
        which = flows[first].list
        reason = END_CLOSED if which == CLOSED_LIST else which + 1  # END_ATTEMPT, END_IDLE
        finish_flow(first, reason, due, flows, flow_words, side_words, name_words, lines, chain, ends, buckets, free,
                    state, out, done)  # fmt: skip
        done += 1
    return done


@borrowing(inner)
def end_all(
    flows: NDArray[Any], flow_words: NDArray[np.uint64], side_words: NDArray[np.uint64],
    name_words: NDArray[np.uint64], lines: NDArray[np.uint8], chain: NDArray[np.int32], ends: NDArray[np.int32],
    buckets: NDArray[np.int32], free: NDArray[np.int32], state: NDArray[np.int64], out: NDArray[np.uint64],
    done: int, room: int,
) -> int:  # fmt: skip
    """Finish everything, at the present traffic time."""
    for which in (CLOSED_LIST, ATTEMPT_LIST, IDLE_LIST):
        while ends[which, 0] >= 0 and done < room:
            finish_flow(np.int64(ends[which, 0]), END_CLOCK, state[NOW], flows, flow_words, side_words, name_words,
                        lines, chain, ends, buckets, free, state, out, done)  # fmt: skip
            done += 1
    state[DUE] = 0
    return done


@borrowing(inner)
def write_ended_flow(
    slot: int, reason: int, time: int, flows: NDArray[Any], flow_words: NDArray[np.uint64],
    side_words: NDArray[np.uint64], name_words: NDArray[np.uint64], out: NDArray[np.uint64], done: int,
) -> None:  # fmt: skip
    """Write a row of the output: time, flow, both sides, name. Copied by words; by fields would be far more code."""
    flow = flows[slot]
    flow.end, flow.time = reason, time
    out[done, 0] = np.uint64(time)
    at = 1
    for k in range(flow_words.shape[1]):
        out[done, at + k] = flow_words[slot, k]
    at += flow_words.shape[1]
    for k in range(side_words.shape[1]):
        out[done, at + k] = side_words[slot, k]
    at += side_words.shape[1]
    for k in range(name_words.shape[1]):
        out[done, at + k] = name_words[slot, k]


@borrowing(inner)
def finish_flow(
    slot: int, reason: int, time: int, flows: NDArray[Any], flow_words: NDArray[np.uint64],
    side_words: NDArray[np.uint64], name_words: NDArray[np.uint64], lines: NDArray[np.uint8],
    chain: NDArray[np.int32], ends: NDArray[np.int32], buckets: NDArray[np.int32], free: NDArray[np.int32],
    state: NDArray[np.int64], out: NDArray[np.uint64], done: int,
) -> None:  # fmt: skip
    """Write a connection out and give its slot back; what was read of its dialogue is wiped."""
    write_ended_flow(slot, reason, time, flows, flow_words, side_words, name_words, out, done)
    take_out_flow(chain, ends, slot, flows[slot].list)
    if flows[slot].app != NO_APP:
        lines[slot, :, :] = 0
    if flows[slot].name_bytes:
        name_words[slot, :] = 0
    free[state[FREE]] = slot
    state[FREE] += 1
    mask = np.uint64(len(buckets) - 1)
    hole = flows[slot].hash & mask
    while buckets[hole] != slot:
        hole = (hole + np.uint64(1)) & mask
    at = hole
    while True:  # close the hole, so that no search stops short (backward shift)
        at = (at + np.uint64(1)) & mask
        if buckets[at] < 0:
            break
        home = flows[buckets[at]].hash & mask
        if ((at - home) & mask) >= ((at - hole) & mask):
            buckets[hole] = buckets[at]
            hole = at
    buckets[hole] = _NONE
