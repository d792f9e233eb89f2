"""Runs a sink in threads of its own: queue, retries with back-off, a spool on disk, and marks for checkpoints.

One thread delivers. Another keeps on disk what cannot be delivered, so that neither a slow receiver nor a slow disk
holds up who submits.

>>> from netclust.stream.alerts.alert_events import Notice
>>> from netclust.stream.sinks.base import MemorySink
>>> runner = SinkRunner(MemorySink(), queue_events=100)
>>> runner.open(None)
>>> runner.submit([Notice(topic="drift", time=-1, key="n-1", message="")])
>>> runner.mark().result(timeout=10)["sink"]
{'events': 1}
>>> runner.close(5.0)
>>> runner.counters["delivered"]
1
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from netclust.stream.alerts.alert_events import Event
from netclust.stream.sinks.backlog import BATCH_EVENTS, BURST_EVENTS, Backlog, Mark
from netclust.stream.sinks.base import Facts, Sink, SinkError
from netclust.stream.sinks.spool import Spool, Waiting

FIRST_WAIT = 0.5
LONGEST_WAIT = 60.0
PATIENCE_SECONDS = 2.0
"""A mark waits this long for the sink; then what is not delivered goes to the spool."""
MARK_SECONDS = 15.0
"""After this long a mark is given up, where the sink itself must say how far it is."""
TICK_SECONDS = 1.0
SURPRISES = 5
"""So many errors that no sink should raise, and the event that causes them is given up."""


class SinkRunner:
    """`submit` from one thread. `counters`, `depth`, `pending`, `spool_bytes`, `trouble` may be read from any.

    With `overflow` "spool", `submit` never waits; with "block" it waits while the queue is full. `spool_path` is a
    folder of its own; without one, events beyond the queue are dropped, oldest first.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        queue_events: int,
        spool_path: Path | None = None,
        spool_bytes: int = 64 << 20,
        overflow: Literal["spool", "block"] = "spool",
        clock: Callable[[], float] = time.monotonic,
        first_wait: float = FIRST_WAIT,
        longest_wait: float = LONGEST_WAIT,
        patience: float = PATIENCE_SECONDS,
        mark_seconds: float = MARK_SECONDS,
        burst_events: int = BURST_EVENTS,
    ) -> None:
        self.name = sink.name
        self.sink = sink
        self.trouble = ""
        self._block = overflow == "block"
        self._backlog = Backlog(max(1, queue_events), block=self._block, burst=burst_events)
        self._changed = self._backlog.changed
        self.counters: Counter[str] = self._backlog.counters
        self._cuts_back = False
        self._batch = min(getattr(sink, "batch_events", None) or BATCH_EVENTS, BATCH_EVENTS)
        self._spool_path = spool_path if spool_bytes > 0 else None
        self._spool_bytes = spool_bytes
        self._clock = clock
        self._first_wait, self._longest_wait = first_wait, longest_wait
        self._patience, self._mark_seconds = patience, mark_seconds
        self._threads: list[threading.Thread] = []
        self._facts: Facts = {}
        self._wait = 0.0
        self._retry_at = self._reopen_at = self._tick_at = self._keep_at = 0.0
        self._alone = 0  # so many events are tried one by one
        self._surprises = 0
        self._reopen = self._closing = self._ended = self._tick_failed = False

    @property
    def depth(self) -> int:
        """Events that wait in memory."""
        return len(self._backlog.queue)

    @property
    def pending(self) -> int:
        """Events that are not delivered, in memory and on disk."""
        return self._backlog.pending

    @property
    def spool_bytes(self) -> int:
        """Bytes of the spool on disk."""
        return self._backlog.spool.bytes if self._backlog.spool is not None else 0

    def open(self, facts: Facts | None) -> None:
        """Open the sink and the spool, at what a mark said; start. InputError where that cannot be."""
        given = facts or {}
        self.sink.open(given.get("sink") if facts is not None else None)
        with self._noted():
            self._facts = self.sink.sync()
        self._cuts_back = bool(getattr(self.sink, "cuts_back", self._facts))
        if self._spool_path is not None:
            decoder = getattr(self.sink, "decoder", None)
            spool = Spool(self._spool_path, self._spool_bytes, cut_back=self._cuts_back, decoder=decoder)
            spool.open(given.get("spool"))
            self._backlog.take_over(spool)
        self._tick_at = self._clock() + TICK_SECONDS
        for job, name in ((self._deliver, "sink"), (self._keep, "keep")):
            thread = threading.Thread(target=job, name=f"{name}-{self.name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def submit(self, events: Sequence[Event]) -> None:
        """Events to deliver, behind all earlier ones."""
        if not events:
            return
        with self._changed:
            if self._ended:
                raise RuntimeError(f"sink {self.name}: was closed")
            for event in events:
                while self._block and not self._backlog.room and not self._closing:
                    self._changed.notify_all()
                    self._changed.wait()
                self._backlog.put(event)
            self._changed.notify_all()

    def mark(self) -> concurrent.futures.Future[Facts]:
        """Done when all that was submitted is delivered and durable, or in the spool: then what `open` wants to know.

        Always done within `mark_seconds` and a disk write. SinkError: it could not be made safe; do not count on it.
        """
        with self._changed:
            mark = Mark(self._backlog.submitted, self._clock())
            mark.future.set_running_or_notify_cancel()
            if self._ended:
                mark.future.set_exception(SinkError(f"sink {self.name}: was closed"))
            else:
                self._backlog.marks.append(mark)
                self._changed.notify_all()
            return mark.future

    def reopen(self) -> None:
        """Have the sink reopen its files (SIGUSR1)."""
        with self._changed:
            self._reopen, self._reopen_at = True, 0.0
            self._changed.notify_all()

    def close(self, deadline_seconds: float) -> None:
        """Deliver what can be delivered in that time, spool the rest, let go of everything."""
        deadline = time.monotonic() + deadline_seconds
        with self._changed:
            self._closing = True
            self._retry_at = 0.0
            self._changed.notify_all()
        if not self._threads:
            return
        deliverer, keeper = self._threads
        deliverer.join(max(0.0, deadline - time.monotonic()))
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        keeper.join()
        deliverer.join(0.1)
        if self._backlog.spool is not None:
            self._backlog.spool.close()
        if not deliverer.is_alive():  # else it hangs in the sink, which is left to the end of the process
            with self._noted():
                self.sink.close()

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        """An error here is counted and told, and ends nothing."""
        try:
            yield
        except Exception as error:
            with self._changed:
                self.counters["errors"] += 1
                self.trouble = str(error) or type(error).__name__

    # ---- the thread that delivers

    def _deliver(self) -> None:
        while (job := self._next_job()) is not None:
            try:
                job()
            except Exception as error:  # the thread must not die
                with self._changed:
                    self._failed(error)

    def _next_job(self) -> Callable[[], None] | None:
        """What to do next; None at the end."""
        backlog = self._backlog
        with self._changed:
            while not self._ended:
                now = self._clock()
                if self._reopen and now >= self._reopen_at:
                    return self._reopen_sink
                if backlog.marks and (backlog.marks[0].kept or backlog.marks[0].target <= backlog.done):
                    return self._answer_mark
                if now >= self._retry_at and backlog.deliverable(self._most):
                    return self._deliver_batch
                if self._closing and not backlog.marks and (not backlog.pending or now < self._retry_at):
                    return None
                if now >= max(self._tick_at, self._retry_at) and hasattr(self.sink, "tick"):
                    return self._tick
                self._changed.wait(self._until_next(now))
            return None

    @property
    def _most(self) -> int:
        return 1 if self._alone else self._batch

    def _until_next(self, now: float) -> float | None:
        times = [max(self._tick_at, self._retry_at)] if hasattr(self.sink, "tick") else []
        times += [self._retry_at] if self.pending and self._retry_at > now else []
        times += [self._reopen_at] if self._reopen else []
        return max(0.01, min(times) - now) if times else None

    def _deliver_batch(self) -> None:
        batch = self._backlog.take(self._most)
        if batch is None:
            return
        error: Exception | None = None
        try:
            self.sink.write(batch.events)
        except Exception as raised:  # whatever a sink raises is an error of the sink
            error = raised
        with self._changed:
            self._finish_batch(batch, error)
            self._changed.notify_all()

    def _finish_batch(self, batch: Waiting, error: Exception | None) -> None:
        count = len(batch.events)
        refused = error is not None and self._is_refusal(error)
        self._backlog.finish(batch, gone=error is None or (refused and count == 1))
        if error is None:
            self.counters["delivered"] += count
            self._alone = max(0, self._alone - count)
            self._wait, self._surprises, self.trouble = 0.0, 0, ""
        elif not refused:
            self.counters["retried"] += count
            self._failed(error)
        elif count > 1:
            self._alone = count  # find out which of them it is
        else:
            self.counters["errors"] += 1
            self.counters["refused"] += 1
            self.trouble = str(error)
            self._alone = max(0, self._alone - 1)
            self._surprises = 0

    def _is_refusal(self, error: Exception) -> bool:
        if isinstance(error, SinkError):
            return not error.retry
        self._surprises += not isinstance(error, OSError)
        return self._surprises >= SURPRISES

    def _failed(self, error: Exception) -> None:
        """Wait before the next attempt: longer each time, and not all sinks of a site at once."""
        self.counters["errors"] += 1
        self.trouble = str(error) or type(error).__name__
        self._wait = min(self._longest_wait, 2 * self._wait) if self._wait else self._first_wait
        asked = float(getattr(error, "after_seconds", 0.0))
        jitter = random.SystemRandom().uniform(0.75, 1.0)
        self._retry_at = self._clock() + max(asked, self._wait * jitter)
        self._changed.notify_all()

    def _reopen_sink(self) -> None:
        self._reopen, again = False, True
        with self._noted():
            self.sink.reopen()
            again = False
        if again:
            with self._changed:
                self._reopen, self._reopen_at = True, self._clock() + self._longest_wait / 10

    def _tick(self) -> None:
        with self._changed:
            self._tick_at = self._clock() + TICK_SECONDS
        try:
            self.sink.tick()  # type: ignore[attr-defined]
        except Exception:
            self._tick_failed = True
            raise
        if self._tick_failed:
            with self._changed:
                self._wait, self.trouble, self._tick_failed = 0.0, "", False

    def _answer_mark(self) -> None:
        """All before the first mark is delivered or kept: ask the sink how far it is."""
        with self._changed:
            mark = self._backlog.marks[0] if self._backlog.marks else None
        failure: Exception | None = None
        facts = self._facts
        try:
            facts = self.sink.sync()
        except Exception as error:
            failure = error
        with self._changed:
            self._facts = facts
            if failure is not None:
                self.counters["errors"] += 1
                self.trouble = str(failure)
            if mark is None or not self._backlog.marks or self._backlog.marks[0] is not mark:
                return  # given up meanwhile
            self._backlog.marks.popleft()
            position = self._backlog.position(mark)
            self._changed.notify_all()
        if failure is not None and self._cuts_back:
            mark.future.set_exception(SinkError(str(failure)))
        else:
            self._resolve(mark, facts, position)

    def _resolve(self, mark: Mark, facts: Facts, position: Facts) -> None:
        if self._backlog.spool is not None:
            self._backlog.spool.mark(position["read"])
        mark.future.set_result({"sink": facts, "spool": position})

    # ---- the thread that keeps

    def _keep(self) -> None:
        backlog = self._backlog
        while not self._ended:
            with self._changed:
                while not (self._ended or self._to_keep() or self._to_note() or self._overdue()):
                    self._changed.wait(self._until_overdue())
                count, mark, overdue = self._to_keep(), self._to_note(), self._overdue()
            try:
                if count:
                    backlog.move(count)
                    self._keep_at = 0.0
                elif mark is not None and backlog.spool is not None:
                    self._note(mark, backlog.spool)
                elif overdue is not None:
                    self._give_up(overdue)
            except Exception as error:  # the thread must not die
                with self._changed:
                    self.counters["errors"] += 1
                    self.trouble = f"spool {self._spool_path}: {getattr(error, 'strerror', None) or error}"
                    self._keep_at = self._clock() + self._first_wait
        self._finish()

    def _to_keep(self) -> int:
        """How many events of the queue's front belong on disk now: not beyond a mark whose place is not noted yet."""
        backlog = self._backlog
        now = self._clock()
        if backlog.spool is None or not backlog.queue or now < self._keep_at:
            return 0
        mark = backlog.unkept
        count = len(backlog.queue) if mark is None else mark.target - backlog.first_in_queue
        failing = self._wait > 0
        needed = not self._block and (failing or not backlog.room)
        late = mark is not None and (failing or backlog.spooled > 0 or now >= mark.asked + self._patience)
        return max(0, count) if needed or late else 0

    def _to_note(self) -> Mark | None:
        """A mark before which nothing is left in the queue, but something in the spool."""
        mark = self._backlog.unkept
        if mark is None or self._backlog.spool is None or self._clock() < self._keep_at:
            return None
        return mark if self._backlog.done < mark.target <= self._backlog.first_in_queue else None

    def _note(self, mark: Mark, spool: Spool) -> None:
        """Sync the spool, and note where it stands: nothing behind the mark is in it yet."""
        spool.sync()
        with self._changed:
            mark.write = spool.position()["write"]
            mark.kept = True
            self._changed.notify_all()

    def _overdue(self) -> Mark | None:
        """The first mark, if it has waited for too long."""
        for mark in islice(self._backlog.marks, 1):
            short = self._backlog.spool is None and not self._cuts_back
            if self._clock() >= mark.asked + (self._patience if short else self._mark_seconds):
                return mark
        return None

    def _until_overdue(self) -> float | None:
        now = self._clock()
        times = [self._keep_at] if self._keep_at > now else []
        for mark in islice(self._backlog.marks, 1):
            times += [mark.asked + self._patience] if now < mark.asked + self._patience else []
            times += [mark.asked + self._mark_seconds]
        return max(0.01, min(times) - now) if times else None

    def _give_up(self, mark: Mark) -> None:
        """The sink did not answer. That is no harm where it has nothing to say and the events are on disk."""
        with self._changed:
            if not self._backlog.marks or self._backlog.marks[0] is not mark:
                return
            self._backlog.marks.popleft()
            position = self._backlog.position(mark)
            safe = mark.kept or self._backlog.spool is None or mark.target <= self._backlog.done
            self._changed.notify_all()
        if self._cuts_back or not safe:
            mark.future.set_exception(SinkError(f"sink {self.name}: not safe yet: {self.trouble or 'it is slow'}"))
        else:
            self._resolve(mark, self._facts, position)

    def _finish(self) -> None:
        """At the end: the rest goes to disk, what does not is counted, no mark stays open."""
        spool = self._backlog.spool
        if spool is not None:
            with self._noted():
                while self._backlog.queue:
                    self._backlog.move(len(self._backlog.queue))
                spool.sync()
        with self._changed:
            marks = self._backlog.abandon()
        for mark in marks:
            mark.future.set_exception(SinkError(f"sink {self.name}: was closed"))
