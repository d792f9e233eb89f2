"""Bounded queues between the readers, one thread a source, and the one linker.

A source that can wait (a file) waits when its queue is full. One that cannot (an interface, a socket) has its newest
records dropped when it is full, and those that have waited longer than `seconds` when their turn comes: both are
counted, and what is linked is never older than that, so latency is bounded however slow linking is.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.stream.sources.base import MemorySource
>>> table = simulate(10, seed=1).table()
>>> inbox = Inbox([MemorySource("test", table.schema, [table])], records=100, seconds=1.0)
>>> inbox.start()
>>> number, arrival = inbox.get(timeout=10)
>>> number, len(arrival.table)
(0, 10)
>>> inbox.stop(deadline=10)
True
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from netclust.stream.sources.base import Arrival, Source, part_of

SLICE_RECORDS = 2048
"""Longer arrivals are cut: the last record of one waits for the first."""


@dataclass(eq=False)
class SourceQueue:
    """The queue of one source, and the thread that reads it."""

    source: Source
    arrivals: deque[Arrival] = field(default_factory=deque)
    records: int = 0
    paused: bool = False  # the linker takes nothing from it: a checkpoint is being cut
    ended: bool = False
    failure: BaseException | None = None
    counters: Counter[str] = field(default_factory=Counter)
    thread: threading.Thread | None = None


class Inbox:
    """What all sources have given and the linker has not yet taken."""

    def __init__(self, sources: Sequence[Source], *, records: int, seconds: float) -> None:
        self.queues = [SourceQueue(source) for source in sources]
        self._records = records
        self._seconds = seconds
        self._changed = threading.Condition()
        self._abandoned = False
        self._turn = 0

    def start(self) -> None:
        """Begin to read."""
        for queue in self.queues:
            queue.thread = threading.Thread(
                target=self._read, args=(queue,), name=f"read-{queue.source.name}", daemon=True
            )
            queue.thread.start()

    def _read(self, queue: SourceQueue) -> None:
        try:
            for arrival in queue.source:
                for part in _slices(arrival):
                    self._put(queue, part)
        except BaseException as error:  # the daemon tells, and goes on with the others
            queue.failure = error
        finally:
            with self._changed:
                queue.ended = True
                self._changed.notify_all()

    def _put(self, queue: SourceQueue, arrival: Arrival) -> None:
        count = len(arrival.table)
        with self._changed:
            while not queue.source.sheds and queue.records and queue.records + count > self._records:
                if self._abandoned:
                    break
                self._changed.wait(1.0)
            if queue.source.sheds and count and (self._abandoned or self._is_full(queue, count)):
                queue.counters["stopped" if self._abandoned else "late"] += count
                arrival, count = _emptied(arrival), 0
            if self._abandoned:
                return  # what a file gives is read again after a restart
            if count == 0 and queue.arrivals and len(queue.arrivals[-1].table) == 0 and arrival.state is None:
                return  # nothing new is said
            queue.arrivals.append(arrival)
            queue.records += count
            self._changed.notify_all()

    def _is_full(self, queue: SourceQueue, count: int) -> bool:
        return queue.records > 0 and queue.records + count > self._records

    def get(self, timeout: float) -> tuple[int, Arrival] | None:
        """The next arrival and the number of its source, in turn; None if there is none in time."""
        limit = time.monotonic() + timeout
        with self._changed:
            while True:
                for step in range(len(self.queues)):
                    number = (self._turn + step) % len(self.queues)
                    queue = self.queues[number]
                    if queue.arrivals and not queue.paused:
                        self._turn = number + 1
                        arrival = self._next(queue)
                        self._changed.notify_all()
                        return number, arrival
                left = limit - time.monotonic()
                if left <= 0 or self.finished:
                    return None
                self._changed.wait(left)

    def _next(self, queue: SourceQueue) -> Arrival:
        """The first that waits; of those that have waited too long, the last, without its records."""
        while True:
            arrival = queue.arrivals.popleft()
            count = len(arrival.table)
            queue.records -= count
            if not (queue.source.sheds and count and time.monotonic() - arrival.received > self._seconds):
                return arrival
            queue.counters["late"] += count
            if not queue.arrivals or arrival.state is not None:
                return _emptied(arrival)

    @property
    def finished(self) -> bool:
        """Whether every source has ended and all was taken."""
        return all(queue.ended and not queue.arrivals for queue in self.queues)

    def wake(self) -> None:
        """Let `get` look again."""
        with self._changed:
            self._changed.notify_all()

    def pause(self, number: int) -> None:
        """Take nothing more from a source until `resume`."""
        self.queues[number].paused = True

    def resume(self) -> None:
        """Take from all sources again."""
        with self._changed:
            for queue in self.queues:
                queue.paused = False
            self._changed.notify_all()

    def waiting(self, number: int) -> tuple[int, float]:
        """Records that wait, and for how long the first has."""
        with self._changed:
            queue = self.queues[number]
            first = next((a.received for a in queue.arrivals if len(a.table)), None)
            return queue.records, 0.0 if first is None else max(time.monotonic() - first, 0.0)

    def request_stop(self) -> None:
        """Ask every source to give what it has read and to end."""
        for queue in self.queues:
            queue.source.stop()
        self.wake()

    def abandon(self) -> None:
        """Take nothing more: what waits of a file is read again after a restart, what waits of others is counted."""
        with self._changed:
            self._abandoned = True
            for queue in self.queues:
                if queue.source.sheds or not queue.source.replayable:
                    queue.counters["stopped"] += queue.records
                queue.arrivals.clear()
                queue.records = 0
            self._changed.notify_all()

    def stop(self, deadline: float) -> bool:
        """Stop the sources and wait for their threads; whether all ended in time."""
        self.request_stop()
        self.abandon()
        limit = time.monotonic() + deadline
        for queue in self.queues:
            if queue.thread is not None:
                queue.thread.join(max(limit - time.monotonic(), 0.0))
        return all(queue.ended for queue in self.queues)


def _slices(arrival: Arrival) -> list[Arrival]:
    """An arrival in parts that are linked in a moment; the state belongs to the last."""
    n = len(arrival.table)
    if n <= SLICE_RECORDS:
        return [arrival]
    return [part_of(arrival, begin, min(begin + SLICE_RECORDS, n)) for begin in range(0, n, SLICE_RECORDS)]


def _emptied(arrival: Arrival) -> Arrival:
    """The same arrival without its records: time and state go on."""
    nothing = arrival.table[np.zeros(0, np.int64)]
    return Arrival(nothing, arrival.state, arrival.received, arrival.now, None)
