"""Interfaces as a source: connections as they end, until it is stopped; open ones outlive a restart in good order.

source = LiveSource("uplink", ["eth0"], "flow", bpf="not port 22")
source.open(None)
for arrival in source:
    ...
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from netclust.errors import InputError, ModelError
from netclust.records.schema import Schema
from netclust.stream.packets import live
from netclust.stream.packets.flow_table import FlowTimeouts
from netclust.stream.packets.packet_blocks import RING_BYTES, InterfaceAwayError
from netclust.stream.sources.base import MAX_SEQ, TICK_SECONDS, Arrival, SourceState
from netclust.stream.sources.packet_flows import PacketFlows

__all__ = ["LiveSource"]

_COUNTED = (*live.COUNTERS, "queue_drops", "interface_lost")


class _Facts(msgspec.Struct, frozen=True):
    """Where it stands."""

    seq: Annotated[int, msgspec.Meta(ge=0, lt=MAX_SEQ)]


class LiveSource:
    """Connections of interfaces, in the order in which they end.

    An interface that goes down or is removed is waited for; `trouble` then says so, else it is empty. So is one that is
    missing at a restart: it was there before. Counters, besides those of PacketFlows and LiveCapture: interface_lost.
    What was open before a restart falls due in its time; after a gap no connection is open.
    """

    replayable = False
    sheds = True

    def __init__(
        self,
        name: str,
        interfaces: Sequence[str],
        schema: str,
        *,
        bpf: str = "",
        promiscuous: bool = False,
        max_flows: int = 131_072,
        timeouts: FlowTimeouts | None = None,
        tunnels: bool = False,
        ring_bytes: int = RING_BYTES,
    ) -> None:
        self.name = name
        self.counters: Counter[str] = Counter(dict.fromkeys(_COUNTED, 0))
        self.trouble = ""
        self._interfaces, self._bpf, self._promiscuous = list(interfaces), bpf, promiscuous
        self._ring_bytes = ring_bytes
        self._flows = PacketFlows(schema, self.counters, max_flows=max_flows, timeouts=timeouts, tunnels=tunnels)
        self.schema: Schema = self._flows.connections.schema
        self._capture: live.LivePacketSource | None = None
        self._past: Counter[str] = Counter()  # of captures that ended
        self._stopped = threading.Event()

    @property
    def open_flows(self) -> int:
        """Connections that are open."""
        return self._flows.open_flows

    def open(self, state: SourceState | None) -> None:
        """Open the sockets; raises InputError where that is not allowed, or an interface is not there or down."""
        if state is not None:
            try:
                facts = msgspec.convert(state.facts, _Facts)
            except msgspec.ValidationError as error:
                raise ModelError(f"{self.name}: the saved state is none of a live capture: {error}") from None
            if state.arrays:
                self._flows.restore(state, facts.seq)
            else:
                self._flows.begin_at(facts.seq)
        try:
            self._capture = self._opened()
        except InterfaceAwayError as error:
            if state is None:
                raise
            self.trouble = str(error)

    def _opened(self) -> live.LivePacketSource:
        return live.open_live(
            self._interfaces, promiscuous=self._promiscuous, bpf=self._bpf, ring_bytes=self._ring_bytes, patient=True,
            heartbeat=TICK_SECONDS,
        )  # fmt: skip

    def __iter__(self) -> Iterator[Arrival]:
        """Arrivals, until `stop`; connections that are open then stay so in the state."""
        if self._capture is None and self.trouble:
            yield from self._open_again()
        while self._capture is not None:
            for block in self._capture:
                self._flows.feed(block)
                self._count(self._capture)
                if self._flows.due(at_once=True):
                    yield from self._flows.arrivals(self._state)
            self._count(self._capture)
            if self._stopped.is_set():
                break
            # Not patient (scapy): all its interfaces are gone.
            self._past += self._capture.counters
            self.counters["interface_lost"] += 1
            self._capture.close()
            yield from self._open_again()
        yield from self._flows.arrivals(self._state, final=True)

    def _open_again(self) -> Iterator[Arrival]:
        self._capture = None
        while self._capture is None and not self._stopped.is_set():
            try:
                self._capture = self._opened()
                self.trouble = ""
            except InputError as error:
                self.trouble = str(error)
                for _ in range(round(live.LOOK_SECONDS / TICK_SECONDS)):
                    self._stopped.wait(TICK_SECONDS)
                    yield from self._flows.arrivals(self._state)
        if self._capture is not None and self._stopped.is_set():
            self._capture.stop()

    def _count(self, capture: live.LivePacketSource) -> None:
        for name in _COUNTED[:-1]:
            self.counters[name] = self._past[name] + capture.counters[name]
        if isinstance(capture, live.LiveCapture):
            self.trouble = capture.trouble
            self.counters["interface_lost"] = self.counters["interface_down"]

    def _state(self) -> SourceState:
        return SourceState({"seq": self._flows.connections.seen}, self._flows.state())

    def want_state(self) -> None:
        """Give the state with the next arrival. From any thread."""
        self._flows.want_state()

    def stop(self) -> None:
        """Give what has been read, then end. From any thread."""
        self._stopped.set()
        if self._capture is not None:
            self._capture.stop()

    def close(self) -> None:
        """Leave the interfaces."""
        if self._capture is not None:
            self._capture.close()
