"""What was submitted to a sink and is not delivered: a spool on disk, then a queue in memory, and marks among them.

Moving the front of the queue to the end of the spool changes no order, so that may be done at any time. Events are
numbered as they come; a mark is a number up to which a checkpoint wants all to be safe.

>>> from netclust.stream.alerts.alert_events import Notice
>>> backlog = Backlog(limit=10, block=False)
>>> with backlog.changed:
...     backlog.put(Notice(topic="drift", time=-1, key="n-1", message=""))
>>> batch = backlog.take(5)
>>> with backlog.changed:
...     backlog.finish(batch, gone=True)
>>> backlog.pending, backlog.done
(0, 1)
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import islice

from netclust.stream.alerts.alert_events import Event
from netclust.stream.sinks.base import Facts
from netclust.stream.sinks.spool import Spool, Waiting

BATCH_EVENTS = 256
BURST_EVENTS = 16_384
"""So many events beyond the queue wait in memory while they are written to the spool."""

_COUNTED = ("delivered", "retried", "errors", "refused", "spooled", "spool_dropped", "dropped")


@dataclass(eq=False)
class Mark:
    """`target`: all events up to this number are to be safe. `kept`: they are, in the spool up to `write`."""

    target: int
    asked: float
    future: concurrent.futures.Future[Facts] = field(default_factory=concurrent.futures.Future)
    kept: bool = False
    write: int = 0


class Backlog:
    """One thread takes and settles, one moves, any puts. All but `take` and `move` is called under `changed`."""

    def __init__(self, limit: int, *, block: bool, burst: int = BURST_EVENTS) -> None:
        self.changed = threading.Condition()
        self.counters: Counter[str] = Counter(dict.fromkeys(_COUNTED, 0))
        self.spool: Spool | None = None
        self.queue: deque[Event] = deque()
        self.marks: deque[Mark] = deque()
        self.limit = limit
        self.submitted = self.done = 0
        self.disk_fails = False
        self._block = block
        self._burst = burst
        self._in_flight: list[Event] = []  # of the queue; they stay there until they are delivered
        self._moved: Waiting | None = None  # those in flight, if they were moved to the spool meanwhile
        self._moving = 0  # this many of the queue's front are being written to the spool

    def take_over(self, spool: Spool) -> None:
        """Begin with what an earlier run left."""
        self.spool = spool
        self.submitted = spool.pending

    @property
    def spooled(self) -> int:
        """Events on disk."""
        return self.spool.pending if self.spool is not None else 0

    @property
    def pending(self) -> int:
        """Events on disk and in memory."""
        return self.spooled + len(self.queue)

    @property
    def first_in_queue(self) -> int:
        """How many events came before the first one of the queue."""
        return self.submitted - len(self.queue)

    @property
    def unkept(self) -> Mark | None:
        """The first mark whose events are not all known to be on disk."""
        return next((mark for mark in self.marks if not mark.kept), None)

    @property
    def room(self) -> bool:
        """Whether the queue has room."""
        return len(self.queue) < self.limit

    def put(self, event: Event) -> None:
        """One more."""
        self.queue.append(event)
        self.submitted += 1
        self.make_room()

    def make_room(self) -> None:
        """Memory is bounded too: where the disk does not keep up, the oldest goes.

        A batch that is in hand cannot go, and does not count: else the newest would go instead of it.
        """
        if self._block:
            return
        most = self.limit + self._burst if self.spool is not None and not self.disk_fails else self.limit
        held = max(self._moving, len(self._in_flight) if self._moved is None else 0)
        while len(self.queue) - held > most:
            number = self.first_in_queue + held + 1
            for mark in self.marks:
                mark.target -= number <= mark.target
            del self.queue[held]
            self.submitted -= 1
            self.counters["dropped"] += 1

    def deliverable(self, most: int) -> int:
        """How many events may be tried now: not beyond the first mark, nor what is being written to the spool."""
        waiting = most if self.spooled else 0 if self._moving else len(self.queue)
        before_mark = self.marks[0].target - self.done if self.marks else waiting
        return max(0, min(waiting, before_mark, most))

    def take(self, most: int) -> Waiting | None:
        """The next events, if there are any. They stay until they are settled."""
        with self.changed:
            count = self.deliverable(most)
            if count and not self.spooled:
                self._in_flight = list(islice(self.queue, count))
                return Waiting(self._in_flight, 0, count)
        if self.spool is None or not count:
            return None
        before = self.spool.unreadable
        batch = self.spool.read(count)
        with self.changed:
            self.done += self.spool.unreadable - before
        return batch if batch.events else None

    def finish(self, batch: Waiting, *, gone: bool) -> None:
        """What was taken is delivered or refused (`gone`), or will be taken again."""
        while self._moving:  # those in flight are being moved: wait until it is known where they are
            self.changed.wait()
        from_queue = bool(self._in_flight) and self._moved is None
        where = self._moved or batch
        self._in_flight, self._moved = [], None
        if not gone:
            self.make_room()
            return
        if from_queue:
            for _ in batch.events:
                self.queue.popleft()
            self.done += len(batch.events)
        elif self.spool is not None:
            self.done += self.spool.advance(where)

    def move(self, count: int) -> None:
        """Write some of the queue's front to the spool; OSError if the disk does not take it."""
        if self.spool is None:
            return
        with self.changed:
            self._moving = min(count, BATCH_EVENTS, len(self.queue))
            moving = list(islice(self.queue, self._moving))
        try:
            appended = self.spool.append(moving)
        except OSError:
            with self.changed:
                self._moving = 0
                self.disk_fails = True
                self.make_room()
                self.changed.notify_all()
            raise
        with self.changed:
            for _ in moving:
                self.queue.popleft()
            self.counters["spooled"] += len(moving)
            self.counters["spool_dropped"] += appended.dropped
            self.done += appended.dropped
            if self._in_flight and self._moved is None:
                in_hand = len(self._in_flight)
                self._moved = Waiting(self._in_flight, appended.ends[in_hand - 1], in_hand)
            self._moving = 0
            self.disk_fails = False
            self.changed.notify_all()

    def position(self, mark: Mark) -> Facts:
        """Where the spool stands for a checkpoint: nothing behind the mark counts."""
        if self.spool is None:
            return {}
        position = self.spool.position()
        if mark.kept:
            position["write"] = max(mark.write, position["read"])
        return position

    def abandon(self) -> list[Mark]:
        """At the end: what is in memory is lost and counted; the marks that nobody answered."""
        self.counters["dropped"] += len(self.queue)
        self.queue.clear()
        self._in_flight = []
        marks, self.marks = list(self.marks), deque()
        return marks
