"""Partitions of a bus as sources and sinks of Bytewax.

A source's snapshot is its position. A sink asks the bus what was written last and leaves out what is not newer: after a
crash Bytewax replays an epoch, and shards say the same again with the same numbers.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import FixedPartitionedSink, StatefulSinkPartition

from netclust.stream.bus.base import BusError, MessageRefusedError, Outgoing, PartitionReader, PartitionWriter
from netclust.stream.bus.factory import open_reader, open_writer
from netclust.stream.sharding.placement import part_name, partition_keys

__all__ = ["PartitionSink", "PartitionSource", "Progress"]

IDLE_SECONDS = 0.02
MAX_WAIT_SECONDS = 5.0
TRIES = 6
"""A bus that does not answer so often in succession ends the worker; the supervisor starts it again."""

Bodies = tuple[int, list[bytes]]
"""A partition and messages of it."""


@dataclass(eq=False)
class Progress:
    """What the parts of one process tell each other and the metrics."""

    stop: threading.Event = field(default_factory=threading.Event)
    until_idle: float | None = None  # end when nothing came for so many seconds
    counters: Counter[str] = field(default_factory=Counter)
    first: float = 0.0  # when the first message came, and when the last one was done with; seconds since the epoch
    last: float = 0.0
    polled: float = 0.0  # when a partition was last asked: the process is at work
    kept: float = 0.0  # when the state of a shard was last kept
    caught_up: set[int] = field(default_factory=set)  # partitions that had nothing when they were last asked
    troubles: dict[str, str] = field(default_factory=dict)  # what the bus said when it did not answer, by who asked

    def fails(self, who: str, error: Exception) -> None:
        """The bus did not answer somebody."""
        self.troubles[who] = str(error) or type(error).__name__

    def works(self, who: str) -> None:
        """It did."""
        if self.troubles:
            self.troubles.pop(who, None)

    @property
    def trouble(self) -> str:
        """Why the bus cannot be used now; "": it can."""
        return next(iter(list(self.troubles.values())), "")


class PartitionSource(FixedPartitionedSource[tuple[str, Bodies], str | None]):
    """The partitions of a topic as a source of Bytewax, a part each."""

    def __init__(self, url: str, partitions: int, most: int, progress: Progress) -> None:
        self._url, self._partitions, self._most, self._progress = url, partitions, most, progress

    def list_parts(self) -> list[str]:
        """Return the names of all parts: each can be read from everywhere."""
        return [part_name(partition) for partition in range(self._partitions)]

    def build_part(self, step_id: str, for_part: str, resume_state: str | None) -> PartitionInput:
        """Open a partition behind a position."""
        partition = int(for_part)
        reader = open_reader(self._url, partition)
        _insist(lambda: reader.open(resume_state), self._progress, "bus_errors_in")
        return PartitionInput(
            reader, partition, partition_keys(self._partitions)[partition], resume_state, self._most, self._progress
        )


class PartitionInput(StatefulSourcePartition[tuple[str, Bodies], str | None]):
    """The input of one partition."""

    def __init__(
        self, reader: PartitionReader, partition: int, key: str, position: str | None, most: int, progress: Progress
    ) -> None:
        self._reader, self._partition, self._key, self._position = reader, partition, key, position
        self._most, self._progress = most, progress
        self._wait, self._lost = 0.0, 0
        self._last_heard, self._left = time.monotonic(), -1

    def next_batch(self) -> Sequence[tuple[str, Bodies]]:
        """The messages that are there."""
        progress = self._progress
        now = time.monotonic()
        if progress.stop.is_set():
            raise StopIteration
        progress.polled = time.time()
        try:
            messages = self._reader.take(0.0, self._most)
            if not messages and self._is_idle(now):
                raise StopIteration
        except BusError as error:
            progress.counters["bus_errors_in"] += 1
            progress.fails(f"partition {self._partition}", error)
            self._wait = min(max(2 * self._wait, 0.1), MAX_WAIT_SECONDS)
            return []
        progress.works(f"partition {self._partition}")
        lost = int(getattr(self._reader, "lost", 0))
        progress.counters["positions_lost"] += lost - self._lost
        self._lost = lost
        if not messages:
            progress.caught_up.add(self._partition)
            self._wait = IDLE_SECONDS
            return []
        progress.caught_up.discard(self._partition)
        self._wait, self._last_heard, self._left = 0.0, time.monotonic(), -1
        progress.first = progress.first or time.time()
        self._position = messages[-1].position
        return [(self._key, (self._partition, [message.body for message in messages]))]

    def _is_idle(self, now: float) -> bool:
        """Whether it shall end now, as nothing came for so long; BusError.

        Other partitions of this worker may have taken all that time, and some buses answer only at the next call: so
        the bus is asked whether something waits. It also ends if that stays the same: Kafka counts some that never
        come.
        """
        patience = self._progress.until_idle
        if patience is None or now - self._last_heard <= patience:
            return False
        left, before = self._reader.waiting(self._position), self._left
        self._left, self._last_heard = left, time.monotonic()
        return left in (0, before)

    def next_awake(self) -> datetime | None:
        """Soon, if there was nothing."""
        return datetime.now(UTC) + timedelta(seconds=self._wait) if self._wait else None

    def snapshot(self) -> str | None:
        """Where to go on."""
        return self._position

    def close(self) -> None:
        """Let go of the bus."""
        self._reader.close()


class PartitionSink(FixedPartitionedSink[tuple[int, bytes], None]):
    """The partitions of a topic, a part each; items are numbered, or (0) are numbered when they are written."""

    def __init__(self, url: str, partitions: int, keys: Sequence[str], kind: str, progress: Progress) -> None:
        self._url, self._partitions, self._kind, self._progress = url, partitions, kind, progress
        self._partition_of = {key: partition for partition, key in enumerate(keys)}
        self._writers: dict[int, _Shared] = {}
        self._lock = threading.Lock()

    def list_parts(self) -> list[str]:
        """Return the names of all parts: each can be written to from everywhere."""
        return [part_name(partition) for partition in range(self._partitions)]

    def part_fn(self, item_key: str) -> int:
        """Return the partition of a key."""
        return self._partition_of[item_key]

    def build_part(self, step_id: str, for_part: str, resume_state: None) -> PartitionOutput:
        """Ask the bus what it has."""
        with self._lock:  # a writer belongs to one thread: to one worker
            shared = self._writers.get(threading.get_ident())
            if shared is None:
                shared = self._writers[threading.get_ident()] = _Shared(open_writer(self._url, self._partitions))
                _insist(shared.writer.open, self._progress, "bus_errors_out")
            shared.users += 1
        return PartitionOutput(shared, int(for_part), self._kind, self._progress)


@dataclass(eq=False)
class _Shared:
    """A writer, and how many parts write by it."""

    writer: PartitionWriter
    users: int = 0

    def close(self) -> None:
        """The last one closes it."""
        self.users -= 1
        if not self.users:
            self.writer.close()


class PartitionOutput(StatefulSinkPartition[tuple[int, bytes], None]):
    """The output of one partition."""

    def __init__(self, shared: _Shared, partition: int, kind: str, progress: Progress) -> None:
        self._shared, self._writer = shared, shared.writer
        self._partition, self._kind, self._progress = partition, kind, progress
        self._last = 0
        _insist(self._fetch_last_numbers, progress, "bus_errors_out")

    def _fetch_last_numbers(self) -> None:
        self._last = self._writer.last(self._partition)

    def write_batch(self, values: list[tuple[int, bytes]]) -> None:
        """Write what is newer than what the bus has."""
        numbered = [(number or self._last + i, body) for i, (number, body) in enumerate(values, 1)]
        todo = [Outgoing(self._partition, number, body) for number, body in numbered if number > self._last]
        self._progress.counters[f"{self._kind}_skipped"] += len(values) - len(todo)

        def send() -> None:
            fresh = [message for message in todo if message.number > self._last]
            if not fresh:
                return
            try:
                self._writer.send(fresh)
            except MessageRefusedError:
                self._send_others(fresh)
            self._last = fresh[-1].number

        # Some may have been written by a call that failed: the bus is asked again before the next.
        _insist(send, self._progress, "bus_errors_out", before=self._fetch_last_numbers)
        self._progress.counters[f"{self._kind}_written"] += len(todo)

    def _send_others(self, messages: list[Outgoing]) -> None:
        """One of them will never be taken: all but that."""
        self._fetch_last_numbers()
        for message in messages:
            if message.number > self._last:
                try:
                    self._writer.send([message])
                except MessageRefusedError:
                    self._progress.counters[f"{self._kind}_refused"] += 1

    def snapshot(self) -> None:
        """Nothing: the bus itself knows."""
        return

    def close(self) -> None:
        """Let go of the bus."""
        self._shared.close()


def _insist(
    call: Callable[[], None], progress: Progress, counter: str, *, before: Callable[[], None] | None = None
) -> None:
    """Call, again and again while the bus does not answer, waiting longer each time; then BusError."""
    for attempt in range(TRIES):
        try:
            if attempt and before is not None:
                before()
            call()
            progress.works(counter)
            return
        except BusError as error:
            progress.counters[counter] += 1
            progress.fails(counter, error)
            if attempt == TRIES - 1 or progress.stop.is_set():
                raise
            time.sleep(min(0.1 * 4**attempt, MAX_WAIT_SECONDS))
