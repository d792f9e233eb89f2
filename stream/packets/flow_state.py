"""The open connections of a flow table as plain arrays, and back: a table that goes on as if nothing had happened.

Connections are kept in the order of their lists, one list after the other. Slots, links and hash buckets are made anew
from that: none of it shows in a record, and no link from a file can lead a kernel astray.

>>> from netclust.stream.packets.flow_table import FlowTable
>>> table = FlowTable(max_flows=16)
>>> table.restore(FlowTable(max_flows=16).state())
>>> table.open_flows
0
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import ModelError
from netclust.foundation.container import Arrays, require_array
from netclust.kernels.packets import decode
from netclust.kernels.packets import flow_layout as layout
from netclust.stream.packets.line_redaction import redact_lines

__all__ = ["FlowMemory", "restore_flows", "save_flows"]

MAX_PROBES = 4096
"""Buckets that a search may look at: half of them are empty, so only made-up hashes lie so close together."""

_NEVER = int(np.iinfo(np.int64).max)
_WHERE = "open connections"
_GAP_NUMBERS, _TWO_LINES = 2 * layout.GAPS * 2, 2 * layout.LINE_BYTES  # of both directions
# What kernels index by, or count up from: the greatest value that they write.
_FLOW_LIMITS = {
    "list": layout.LISTS - 1,
    "swapped": 1,
    "app": layout.DNS,
    "name_bytes": layout.NAME_BYTES,
    **dict.fromkeys(("orig_state", "resp_state", "orig_before", "resp_before"), layout.RESET),
}
_SIDE_LIMITS = {"line": layout.LINE_BYTES, "gaps": layout.GAPS, "started": 2, "skip": 1}
# What must be the same in the table that goes on, in the order of `settings`.
_SETTINGS = ("max_flows", "tunnels", "attempt", "idle", "close", "active", "step", "content")
_CONF = (layout.ATTEMPT_NS, layout.IDLE_NS, layout.CLOSE_NS, layout.ACTIVE_NS, layout.STEP_NS, layout.CONTENT)


@dataclass(frozen=True, eq=False)
class FlowMemory:
    """The arrays of a flow table, by what the kernel calls them; `flows`, `sides` and `names` as words too."""

    max_flows: int
    tunnels: bool
    flows: NDArray[Any]
    sides: NDArray[Any]
    gaps: NDArray[np.uint32]
    names: NDArray[np.uint8]
    lines: NDArray[np.uint8]
    chain: NDArray[np.int32]
    ends: NDArray[np.int32]
    buckets: NDArray[np.int32]
    fragments: NDArray[Any]
    conf: NDArray[np.int64]
    state: NDArray[np.int64]
    counts: NDArray[np.int64]
    words: tuple[NDArray[np.uint64], ...]

    @property
    def settings(self) -> NDArray[np.int64]:
        """As named by _SETTINGS."""
        return np.array([self.max_flows, self.tunnels, *self.conf[list(_CONF)]], np.int64)


def save_flows(memory: FlowMemory) -> Arrays:
    """What is in use, copied: as long as this takes nothing else is read. Unfinished lines are redacted."""
    slots = np.array([slot for which in range(layout.LISTS) for slot in _listed(memory, which)], np.int64)
    flow_words, side_words, _ = memory.words
    flows, sides = flow_words[slots], side_words[slots]
    flow, side = _as_flows(flows), _as_sides(sides)
    with_gaps = np.flatnonzero(side["gaps"].any(axis=1))
    with_name = np.flatnonzero(flow["name_bytes"])
    with_line = np.flatnonzero(side["line"].any(axis=1))
    spoken = side[with_line]
    lines = redact_lines(memory.lines[slots[with_line]], spoken["line"], spoken["skip"], flow["app"][with_line])
    fragments = memory.fragments.view(np.uint8).reshape(len(memory.fragments), -1)
    used = np.flatnonzero(memory.fragments["hash"])
    return {
        "layout": np.array([_layout_code()], np.int64),
        "settings": memory.settings,
        "seed": memory.conf[[layout.SEED]],
        "state": memory.state.copy(),
        "counts": memory.counts.copy(),
        "flows": flows,
        "sides": sides,
        "gap_rows": with_gaps,
        "gaps": memory.gaps[slots[with_gaps]].view(np.int32).reshape(-1, _GAP_NUMBERS),
        "name_rows": with_name,
        "names": memory.names[slots[with_name]],
        "line_rows": with_line,
        "lines": lines.reshape(-1, _TWO_LINES),
        "fragment_rows": used,
        "fragments": fragments[used],
    }


def restore_flows(memory: FlowMemory, arrays: Arrays) -> None:
    """Into an unused table; raises ModelError for what no table can have written, and then nothing was changed."""
    if memory.state[layout.NEXT_ID] or memory.state[layout.NOW] >= 0:
        raise ValueError("a flow table is restored before it has seen packets")
    if require_array(arrays, "layout", np.int64, (1,), _WHERE)[0] != _layout_code():
        raise ModelError(f"{_WHERE}: written by another version of netclust: start without the saved state")
    _check_settings(memory, require_array(arrays, "settings", np.int64, (len(_SETTINGS),), _WHERE))
    flow_words, side_words, _ = memory.words
    flows = require_array(arrays, "flows", np.uint64, (None, flow_words.shape[1]), _WHERE)
    n = len(flows)
    sides = require_array(arrays, "sides", np.uint64, (n, side_words.shape[1]), _WHERE)
    state = require_array(arrays, "state", np.int64, (layout.STATES,), _WHERE)
    counts = require_array(arrays, "counts", np.int64, (decode.STATUSES,), _WHERE)
    seed = require_array(arrays, "seed", np.int64, (1,), _WHERE)
    gap_rows, gaps = _some_rows(arrays, "gap_rows", "gaps", np.int32, _GAP_NUMBERS, n)
    name_rows, names = _some_rows(arrays, "name_rows", "names", np.uint8, layout.NAME_BYTES, n)
    line_rows, lines = _some_rows(arrays, "line_rows", "lines", np.uint8, _TWO_LINES, n)
    places, fragments = _some_rows(
        arrays, "fragment_rows", "fragments", np.uint8, layout.FRAGMENT.itemsize, len(memory.fragments)
    )
    if n > memory.max_flows or state[layout.FREE] != memory.max_flows - n:
        raise ModelError(f"{_WHERE}: {n} connections and {state[layout.FREE]} free places, of {memory.max_flows}")
    if (np.delete(state, [layout.NOW, layout.DUE]) < 0).any() or (counts < 0).any() or state[layout.STEPPING]:
        raise ModelError(f"{_WHERE}: state or counts holds what is never written")
    flow = _as_flows(flows)
    _check_flows(flow, _as_sides(sides), state)
    buckets = _bucketed(flow["hash"], len(memory.buckets))

    flow_words[:n], side_words[:n] = flows, sides
    memory.gaps[gap_rows] = gaps.view(np.uint32).reshape(-1, *memory.gaps.shape[1:])
    memory.names[name_rows] = names
    memory.lines[line_rows] = lines.reshape(-1, *memory.lines.shape[1:])
    memory.fragments.view(np.uint8).reshape(len(memory.fragments), -1)[places] = fragments
    for which in range(layout.LISTS):
        _link(memory, np.flatnonzero(flow["list"] == which), which)
    memory.buckets[:] = buckets
    memory.conf[layout.SEED] = seed[0]
    memory.counts[:] = counts
    memory.state[:] = state
    memory.state[layout.DUE] = _first_due(memory)


def _listed(memory: FlowMemory, which: int) -> list[int]:
    """The slots of a list, in its order."""
    behind = memory.chain[:, 1].data  # quicker than an array, one by one
    slot, found = int(memory.ends[which, 0]), []
    while slot >= 0:
        found.append(slot)
        slot = behind[slot]
    return found


def _link(memory: FlowMemory, slots: NDArray[np.int64], which: int) -> None:
    if len(slots):
        memory.chain[slots[1:], 0] = slots[:-1]
        memory.chain[slots[:-1], 1] = slots[1:]
        memory.ends[which] = slots[0], slots[-1]


def _first_due(memory: FlowMemory) -> int:
    """When the first of all falls due; a search may find later that it is further off, never that it is nearer."""
    waits = memory.conf[[layout.ATTEMPT_NS, layout.IDLE_NS, layout.CLOSE_NS]].tolist()
    heads = memory.ends[:, 0].tolist()
    starts = [(int(memory.flows["due_from"][head]), wait) for head, wait in zip(heads, waits, strict=True) if head >= 0]
    return min([min(start, _NEVER - 1 - wait) + wait for start, wait in starts], default=_NEVER)


def _check_settings(memory: FlowMemory, saved: NDArray[np.int64]) -> None:
    for name, was, now in zip(_SETTINGS, saved.tolist(), memory.settings.tolist(), strict=True):
        if was != now:
            seconds = name not in ("max_flows", "tunnels", "content")
            was, now = (f"{was / 1e9:g}", f"{now / 1e9:g}") if seconds else (was, now)
            raise ModelError(f"{_WHERE}: {name} was {was}, it is {now}: set it back, or start without the saved state")


def _some_rows(
    arrays: Arrays, rows_name: str, name: str, dtype: Any, width: int, end: int
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Rows, and which they are: ascending, below `end`."""
    rows = require_array(arrays, rows_name, np.int64, (None,), _WHERE)
    values = require_array(arrays, name, dtype, (len(rows), width), _WHERE)
    if len(rows) and (rows[0] < 0 or rows[-1] >= end or (rows[1:] <= rows[:-1]).any()):
        raise ModelError(f"{_WHERE}: {rows_name} is not in order, or beyond {end}")
    return rows, values


