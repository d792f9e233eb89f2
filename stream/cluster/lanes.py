"""Lanes of a bus as sources and sinks of Bytewax.

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

from netclust.stream.bus.base import BusError, LaneReader, LaneWriter, MessageRefusedError, Outgoing
from netclust.stream.bus.factory import open_reader, open_writer
from netclust.stream.cluster.placement import lane_keys, part_name

__all__ = ["LaneSink", "LaneSource", "Progress"]

IDLE_SECONDS = 0.02
MAX_WAIT_SECONDS = 5.0
TRIES = 6
"""A bus that does not answer so often in succession ends the worker; the supervisor starts it again."""

Bodies = tuple[int, list[bytes]]
"""A lane and messages of it."""


@dataclass(eq=False)
class Progress:
    """What the parts of one process tell each other and the metrics."""

    stop: threading.Event = field(default_factory=threading.Event)
    until_idle: float | None = None  # end when nothing came for so many seconds
    counters: Counter[str] = field(default_factory=Counter)
    first: float = 0.0  # when the first message came, and when the last one was done with; seconds since the epoch
    last: float = 0.0
    asked: float = 0.0  # when a lane was last asked: the process is at work
    kept: float = 0.0  # when the state of a shard was last kept
    caught_up: set[int] = field(default_factory=set)  # lanes that had nothing when they were last asked
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


class LaneSource(FixedPartitionedSource[tuple[str, Bodies], str | None]):
    """The lanes of a topic; a part each."""

    def __init__(self, url: str, lanes: int, most: int, progress: Progress) -> None:
        self._url, self._lanes, self._most, self._progress = url, lanes, most, progress

    def list_parts(self) -> list[str]:
        """All lanes can be read from everywhere."""
        return [part_name(lane) for lane in range(self._lanes)]

    def build_part(self, step_id: str, for_part: str, resume_state: str | None) -> LanePart:
        """Open a lane behind a position."""
        lane = int(for_part)
        reader = open_reader(self._url, lane)
        insist(lambda: reader.open(resume_state), self._progress, "bus_errors_in")
        return LanePart(reader, lane, lane_keys(self._lanes)[lane], resume_state, self._most, self._progress)


class LanePart(StatefulSourcePartition[tuple[str, Bodies], str | None]):
    """One lane."""

    def __init__(
        self, reader: LaneReader, lane: int, key: str, position: str | None, most: int, progress: Progress
    ) -> None:
        self._reader, self._lane, self._key, self._position = reader, lane, key, position
        self._most, self._progress = most, progress
        self._wait, self._lost = 0.0, 0
        self._heard, self._left = time.monotonic(), -1

    def next_batch(self) -> Sequence[tuple[str, Bodies]]:
        """The messages that are there."""
        progress = self._progress
        now = time.monotonic()
        if progress.stop.is_set():
            raise StopIteration
        progress.asked = time.time()
        try:
            messages = self._reader.take(0.0, self._most)
            if not messages and self._is_idle(now):
                raise StopIteration
        except BusError as error:
            progress.counters["bus_errors_in"] += 1
            progress.fails(f"lane {self._lane}", error)
            self._wait = min(max(2 * self._wait, 0.1), MAX_WAIT_SECONDS)
            return []
        progress.works(f"lane {self._lane}")
        lost = int(getattr(self._reader, "lost", 0))
        progress.counters["positions_lost"] += lost - self._lost
        self._lost = lost
        if not messages:
            progress.caught_up.add(self._lane)
            self._wait = IDLE_SECONDS
            return []
        progress.caught_up.discard(self._lane)
        self._wait, self._heard, self._left = 0.0, time.monotonic(), -1
        progress.first = progress.first or time.time()
        self._position = messages[-1].position
        return [(self._key, (self._lane, [message.body for message in messages]))]

    def _is_idle(self, now: float) -> bool:
        """Whether it shall end now, as nothing came for so long; BusError.

        Other lanes of this worker may have taken all that time, and some buses answer only at the next call: so the
        bus is asked whether something waits. It ends too if that stays the same: not all that Kafka counts will come.
        """
        patience = self._progress.until_idle
        if patience is None or now - self._heard <= patience:
            return False
        left, before = self._reader.waiting(self._position), self._left
        self._left, self._heard = left, time.monotonic()
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


class LaneSink(FixedPartitionedSink[tuple[int, bytes], None]):
    """The lanes of a topic, a part each; items are numbered, or (0) are numbered when they are written."""

    def __init__(self, url: str, lanes: int, keys: Sequence[str], kind: str, progress: Progress) -> None:
        self._url, self._lanes, self._kind, self._progress = url, lanes, kind, progress
        self._lane_of = {key: lane for lane, key in enumerate(keys)}
        self._writers: dict[int, _Shared] = {}
        self._lock = threading.Lock()

    def list_parts(self) -> list[str]:
        """All lanes can be written to from everywhere."""
        return [part_name(lane) for lane in range(self._lanes)]

    def part_fn(self, item_key: str) -> int:
        """The lane of a key."""
        return self._lane_of[item_key]

    def build_part(self, step_id: str, for_part: str, resume_state: None) -> LaneSinkPart:
        """Ask the bus what it has."""
        with self._lock:  # a writer belongs to one thread: to one worker
            shared = self._writers.get(threading.get_ident())
            if shared is None:
                shared = self._writers[threading.get_ident()] = _Shared(open_writer(self._url, self._lanes))
                insist(shared.writer.open, self._progress, "bus_errors_out")
            shared.users += 1
        return LaneSinkPart(shared, int(for_part), self._kind, self._progress)


@dataclass(eq=False)
class _Shared:
    """A writer, and how many parts write by it."""

    writer: LaneWriter
    users: int = 0

    def close(self) -> None:
        """The last one closes it."""
        self.users -= 1
        if not self.users:
            self.writer.close()


class LaneSinkPart(StatefulSinkPartition[tuple[int, bytes], None]):
    """One lane that is written to."""

    def __init__(self, shared: _Shared, lane: int, kind: str, progress: Progress) -> None:
        self._shared, self._writer = shared, shared.writer
        self._lane, self._kind, self._progress = lane, kind, progress
        self._last = 0
        insist(self._ask, progress, "bus_errors_out")

    def _ask(self) -> None:
        self._last = self._writer.last(self._lane)

    def write_batch(self, values: list[tuple[int, bytes]]) -> None:
        """Write what is newer than what the bus has."""
        numbered = [(number or self._last + i, body) for i, (number, body) in enumerate(values, 1)]
        todo = [Outgoing(self._lane, number, body) for number, body in numbered if number > self._last]
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
        insist(send, self._progress, "bus_errors_out", before=self._ask)
        self._progress.counters[f"{self._kind}_written"] += len(todo)

    def _send_others(self, messages: list[Outgoing]) -> None:
        """One of them will never be taken: all but that."""
        self._ask()
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


def insist(
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
