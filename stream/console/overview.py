"""The daemon at a glance: a sample a second for ten minutes, and the mean of every minute for the store.

>>> overview = Overview(clock=lambda: 0)
>>> _ = overview.take({"records": 0}, seconds=100.0)
>>> overview.take({"records": 50, "shed": 2}, seconds=102.0).rates["records"]
25.0
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

__all__ = ["COLUMNS", "SECONDS", "Overview", "Sample"]

SECONDS = 600
"""Samples of a second that are kept."""
MINUTE = 60 * 10**9

RATES = ("records", "normal", "known_attack", "novel", "shed", "drops")
GAUGES = ("root", "drift", "window", "open_alerts")
COLUMNS = (*RATES, *GAUGES)


class Sample(msgspec.Struct, frozen=True):
    """One second: what happened a second, and what stood where."""

    time: int
    rates: dict[str, float]
    gauges: dict[str, float]

    def columns(self) -> dict[str, float]:
        """All of it, by name."""
        return {name: self.rates.get(name, self.gauges.get(name, 0.0)) for name in COLUMNS}


class Overview:
    """Turns totals into rates, and remembers. One thread takes, others read."""

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._samples: deque[Sample] = deque(maxlen=SECONDS)
        self._totals: dict[str, float] = {}
        self._seconds: float | None = None
        self._minute: list[Sample] = []
        self.minutes: list[tuple[int, dict[str, float]]] = []  # that are to be stored

    def take(self, totals: Mapping[str, float], gauges: Mapping[str, float] | None = None, *, seconds: float) -> Sample:
        """A sample from running totals; `seconds` is a clock that does not jump. Share `root` is of these records."""
        took = None if self._seconds is None else max(seconds - self._seconds, 1e-3)
        rates = {
            name: 0.0 if took is None else max(totals.get(name, 0.0) - self._totals.get(name, 0.0), 0.0) / took
            for name in (*RATES, "roots")
        }
        shown = dict(gauges or {})
        shown["root"] = rates["roots"] / rates["records"] if rates["records"] else 0.0
        self._totals, self._seconds = dict(totals), seconds
        sample = Sample(self._clock(), {name: rates[name] for name in RATES}, shown)
        self._samples.append(sample)
        if self._minute and sample.time // MINUTE != self._minute[0].time // MINUTE:
            self._end_minute()
        self._minute.append(sample)
        return sample

    def _end_minute(self) -> None:
        rows = [sample.columns() for sample in self._minute]
        means = {name: round(sum(row[name] for row in rows) / len(rows), 6) for name in COLUMNS}
        self.minutes.append((self._minute[0].time // MINUTE * MINUTE, means))
        del self.minutes[:-60]  # if nobody stores them
        self._minute = []

    def take_minutes(self) -> list[tuple[int, dict[str, float]]]:
        """The minutes that are over, once."""
        found, self.minutes = self.minutes, []
        return found

    def recent(self, seconds: int) -> list[tuple[int, dict[str, float]]]:
        """The last samples, oldest first."""
        since = self._clock() - seconds * 10**9
        return [(sample.time, sample.columns()) for sample in list(self._samples) if sample.time >= since]


def as_columns(rows: list[tuple[int, dict[str, float]]]) -> dict[str, list[Any]]:
    """Rows as lists by name: what a chart wants."""
    return {
        "time": [time for time, _ in rows],
        **{name: [row.get(name, 0.0) for _, row in rows] for name in COLUMNS},
    }
