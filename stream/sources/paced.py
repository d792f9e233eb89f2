"""A source at the pace of its records: what was recorded comes as it came, or some times as fast.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.stream.sources.base import MemorySource
>>> table = simulate(50, seed=1).table()
>>> table.time = np.arange(50) * 10**9
>>> source = PacedSource(MemorySource("test", table.schema, [table]), pace=200.0)
>>> began = time.monotonic()
>>> [len(a.table) for a in source if len(a.table)] != [50], time.monotonic() - began > 0.2
(True, True)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from netclust.stream.sources.base import TICK_SECONDS, Arrival, Source, SourceState, part_of

__all__ = ["PacedSource"]


class PacedSource:
    """Gives what another source gives, `pace` times as fast as it happened. Records without a time come at once."""

    def __init__(self, source: Source, pace: float) -> None:
        self._source = source
        self._pace = pace
        self._began: tuple[int, float] | None = None  # a traffic time, and when it was
        self._stop = threading.Event()
        self.name, self.schema, self.counters = source.name, source.schema, source.counters
        self.replayable, self.sheds = source.replayable, source.sheds

    def __getattr__(self, name: str) -> Any:
        """What else the source knows of itself: trouble, open flows."""
        return getattr(self._source, name)

    def open(self, state: SourceState | None) -> None:
        """Take hold of files."""
        self._source.open(state)

    def want_state(self) -> None:
        """Give the state with the next arrival that has all its records. From any thread."""
        self._source.want_state()

    def stop(self) -> None:
        """End soon: what was read comes at once. From any thread."""
        self._stop.set()
        self._source.stop()

    def close(self) -> None:
        """Let go of everything."""
        self._source.close()

    def __iter__(self) -> Iterator[Arrival]:
        """The arrivals, cut to what has happened by now."""
        for arrival in self._source:
            yield from self._in_time(arrival)

    def _in_time(self, arrival: Arrival) -> Iterator[Arrival]:
        n, at = len(arrival.table), 0
        times = np.maximum.accumulate(arrival.table.time) if n else arrival.table.time
        while at < n and not self._stop.is_set():
            due = max(at, int(np.searchsorted(times, self._now(int(times[at])), side="right")))
            if due == n:
                break
            yield self._read_now(part_of(arrival, at, due))
            at = due
            self._stop.wait(TICK_SECONDS)
        yield self._read_now(part_of(arrival, at, n) if at else arrival)

    @staticmethod
    def _read_now(arrival: Arrival) -> Arrival:
        return replace(arrival, received=time.monotonic())

    def _now(self, next_time: int) -> int:
        """How far traffic time has come, counted from the first record."""
        if self._began is None:
            self._began = next_time, time.monotonic()
        first, since = self._began
        return first + int((time.monotonic() - since) * self._pace * 1e9)
