"""When and how checkpoints are cut while records flow.

A cut needs every source at a place that it can go on from. The daemon asks for it, takes nothing more from a source
that is there, and when all are, copies the state: that copy is all that detection waits for. A thread writes it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from netclust.errors import NetclustError
from netclust.stream.daemon.checkpoint import CheckpointStore, Cut, Written
from netclust.stream.daemon.outputs import await_marks
from netclust.stream.daemon.queues import Inbox
from netclust.stream.logs import Log
from netclust.stream.sinks.base import SinkError
from netclust.stream.sources.base import Arrival, SourceState
from netclust.stream.telemetry.telemetry import Telemetry

PATIENCE_SECONDS = 5.0
"""A source that has not come to a place to go on from by then holds up the others no longer; it is asked again."""


@dataclass(eq=False)
class _Job:
    cut: Cut
    marks: list[tuple[str, Any]]
    pause: float


class Checkpointer:
    """Cuts a checkpoint every so many seconds. The daemon calls `progress` between batches."""

    def __init__(self, store: CheckpointStore, inbox: Inbox, telemetry: Telemetry, log: Log, *, seconds: float) -> None:
        self.store = store
        self.seconds = seconds
        self.states: list[SourceState | None] = [None] * len(inbox.queues)
        self.requested = False
        self._inbox = inbox
        self._telemetry = telemetry
        self._log = log
        self._last = time.monotonic()
        self._began = 0.0
        self._job: _Job | None = None
        self._wake = threading.Condition()
        self._ending = False
        self._busy = False
        self.failures = 0
        self._thread = threading.Thread(target=self._work, name="checkpoint", daemon=True)
        self._thread.start()

    def taken(self, number: int, arrival: Arrival) -> None:
        """Records of an arrival are in the linker's state: where its source stands."""
        if arrival.state is not None:
            self.states[number] = arrival.state
        elif len(arrival.table):
            self.states[number] = None
        if self.requested and self.states[number] is not None:
            self._inbox.pause(number)

    def progress(self, cut: Callable[[], tuple[Cut, list[tuple[str, Any]]]]) -> None:
        """Ask for a checkpoint when it is time, cut it when every source is ready."""
        now = time.monotonic()
        if not self.requested:
            if now - self._last < self.seconds or self._busy:
                return
            self.request()
        if all(state is not None for state in self.states):
            self.cut_now(cut)
        elif now - self._began > PATIENCE_SECONDS:
            self._log.warning("no checkpoint now: a source has not come to rest", seconds=PATIENCE_SECONDS)
            self._telemetry.checkpointed(False)
            self._release()

    def request(self) -> None:
        """Begin a checkpoint now, before its time."""
        self.requested, self._began = True, time.monotonic()
        for number, queue in enumerate(self._inbox.queues):
            if self.states[number] is not None:
                self._inbox.pause(number)
            else:
                queue.source.want_state()

    def cut_now(self, cut: Callable[[], tuple[Cut, list[tuple[str, Any]]]]) -> None:
        """Copy the state and have it written."""
        began = time.perf_counter()
        try:
            made, marks = cut()
        except (NetclustError, SinkError, OSError) as error:
            self._failed(error, time.perf_counter() - began)
            self._release()
            return
        pause = time.perf_counter() - began
        self._release()
        with self._wake:
            self._job = _Job(made, marks, pause)
            self._busy = True
            self._wake.notify_all()

    def _release(self) -> None:
        self.requested, self._last = False, time.monotonic()
        self._inbox.resume()

    def _work(self) -> None:
        while True:
            with self._wake:
                while self._job is None and not self._ending:
                    self._wake.wait()
                job, self._job = self._job, None
            if job is None:
                return
            self._write(job)
            with self._wake:
                self._busy = False
                self._wake.notify_all()

    def _write(self, job: _Job) -> Written | None:
        began = time.perf_counter()
        try:
            job.cut.facts["sinks"] = await_marks(job.marks)
            written = self.store.write(job.cut)
        except Exception as error:  # the thread must not die: without it there is never a checkpoint again
            self._failed(error, job.pause, time.perf_counter() - began)
            return None
        seconds = time.perf_counter() - began
        self._telemetry.checkpointed(True, seconds=seconds, size=written.bytes, pause=job.pause)
        self._log.debug("checkpoint written", bytes=written.bytes, seconds=round(seconds, 3), pause=round(job.pause, 4))
        return written

    def _failed(self, error: Exception, pause: float, seconds: float = 0.0) -> None:
        self.failures += 1
        self._telemetry.checkpointed(False, seconds=seconds, pause=pause)
        self._log.error("checkpoint failed", why=str(error) or type(error).__name__)

    def wait(self, seconds: float) -> bool:
        """Wait until what was cut is written; whether it is."""
        limit = time.monotonic() + seconds
        with self._wake:
            while self._busy and time.monotonic() < limit:
                self._wake.wait(max(limit - time.monotonic(), 0.01))
            return not self._busy

    def close(self, seconds: float) -> None:
        """Write what was cut, then end."""
        self.wait(seconds)
        with self._wake:
            self._ending = True
            self._wake.notify_all()
        self._thread.join(seconds)
