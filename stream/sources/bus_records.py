"""Records that sensors ship (`netclust.stream.daemon.shipping`), from all partitions of a topic.

A sensor may send again what it has sent: of a sensor's stream and source only numbers above the last one count. Who
sent a record is in its context column `sensor`.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.stream.bus.base import Outgoing
>>> from netclust.stream.bus.factory import open_writer
>>> from netclust.stream.bus.record_messages import pack_records
>>> table = simulate(5, seed=1).table()
>>> body = pack_records(table, sensor="probe", stream="1", source="eth0")
>>> open_writer("memory://shipped/records", 1).send([Outgoing(0, 0, body), Outgoing(0, 0, body)])
>>> source = BusSource("in", "memory://shipped/records", table.schema, partitions=1)
>>> source.open(None)
>>> len(next(iter(source)).table), source.counters["sent_twice"]
(5, 5)
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import numpy as np

from netclust.errors import InputError, ModelError
from netclust.records.running_time import RunningTime
from netclust.records.schema import Schema
from netclust.records.table import Table
from netclust.stream.bus.base import Incoming
from netclust.stream.bus.factory import parse_bus_url
from netclust.stream.bus.record_messages import RecordMessage, merged, unpack_message
from netclust.stream.sources.base import MAX_SEQ, TICK_SECONDS, Arrival, SourceState, empty_table, next_epoch, numbered
from netclust.stream.sources.bus_partitions import FollowedPartition, Patience
from netclust.stream.sources.dialects import Notes

__all__ = ["MAX_PARTITIONS", "BusSource"]

MAX_PARTITIONS = 64
MAX_MESSAGES = 16
"""Messages taken from a partition at once; each may have thousands of records."""
MAX_STREAMS = 1024
"""Streams of sensors per partition whose last numbers are known; the one that was silent for longest is forgotten."""


_Seq = Annotated[int, msgspec.Meta(ge=0, lt=MAX_SEQ)]
_Time = Annotated[int, msgspec.Meta(ge=-1, le=(1 << 63) - 1)]


class _Position(msgspec.Struct):
    """A partition in the state: its position, and the last numbers of [sensor, stream, source]."""

    position: str | None
    seen: list[tuple[str, str, str, int]]


class BusSource:
    """All partitions of a topic, in turn. It numbers records itself, in the order in which it reads them."""

    replayable = True
    sheds = False

    def __init__(self, name: str, url: str, schema: Schema, *, partitions: int) -> None:
        if not 1 <= partitions <= MAX_PARTITIONS:
            raise InputError(
                f"source {name}: partitions = {partitions}: 1 to {MAX_PARTITIONS}, as many as are shipped to"
            )
        self.name = name
        self.schema = schema
        self.counters: Counter[str] = Counter()
        self.where = str(parse_bus_url(url))
        self._notes = Notes(self.counters)
        self._patience = Patience(self.counters)
        self._partitions = [FollowedPartition(url, partition, self._patience) for partition in range(partitions)]
        self._seen: list[dict[tuple[str, str, str], int]] = [{} for _ in range(partitions)]
        self._clock = RunningTime()
        self._seq = 0
        self._lost = 0  # positions that were lost, and numbers skipped for
        self._state_wanted = False

    @property
    def trouble(self) -> str:
        """Why the bus cannot be read now."""
        return self._patience.trouble

    @property
    def first_skipped(self) -> list[str]:
        """What the first messages passed over were."""
        return self._notes.first_skipped

    def open(self, state: SourceState | None) -> None:
        """Go on behind the last message of each partition; partitions that are new begin with their oldest."""
        facts = state.facts if state is not None else {}
        try:
            partitions = msgspec.convert(facts.get("lanes", []), list[_Position])
            self._seq, self._clock.latest = msgspec.convert(
                [facts.get("seq", 0), facts.get("now", -1)], tuple[_Seq, _Time]
            )
        except msgspec.ValidationError:
            raise ModelError(f"source {self.name}: the state says what is never written") from None
        if len(partitions) > len(self._partitions):
            raise InputError(
                f"source {self.name}: partitions = {len(self._partitions)}, and it has read {len(partitions)} so far: "
                f"what comes in the others would be lost; say {len(partitions)}, "
                "or begin anew with another daemon.state_dir"
            )
        for number, partition in enumerate(partitions):
            self._partitions[number].begin(partition.position)
            self._seen[number] = {(sensor, stream, source): seq for sensor, stream, source, seq in partition.seen}

    def __iter__(self) -> Iterator[Arrival]:
        """Arrivals, one every TICK_SECONDS at least."""
        stopped = self._patience.stopped
        while not stopped.is_set():
            received = time.monotonic()
            tables: list[Table] = []
            for number, partition in enumerate(self._partitions):
                for message in partition.take(TICK_SECONDS / 2 / len(self._partitions), MAX_MESSAGES):
                    tables += self._read(number, message)
            yield self._arrival(merged(tables) if tables else empty_table(self.schema), received)
        self._state_wanted = True
        yield self._arrival(empty_table(self.schema), time.monotonic())

    def _read(self, number: int, message: Incoming) -> list[Table]:
        """The records of a message that are new."""
        where = f"{self.where} partition {number} at {message.position}"
        self.counters["bytes"] += len(message.body)
        try:
            found = unpack_message(message.body, self.schema, where)
        except InputError as error:
            self.counters["bad_value"] += 1
            self._notes.keep(str(error))
            return []
        if not isinstance(found, RecordMessage):
            self.counters["other_events"] += 1  # labels are for those who shard the stream
            return []
        seen = self._seen[number]
        stream = (found.sensor, found.stream, found.source)
        last = seen.pop(stream, -1)
        fresh = found.table.seq > np.uint64(last) if last >= 0 else np.ones(len(found.table), bool)
        if len(found.table):
            last = max(last, int(found.table.seq[-1]))
        seen[stream] = last  # behind all others: it spoke last
        if len(seen) > MAX_STREAMS:
            del seen[next(iter(seen))]
        table = found.table[fresh] if not fresh.all() else found.table
        self.counters["sent_twice"] += len(fresh) - len(table)
        table.context["sensor"] = np.full(len(table), found.sensor, object)
        return [table] if len(table) else []

    def _arrival(self, table: Table, received: float) -> Arrival:
        if (lost := self.counters["lost_position"]) > self._lost:
            self._lost = lost
            self._seq = next_epoch(self._seq)  # other records may have had the numbers that follow
        table = numbered(table, self._seq)
        self._seq += len(table)
        self.counters["records"] += len(table)
        self._clock.advance(table.time[table.time >= 0])
        return Arrival(table, self._state(), received, self._clock.latest)

    def _state(self) -> SourceState | None:
        if not self._state_wanted:
            return None
        self._state_wanted = False
        partitions = [
            {"position": partition.position, "seen": [[*stream, last] for stream, last in seen.items()]}
            for partition, seen in zip(self._partitions, self._seen, strict=True)
        ]
        facts: dict[str, Any] = {"lanes": partitions, "seq": self._seq, "now": self._clock.latest}
        return SourceState(facts)

    def want_state(self) -> None:
        """Give the state with the next arrival."""
        self._state_wanted = True

    def stop(self) -> None:
        """End soon."""
        self._patience.stopped.set()

    def close(self) -> None:
        """Let go of everything."""
        for partition in self._partitions:
            partition.close()
