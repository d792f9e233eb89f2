"""Everything that events go to: a runner each sink, and the log of verdicts. Nothing here holds up detection."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from netclust.stream.alert_events import Event
from netclust.stream.daemon.config import Config
from netclust.stream.sinks.base import Facts, Sink, SinkError
from netclust.stream.sinks.runner import SinkRunner
from netclust.stream.sinks.verdict_log import VerdictLog
from netclust.stream.telemetry import Telemetry

MAX_HELD_BYTES = 16 << 20
"""Verdict lines that a full disk refused, kept to be tried again; what is beyond is counted and lost."""
SYNC_SECONDS = 15.0
REOPEN_SECONDS = 5.0
"""A log that could not be reopened is tried again this often."""


class VerdictLines:
    """The log of verdicts, written between batches; a disk that refuses does not stop it.

    What is not written yet is in `held`: a checkpoint keeps it.
    """

    def __init__(self, path: str, held: bytes = b"") -> None:
        self.log = VerdictLog(path)
        self.counters: Counter[str] = Counter()
        self.trouble = ""
        self._held = bytearray(held)
        self._reopen_at: float | None = None  # when to try again

    @property
    def held(self) -> bytes:
        """Lines that wait."""
        return bytes(self._held)

    def write(self, lines: bytes) -> None:
        """Append lines, or keep them for later."""
        if self._reopen_at is not None and time.monotonic() >= self._reopen_at:
            self.reopen()
        if not lines and not self._held:
            return
        if len(self._held) + len(lines) > MAX_HELD_BYTES:
            self.counters["dropped"] += lines.count(b"\n")
        else:
            self._held += lines
        try:
            self.log.write_lines(bytes(self._held))
        except SinkError as error:
            self.trouble = str(error)
            self.counters["errors"] += 1
            return
        self.counters["delivered"] += self._held.count(b"\n")
        self._held.clear()
        if self._reopen_at is None:
            self.trouble = ""

    def reopen(self) -> None:
        """It was rotated away. Where no new one can be made, the old one stays in use and it is tried again."""
        try:
            self.log.reopen()
        except SinkError as error:
            self.trouble = str(error)
            self.counters["errors"] += 1
            self._reopen_at = time.monotonic() + REOPEN_SECONDS
        else:
            self.trouble, self._reopen_at = "", None


class Outputs:
    """The sinks of a configuration, each with its runner."""

    def __init__(self, telemetry: Telemetry, spool: Path | None) -> None:
        self._telemetry = telemetry
        self._spool = spool
        self.runners: dict[str, SinkRunner] = {}
        self.verdicts: VerdictLines | None = None

    def add(self, sink: Sink, config: Config, facts: Facts | None, *, block: bool = False) -> None:
        """Begin to run a sink."""
        settings = next((s for s in config.sinks if s.name == sink.name), None)
        runner = SinkRunner(
            sink,
            queue_events=settings.queue_events if settings else 10_000,
            spool_path=None if self._spool is None else self._spool / f"{sink.name}.spool",
            spool_bytes=settings.spool_bytes if settings else 64 << 20,
            overflow="block" if block else "spool",
        )
        runner.open(facts)
        self.runners[sink.name] = runner
        self._telemetry.add_sink(
            sink.name,
            counters=lambda: dict(runner.counters),
            gauges=lambda: {"queue": runner.depth, "spool_bytes": runner.spool_bytes},
        )

    def remove(self, name: str, seconds: float) -> None:
        """Stop a sink; what it has not delivered is in its spool."""
        runner = self.runners.pop(name)
        runner.close(seconds)
        self._telemetry.remove_sink(name)

    def open_verdicts(self, path: str, facts: Facts | None, held: bytes = b"") -> None:
        """Begin the log of verdicts; `held` was not written when `facts` were noted."""
        self.verdicts = lines = VerdictLines(path, held)
        lines.log.open(facts)
        self._telemetry.add_sink("verdicts", counters=lambda: dict(lines.counters), gauges=dict)

    def submit(self, events: Sequence[Event]) -> None:
        """Tell every sink."""
        if events:
            for runner in self.runners.values():
                runner.submit(events)

    def mark(self) -> list[tuple[str, Future[Facts]]]:
        """For a checkpoint: what each sink will say once all that was told before is durable."""
        return [(name, runner.mark()) for name, runner in self.runners.items()]

    def reopen(self) -> None:
        """Logs were rotated away."""
        for runner in self.runners.values():
            runner.reopen()
        if self.verdicts is not None:
            self.verdicts.reopen()

    def troubles(self) -> dict[str, str]:
        """What does not work now, by sink."""
        found = {name: runner.trouble for name, runner in self.runners.items() if runner.trouble}
        if self.verdicts is not None and self.verdicts.trouble:
            found["verdicts"] = self.verdicts.trouble
        return found

    def close(self, seconds: float) -> None:
        """Deliver what can be delivered in time, spool the rest."""
        limit = time.monotonic() + seconds
        while self.runners:
            _, runner = self.runners.popitem()
            runner.close(max(limit - time.monotonic(), 0.5))
        if self.verdicts is not None:
            self.verdicts.write(b"")
            self.verdicts.log.close()
            self.verdicts = None


def await_marks(marks: list[tuple[str, Future[Facts]]]) -> dict[str, Any]:
    """The facts of all sinks. SinkError if one takes too long."""
    limit = time.monotonic() + SYNC_SECONDS
    facts = {}
    for name, future in marks:
        try:
            facts[name] = future.result(max(limit - time.monotonic(), 0.0))
        except TimeoutError:
            raise SinkError(f"sink {name} did not come to rest in {SYNC_SECONDS:g} seconds") from None
    return facts
