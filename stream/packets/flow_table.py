"""The flow table: blocks of packets in, finished connections out, in fixed memory and in the order of traffic time.

>>> table = FlowTable(max_flows=1000)
>>> table.feed(PacketBlock(np.zeros(0, np.uint8), np.zeros(0, INDEX))).size
0
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.container import Arrays
from netclust.kernels.packets import decode
from netclust.kernels.packets import flow_layout as layout
from netclust.kernels.packets.flows import track_flows
from netclust.kernels.seam import read_only
from netclust.stream.packets.flow_state import FlowMemory, restore_flows, save_flows
from netclust.stream.packets.packet_blocks import INDEX, PacketBlock
from netclust.stream.packets.services import app_ports

__all__ = ["FlowTable", "FlowTimeouts", "load_flow_kernels"]

MAX_FLOWS = 1 << 24
CHUNK_PACKETS = 8192  # decoded at a time: a call costs some 100 microseconds by itself
OUT_RECORDS = 4096
FRAGMENT_SLOTS = 8192
LIVE_NS = 3600 * 10**9
FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True)
class FlowTimeouts:
    """Seconds of traffic time; 0 means never, for `idle` and `active`.

    `attempt`: from a SYN that nobody answers. `idle`: from the last packet. `active`: from the beginning, when a
    connection that goes on gets an interim record. `close`: from the end of a TCP connection, for stragglers.
    `step`: packets this much older than others mean that the clock was set back.
    """

    attempt: float = 5.0
    idle: float = 60.0
    active: float = 300.0
    close: float = 1.0
    step: float = 60.0

    def settings(self, seed: int, content: bool) -> NDArray[np.int64]:
        """What the kernel is told."""
        conf = np.zeros(layout.SETTINGS, np.int64)
        conf[layout.SEED] = seed
        conf[layout.CONTENT] = content
        names = {"attempt": layout.ATTEMPT_NS, "idle": layout.IDLE_NS, "close": layout.CLOSE_NS, "step": layout.STEP_NS}
        for name, at in {**names, "active": layout.ACTIVE_NS}.items():
            seconds = getattr(self, name)
            if not 0 <= seconds <= 1e9:
                raise InputError(f"the {name} timeout is {seconds} seconds: it lies between 0 and 1,000,000,000")
            conf[at] = round(seconds * 1e9)
        if self.idle == 0:
            conf[layout.IDLE_NS] = 1 << 62
        return conf


class FlowTable:
    """Connections of one stream of packets. `now` is the traffic time so far, in nanoseconds; -1 before any packet."""

    def __init__(
        self,
        max_flows: int = 131_072,
        timeouts: FlowTimeouts | None = None,
        *,
        content: bool = True,
        tunnels: bool = False,
    ) -> None:
        if not 16 <= max_flows <= MAX_FLOWS:
            raise InputError(f"max_flows is {max_flows}: it lies between 16 and {MAX_FLOWS:,}")
        self.timeouts = timeouts or FlowTimeouts()
        self.tunnels = tunnels
        self.max_flows = max_flows
        seed = int.from_bytes(os.urandom(7), "little")
        self._conf = self.timeouts.settings(seed, content)
        self._state = np.zeros(layout.STATES, np.int64)
        self._state[layout.NOW] = -1
        self._state[layout.FREE] = max_flows
        self._counts = np.zeros(decode.STATUSES, np.int64)
        # Zeroed memory that was never touched takes no room: a table costs what its busiest moment needed.
        buckets = 1 << (2 * max_flows - 1).bit_length()
        self._table = (
            np.zeros(max_flows, layout.FLOW),
            np.zeros((max_flows, 2), layout.SIDE),
            np.zeros((max_flows, 2, layout.GAPS, 2), np.uint32),
            np.zeros((max_flows, layout.NAME_BYTES), np.uint8),
            np.zeros((max_flows, 2, layout.LINE_BYTES), np.uint8),
            np.full((max_flows, 2), -1, np.int32),
            np.full((layout.LISTS, 2), -1, np.int32),
            np.full(buckets, -1, np.int32),
            np.arange(max_flows - 1, -1, -1, dtype=np.int32),
            np.zeros(FRAGMENT_SLOTS, layout.FRAGMENT),
            app_ports(),
        )
        self._packets = np.zeros(CHUNK_PACKETS, decode.PACKET)
        flows, sides, _, names = self._table[:4]
        self._words = tuple(array.view(np.uint64).reshape(max_flows, -1) for array in (flows, sides, names))
        self._out = np.zeros(OUT_RECORDS, layout.RECORD)
        self._scratch = np.zeros(256, np.uint16)

    @property
    def now(self) -> int:
        """The traffic time so far: records that come later end no earlier."""
        return int(self._state[layout.NOW])

    @property
    def open_flows(self) -> int:
        """How many connections are open."""
        return self.max_flows - int(self._state[layout.FREE])

    @property
    def counters(self) -> Counter[str]:
        """Packets by what became of them, and what the table had to do."""
        counts = {name: int(n) for name, n in zip(decode.STATUS_NAMES, self._counts, strict=True) if name}
        names = {
            "flows": layout.NEXT_ID,
            "flows_evicted": layout.EVICTED,
            "orphan_fragments": layout.ORPHAN_FRAGMENTS,
            "wrong_fragments": layout.WRONG_FRAGMENTS,
            "clock_set_back": layout.CLOCK_STEPS,
            "clock_leaps": layout.CLOCK_LEAPS,
            "packets_out_of_order": layout.REORDERED,
            "ports_reused": layout.PORT_REUSE,
        }
        return Counter(counts | {name: int(self._state[at]) for name, at in names.items()})

    def feed(self, block: PacketBlock) -> NDArray[Any]:
        """Follow a block of packets; the connections that ended, as an array of RECORD."""
        ended = []
        for begin in range(0, len(block.index), CHUNK_PACKETS):
            index = block.index[begin : begin + CHUNK_PACKETS]
            packets = self._packets[: len(index)]
            decode.decode_packets(read_only(block.data), index, self.tunnels, packets, self._counts)
            ended += self._track(block.data, packets, -1)
        # A wall clock far ahead of the packets is none of theirs: an old capture is being followed.
        if block.now > self.now and (self.now < 0 or block.now - self.now < LIVE_NS):
            ended += self._track(_NO_DATA, self._packets[:0], block.now)
        return np.concatenate(ended) if ended else np.empty(0, layout.RECORD)

    def advance(self, now: int) -> NDArray[Any]:
        """Let the traffic time come to `now` without packets; the connections that fell due."""
        return self.feed(PacketBlock(_NO_DATA, np.empty(0, INDEX), now))

    def finish(self) -> NDArray[Any]:
        """All that is still open, each ending when it would have fallen due; without an idle timeout, now."""
        now = self.now
        self._state[layout.NOW] = min(now, FOREVER - 1)  # nothing would come after the last moment that there is
        ended = self._track(_NO_DATA, self._packets[:0], FOREVER)
        self._state[layout.NOW] = now
        records = np.concatenate(ended) if ended else np.empty(0, layout.RECORD)
        if self.timeouts.idle == 0:
            never = records["flow"]["end"] == layout.END_IDLE
            records["flow"]["end"][never] = layout.END_STOPPED
            records["time"][never] = now
            # Unanswered attempts may have fallen due later: time does not go back.
            records["time"] = np.maximum.accumulate(records["time"])
            records["flow"]["time"] = records["time"]
        return records

    def state(self) -> Arrays:
        """A copy of all that is open and counted, for `restore`; for a container (`netclust.foundation.container`)."""
        return save_flows(self._memory())

    def restore(self, arrays: Arrays) -> None:
        """Go on where `state` was taken: records are the same, to the byte. The table must be new and set alike.

        Raises ModelError if it is not set alike, or if the arrays are none of a table's.
        """
        restore_flows(self._memory(), arrays)

    def _memory(self) -> FlowMemory:
        flows, sides, gaps, names, lines, chain, ends, buckets, _, fragments, _ = self._table
        return FlowMemory(
            self.max_flows, self.tunnels, flows, sides, gaps, names, lines, chain, ends, buckets, fragments,
            self._conf, self._state, self._counts, self._words,
        )  # fmt: skip

    def _track(self, data: NDArray[np.uint8], packets: NDArray[Any], until: int) -> list[NDArray[Any]]:
        ended = []
        begin, more = 0, True
        while more:
            begin, done = track_flows(
                read_only(data), packets, begin, until, *self._table, self._conf, self._state, self._words,
                self._out.view(np.uint64).reshape(OUT_RECORDS, -1), self._scratch,
            )  # fmt: skip
            if done:
                ended.append(self._out[:done].copy())
            more = done >= OUT_RECORDS - 2
        return ended


_NO_DATA = np.zeros(1, np.uint8)


def load_flow_kernels() -> None:
    """Compile what follows packets, or load it from the cache, so that the first packet does not wait for it."""
    FlowTable(16).feed(PacketBlock(np.zeros(64, np.uint8), np.zeros(1, INDEX)))
