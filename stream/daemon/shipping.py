"""Shipping: every record that the daemon reads also goes to partitions of a bus; its verdicts too, if that is wanted.

A thread packs, a runner of sinks delivers: queue, then a spool on disk while the bus is away, in order. Detection waits
for neither. What was handed over before a checkpoint is sent or in the spool when the checkpoint is written.

A record's partition is its key modulo their number, so one sensor's records of one key stay in order.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from netclust.records.table import Table
from netclust.stream.bus.base import Outgoing
from netclust.stream.bus.factory import UNDIVIDED
from netclust.stream.bus.record_messages import merged, pack_records
from netclust.stream.config import ShipConfig
from netclust.stream.detection.detector import Outcome
from netclust.stream.detection.verdict_lines import verdict_lines
from netclust.stream.sinks.base import Facts, SinkError
from netclust.stream.sinks.bus_sink import BusSender
from netclust.stream.sinks.runner import SinkRunner
from netclust.stream.sources.base import Arrival, Source
from netclust.stream.telemetry.metric_table import SINK_RESULTS
from netclust.stream.telemetry.telemetry import Sample

__all__ = ["SHIP", "Shipment", "Shipping", "open_shipping"]

SHIP = "[ship]"
"""Under this name a checkpoint says where shipping stands, beside the sinks: none can be called so."""

MAX_BODY = 512 << 10
"""A longer message is cut in two: NATS and Kafka take 1 MiB."""
QUEUE_MESSAGES = 64
"""Messages in memory before the spool, and as many again while they are written to it."""
SEND_MESSAGES = 16


class Shipment(msgspec.Struct, frozen=True):
    """A message that waits for the bus."""

    partition: int
    records: int
    body: bytes


class ShipSink:
    """Shipments to partitions; one acknowledged late may come twice, which receivers recognise by its numbers."""

    cuts_back = False
    batch_events = SEND_MESSAGES
    decoder = msgspec.msgpack.Decoder(Shipment)

    def __init__(self, name: str, url: str, partitions: int) -> None:
        self.name = name
        self.records = 0  # acknowledged
        self._sender = BusSender(url, partitions)

    def open(self, facts: Facts | None) -> None:
        """Check what can be checked without the bus."""
        self._sender.check()

    def write(self, events: Sequence[Any]) -> None:
        """Send them."""
        shipments = cast(Sequence[Shipment], events)
        self._sender.send([Outgoing(s.partition, 0, s.body) for s in shipments])
        self.records += sum(s.records for s in shipments)

    def tick(self) -> None:
        """Without anything to send, too, it is known whether the bus is there at the start."""
        self._sender.reach()

    def sync(self) -> Facts:
        """Nothing to keep: what was sent was acknowledged."""
        return {}

    def reopen(self) -> None:
        """Nothing to reopen."""

    def close(self) -> None:
        """Let go."""
        self._sender.close()


@dataclass(frozen=True, eq=False)
class _Read:
    """Records of a source, to be packed; or, without any, a mark or verdict lines among them."""

    source: str = ""
    stream: str = ""
    arrival: Arrival | None = None
    lines: bytes = b""
    mark: Future[Facts] | None = None

    @property
    def records(self) -> int:
        """Verdicts count as records, too."""
        return self.lines.count(b"\n") if self.arrival is None else len(self.arrival.table)


def open_shipping(
    config: ShipConfig,
    sources: Sequence[Source],
    numbers: Mapping[str, int],
    *,
    sensor: str,
    spool: Path,
    facts: Mapping[str, Any],
) -> Shipping:
    """Begin to ship at the place that a checkpoint says."""
    shipping = Shipping(config, sources, numbers, sensor=sensor, spool=spool, kept=facts.get("streams"))
    shipping.open(facts.get("sinks", {}).get(SHIP))
    return shipping


class Shipping:
    """The `[ship]` section at work. `submit`, `tell` and `mark` from one thread; nothing waits, unless `patient`.

    `patient`: all sources can wait, so it is waited while packing (never the bus) falls behind; else records are passed
    over, and counted. `streams`: an id for the numbers of every source, which stays for as long as they mean the same
    records. So a checkpoint keeps it (`kept`) where a source is read again after a restart; it is new where it is not,
    or where what it had read was not found again.
    """

    name = SHIP

    def __init__(
        self,
        config: ShipConfig,
        sources: Sequence[Source],
        numbers: Mapping[str, int],
        *,
        sensor: str,
        spool: Path,
        kept: Mapping[str, str] | None = None,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self.runners: dict[str, SinkRunner] = {}
        self.sensor = sensor
        self.streams = {
            source.name: (kept or {}).get(source.name, "") if source.replayable else "" for source in sources
        }
        self._numbers = dict(numbers)
        self._patient = all(not source.sheds and source.replayable for source in sources)
        self._lost: Counter[str] = Counter()
        for source in sources:
            self.streams[source.name] = self.streams[source.name] or uuid.uuid4().hex
        self._config = config
        self._sinks: dict[str, ShipSink] = {}
        for what, url, partitions in (("records", config.url, config.partitions), ("verdicts", config.verdicts_url, 0)):
            if not url:
                continue
            sink = self._sinks[what] = ShipSink(f"ship.{what}", url, partitions)
            self.runners[what] = SinkRunner(
                sink, queue_events=QUEUE_MESSAGES, spool_path=spool / f"{sink.name}.spool",
                spool_bytes=config.spool_bytes, burst_events=QUEUE_MESSAGES, longest_wait=10.0,
            )  # fmt: skip
        self._changed = threading.Condition()
        self._queue: deque[_Read] = deque()
        self._records = 0  # in the queue
        self._pending: dict[
            tuple[str, str], list[Table]
        ] = {}  # by source and stream, until there are enough for messages
        self._lines: list[bytes] = []
        self._since = 0.0  # when the oldest of them came; 0: there are none
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="ship", daemon=True)

    def open(self, facts: Facts | None) -> None:
        """Open the spools at what a mark said; begin."""
        for what, runner in self.runners.items():
            runner.open((facts or {}).get(what))
        self._thread.start()

    def submit(self, source: Source, arrival: Arrival) -> None:
        """Records of a source, in order."""
        if not len(arrival.table) or "records" not in self.runners:
            return
        if source.counters["lost_position"] > self._lost[source.name]:  # its numbers may now mean other records
            self._lost[source.name] = source.counters["lost_position"]
            self.streams[source.name] = uuid.uuid4().hex
        self._hand_over(_Read(source.name, self.streams[source.name], arrival))

    def _hand_over(self, read: _Read) -> None:
        with self._changed:
            while self._patient and self._is_full(read.records) and not self._closing:
                self._changed.wait(1.0)
            if self._is_full(read.records) or self._closing:
                self.counters["skipped"] += read.records
            else:
                self._put(read)

    def _is_full(self, more: int) -> bool:
        return self._records > 0 and self._records + more > self._config.queue_records

    def _put(self, read: _Read) -> None:
        self._queue.append(read)
        self._records += read.records
        self._changed.notify_all()

    def report(self, outcome: Outcome, which: str) -> None:
        """What was said of records."""
        if "verdicts" not in self.runners:
            return
        origin = {
            self._numbers[name]: {"sensor": self.sensor, "stream": stream, "source": name}
            for name, stream in self.streams.items()
        }
        if lines := verdict_lines(outcome, which, origin):
            self._hand_over(_Read(lines=lines))

    def mark(self) -> Future[Facts]:
        """Done when all that was submitted is sent or in the spool: what `open` wants to know."""
        mark: Future[Facts] = Future()
        mark.set_running_or_notify_cancel()
        with self._changed:
            if self._closing:
                mark.set_exception(SinkError("shipping was closed"))
            else:
                self._put(_Read(mark=mark))
        return mark

    # ---- the thread that packs

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._closing and not self._is_due():
                    self._changed.wait(self._until_due())
                read = self._queue.popleft() if self._queue else None
                self._records -= read.records if read is not None else 0
                self._changed.notify_all()
                if read is None and self._closing:
                    break
            with self._counted():
                self._take(read)
        with self._counted():
            self._flush()

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        try:
            yield
        except Exception:  # the thread must not die; what could not be packed is lost
            self.counters["errors"] += 1

    def _is_due(self) -> bool:
        return bool(self._since) and time.monotonic() - self._since >= self._config.batch_seconds

    def _until_due(self) -> float | None:
        return max(self._since + self._config.batch_seconds - time.monotonic(), 0.01) if self._since else None

    def _take(self, read: _Read | None) -> None:
        if read is not None and read.mark is not None:
            try:
                self._flush()
            finally:
                _chain({what: runner.mark() for what, runner in self.runners.items()}, read.mark)
            return
        if read is not None:
            self._since = self._since or time.monotonic()
        if read is not None and read.lines:
            self._lines.append(read.lines)
        if read is not None and read.arrival is not None:
            self._pending.setdefault((read.source, read.stream), []).append(_with_context(read.arrival))
        waiting = max((sum(map(len, tables)) for tables in self._pending.values()), default=0)
        full = waiting >= self._config.batch_records * self._config.partitions
        if full or sum(map(len, self._lines)) >= MAX_BODY // 2 or self._is_due():
            self._flush()

    def _flush(self) -> None:
        pending, self._pending = self._pending, {}
        lines, self._lines = self._lines, []
        self._since = 0.0
        for body in _bodies(lines):
            self.runners["verdicts"].submit(cast(Any, [Shipment(UNDIVIDED, body.count(b"\n"), body)]))
        for origin, tables in pending.items():
            with self._counted():
                table = merged(tables)
                partitions = (table.key % np.uint64(self._config.partitions)).astype(np.int64)
                for partition in np.unique(partitions).tolist():
                    for shipment in self._packed(origin, partition, table[np.flatnonzero(partitions == partition)]):
                        self.runners["records"].submit(cast(Any, [shipment]))

    def _packed(self, origin: tuple[str, str], partition: int, table: Table) -> Iterator[Shipment]:
        most = self._config.batch_records
        for begin in range(0, len(table), most):
            part = table[begin : begin + most]
            body = pack_records(part, sensor=self.sensor, stream=origin[1], source=origin[0])
            if len(body) > MAX_BODY and len(part) > 1:
                half = len(part) // 2
                yield from self._packed(origin, partition, part[:half])
                yield from self._packed(origin, partition, part[half:])
            else:
                yield Shipment(partition, len(part), body)

    # ---- what others ask

    def troubles(self) -> dict[str, str]:
        """What does not work now."""
        return {f"of {what}": runner.trouble for what, runner in self.runners.items() if runner.trouble}

    def samples(self) -> Iterator[Sample]:
        """For Prometheus."""
        for what, runner in self.runners.items():
            counters = dict(runner.counters)
            for result in SINK_RESULTS:
                lost = counters.get("spool_dropped", 0) if result == "dropped" else 0
                yield "ship_messages_total", (what, result), counters.get(result, 0) + lost
            yield "ship_records_total", (what,), self._sinks[what].records
            yield "ship_down", (what,), float(bool(runner.trouble))
            yield "ship_queue", (what,), runner.depth
            yield "ship_spool_bytes", (what,), runner.spool_bytes
        yield "ship_records_skipped_total", (), self.counters["skipped"]

    def close(self, seconds: float) -> None:
        """Pack what is left, send what can be sent in time, spool the rest."""
        limit = time.monotonic() + seconds
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(max(limit - time.monotonic(), 0.5))
        for runner in self.runners.values():
            runner.close(max(limit - time.monotonic(), 0.5))


def _with_context(arrival: Arrival) -> Table:
    """The records with what is shown of them, which a source may not have made yet."""
    table = arrival.table
    if arrival.context is None:
        return table
    found = table[slice(None)]
    found.context = arrival.context_of(np.arange(len(table)))
    return found


def _bodies(lines: list[bytes]) -> Iterator[bytes]:
    """The same lines in messages that are not too long."""
    body: list[bytes] = []
    size = 0
    for line in b"".join(lines).splitlines(keepends=True):
        if body and size + len(line) > MAX_BODY:
            yield b"".join(body)
            body, size = [], 0
        body.append(line)
        size += len(line)
    if body:
        yield b"".join(body)


def _chain(marks: dict[str, Future[Facts]], whole: Future[Facts]) -> None:
    """Let one future be done when all are."""
    left = dict(marks)
    lock = threading.Lock()
    facts: Facts = {}

    def settled(what: str, mark: Future[Facts]) -> None:
        with lock:
            left.pop(what)
            error = mark.exception()
            if whole.done():
                return
            if error is not None:
                whole.set_exception(error)
                return
            facts[what] = mark.result()
            if not left:
                whole.set_result(facts)

    for what, mark in marks.items():
        mark.add_done_callback(lambda done, what=what: settled(what, done))  # type: ignore[misc]
