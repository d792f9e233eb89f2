"""Everything that events go to: a runner each sink, and the log of verdicts. Nothing here holds up detection."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netclust.errors import InputError
from netclust.stream.alerts.alert_events import Event
from netclust.stream.config import Config
from netclust.stream.daemon.build import build_sinks
from netclust.stream.sinks.base import Facts, Sink, SinkError
from netclust.stream.sinks.runner import SinkRunner
from netclust.stream.telemetry.telemetry import Telemetry

if TYPE_CHECKING:
    from netclust.stream.daemon.verdict_output import VerdictOutput

SYNC_SECONDS = 15.0


class Outputs:
    """The sinks of a configuration, each with its runner."""

    def __init__(self, telemetry: Telemetry, spool: Path | None) -> None:
        self._telemetry = telemetry
        self._spool = spool
        self.runners: dict[str, SinkRunner] = {}
        self.verdicts: VerdictOutput | None = None

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

    def swap(self, before: Config, after: Config) -> None:
        """Run the sinks of another configuration; where one cannot be opened, keep those of before and raise."""
        old, new = ({sink.name: sink for sink in config.sinks} for config in (before, after))
        for name in [n for n in old if new.get(n) != old[n]]:
            self.remove(name, 2.0)
        try:
            self._add_missing(after)
        except InputError:
            for name in [n for n in new if n in self.runners and new[n] != old.get(n)]:
                self.remove(name, 2.0)
            self._add_missing(before)
            raise

    def _add_missing(self, config: Config) -> None:
        for sink in build_sinks(config):
            if sink.name not in self.runners:
                self.add(sink, config, None)

    def open_verdicts(self, path: str, facts: Facts | None, held: bytes = b"") -> None:
        """Begin the log of verdicts; `held` was not written when `facts` were noted."""
        from netclust.stream.daemon.verdict_output import VerdictOutput

        self.verdicts = lines = VerdictOutput(path, held)
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
