"""Traffic time: how late it is on the wire, as records tell it. It does not follow one record into the far future.

The clock is the newest time seen. Where many records in succession lie far before it, it was the clock that was wrong
(a sensor's clock stepped, a line carried a wrong date), and it is set back to them. Any cut of the
stream gives the same.

>>> clock = TrafficClock()
>>> clock.run(np.array([5, 3, -1, 7])).tolist()
[5, 5, 5, 7]
>>> clock.now
7
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

__all__ = ["FAR_BEHIND", "IN_SUCCESSION", "TrafficClock"]

FAR_BEHIND = 3600 * 10**9
"""A record that lies further behind the clock than this, in nanoseconds, speaks against the clock."""
IN_SUCCESSION = 64
"""So many of them, with none between that agrees with the clock, set it back."""


class TrafficClock(msgspec.Struct):
    """`now`: nanoseconds since the epoch, -1 before any record had a time. A struct, for checkpoints."""

    now: int = -1
    behind: int = 0  # records in succession that lay far behind
    newest_behind: int = -1
    steps: int = 0  # how often it was set back

    def run(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The clock at each of these records (-1: a record without a time), which are counted in."""
        if not len(times):
            return np.empty(0, np.int64)
        running = np.maximum.accumulate(np.maximum(times, self.now))
        if not bool(((times >= 0) & (running - times > FAR_BEHIND)).any()):
            if self.behind and bool((times >= 0).any()):
                self.behind, self.newest_behind = 0, -1
            self.now = int(running[-1])
            return running
        return np.array([self._one(time) for time in times.tolist()], np.int64)

    def _one(self, time: int) -> int:
        if time < 0:
            return self.now
        if self.now - time <= FAR_BEHIND:
            self.now = max(self.now, time)
            self.behind, self.newest_behind = 0, -1
            return self.now
        self.behind += 1
        self.newest_behind = max(self.newest_behind, time)
        if self.behind >= IN_SUCCESSION:
            self.now = self.newest_behind
            self.behind, self.newest_behind = 0, -1
            self.steps += 1
        return self.now