def _check_flows(flow: NDArray[Any], side: NDArray[Any], state: NDArray[np.int64]) -> None:
    for array, limits in ((flow, _FLOW_LIMITS), (side, _SIDE_LIMITS)):
        for name, limit in limits.items():
            if (array[name] > limit).any():
                raise ModelError(f"{_WHERE}: {name} above {limit}")
        for name in array.dtype.names or ():
            if array.dtype[name].kind == "f" and not np.isfinite(array[name]).all():
                raise ModelError(f"{_WHERE}: {name} is not finite")
    due_from, in_list = flow["due_from"], flow["list"]
    if (np.diff(in_list.astype(np.int64)) < 0).any():
        raise ModelError(f"{_WHERE}: not in the order of their lists")
    if ((due_from[1:] < due_from[:-1]) & (in_list[1:] == in_list[:-1])).any() or (due_from > state[layout.NOW]).any():
        raise ModelError(f"{_WHERE}: not in the order of time")
    if (flow["id"] < 0).any() or (flow["id"] >= state[layout.NEXT_ID]).any():
        raise ModelError(f"{_WHERE}: an id that was not given yet")


def _bucketed(hashes: NDArray[np.uint64], size: int) -> NDArray[np.int32]:
    """The open-addressing table of rows: each in the first free bucket from that of its hash on."""
    buckets = np.full(size, -1, np.int32)
    left = np.arange(len(hashes), dtype=np.int32)
    at = (hashes & np.uint64(size - 1)).astype(np.int64)
    for _ in range(MAX_PROBES):
        if not len(left):
            return buckets
        free = buckets[at] < 0
        buckets[at[free]] = left[free]  # of several for one bucket the last stays
        waiting = buckets[at] != left
        left, at = left[waiting], (at[waiting] + 1) & (size - 1)
    raise ModelError(f"{_WHERE}: more hashes are alike than chance allows")


def _as_flows(words: NDArray[np.uint64]) -> NDArray[Any]:
    return np.ascontiguousarray(words).view(layout.FLOW).reshape(len(words))


def _as_sides(words: NDArray[np.uint64]) -> NDArray[Any]:
    return np.ascontiguousarray(words).view(layout.SIDE).reshape(len(words), 2)


def _layout_code() -> int:
    """Changes when a connection lies otherwise in memory, or is counted otherwise."""
    described = repr((layout.FLOW, layout.SIDE, layout.FRAGMENT, decode.STATUS_NAMES, layout.STATES))
    return zlib.crc32(described.encode())
