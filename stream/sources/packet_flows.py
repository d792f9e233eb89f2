"""From blocks of packets to arrivals: what captures and interfaces have in common.

>>> flows = PacketFlows("flow", Counter())
>>> flows.feed(PacketBlock(np.zeros(0, np.uint8), np.zeros(0, INDEX)))
>>> [len(arrival.table) for arrival in flows.arrivals()]
[0]
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import ModelError
from netclust.foundation.container import Arrays
from netclust.kernels.packets.flow_layout import RECORD
from netclust.stream.packets.connections import connection_maker, context_columns
from netclust.stream.packets.flow_table import FlowTable, FlowTimeouts
from netclust.stream.packets.packet_blocks import INDEX, PacketBlock
from netclust.stream.sources.base import TICK_SECONDS, Arrival, Context, SourceState

__all__ = ["INDEX", "MAX_RECORDS", "PacketFlows"]

MAX_RECORDS = 8192
"""Of one arrival."""

_TABLE, _COUNTS = "table.", "connections."


class PacketFlows:
    """A flow table and the attributes of its connections; `counters` (of the source) is kept up to date.

    Counters: packets, bytes (on the wire), records, and those of FlowTable and Connections. `open_flows` is no counter.
    """

    def __init__(
        self,
        schema: str,
        counters: Counter[str],
        *,
        max_flows: int = 131_072,
        timeouts: FlowTimeouts | None = None,
        tunnels: bool = False,
    ) -> None:
        self._new_table = partial(FlowTable, max_flows, timeouts, tunnels=tunnels)
        self._new_connections = partial(connection_maker, schema, context=False)
        self.table, self.connections = self._new_table(), self._new_connections()
        self.counters = counters
        # All names from the beginning: another thread may read them while they change.
        counters.update(packets=0, bytes=0, records=0)
        self._wanted = threading.Event()
        self._waiting: list[NDArray[Any]] = []
        self._records = 0
        self._last = time.monotonic()
        self._ended_at = -1
        self._count()

    @property
    def open_flows(self) -> int:
        """Connections that are open."""
        return self.table.open_flows

    def want_state(self) -> None:
        """Give the state with the next arrival. From any thread."""
        self._wanted.set()

    def state(self) -> Arrays:
        """The open connections and what was counted."""
        table = {f"{_TABLE}{name}": array for name, array in self.table.state().items()}
        return table | {f"{_COUNTS}{name}": array for name, array in self.connections.state().items()}

    def restore(self, state: SourceState, seq: int) -> None:
        """Continue where `state` was taken, at record `seq`.

        After a gap what was counted between connections stays, and no connection is open: some of them have ended
        since, and were judged. Raises ModelError for nonsense, and where the table is set otherwise; then nothing is
        changed.
        """
        table, connections = self._new_table(), self._new_connections()
        connections.restore(_without(_COUNTS, state.arrays))
        if state.gap:
            connections.skip_to(seq)
        else:
            table.restore(_without(_TABLE, state.arrays))
        if seq != connections.seen:
            raise ModelError(f"the saved state is at record {seq}, its counts are at {connections.seen}")
        self.table, self.connections = table, connections
        self._count()

    def begin_at(self, seq: int) -> None:
        """Number records from `seq` on."""
        self.connections.skip_to(seq)
        self._count()

    def feed(self, block: PacketBlock) -> None:
        """Follow packets; what ended waits for `arrivals`."""
        self.counters["packets"] += len(block)
        self.counters["bytes"] += int(block.index["wirelen"].sum(dtype=np.int64))
        self._take(self.table.feed(block))

    def finish(self) -> None:
        """End all that is open."""
        self._take(self.table.finish())

    def due(self, at_once: bool = False) -> bool:
        """Time for an arrival: there is enough (`at_once`: anything), a state is wanted, or a tick is over."""
        enough = self._records >= (1 if at_once else MAX_RECORDS)
        return enough or self._wanted.is_set() or time.monotonic() - self._last >= TICK_SECONDS

    def arrivals(self, make_state: Callable[[], SourceState] | None = None, final: bool = False) -> Iterator[Arrival]:
        """What waits, one arrival at least; the state comes with the last one, if it is wanted or this is the end."""
        records = np.concatenate([np.empty(0, RECORD), *self._waiting])
        self._waiting, self._records = [], 0
        received = self._last = time.monotonic()
        for begin in range(0, max(len(records), 1), MAX_RECORDS):
            part = records[begin : begin + MAX_RECORDS]
            table = self.connections.table(part)
            if len(part):
                self._ended_at = int(part["time"][-1])
            self._count()
            state = None
            if begin + MAX_RECORDS >= len(records) and make_state is not None and (final or self._wanted.is_set()):
                self._wanted.clear()
                state = make_state()
            yield Arrival(table, state, received, max(self.table.now, self._ended_at), _context_of(part))

    def _take(self, records: NDArray[Any]) -> None:
        if len(records):
            self._waiting.append(records)
            self._records += len(records)
        self._count()

    def _count(self) -> None:
        self.counters["records"] = self.connections.seen
        for counted in (self.table.counters, self.connections.counters):
            for name, count in counted.items():
                self.counters[name] = count


def _context_of(records: NDArray[Any]) -> Context:
    return lambda rows: context_columns(records[rows])


def _without(prefix: str, arrays: Arrays) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
