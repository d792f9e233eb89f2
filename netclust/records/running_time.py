"""The time of a log, which is nearly in order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["RunningTime"]

_STEPPED_BACK_NS = 3600 * 10**9


class RunningTime:
    """Times that do not go back, for windows over logs, which are nearly in order; after a step of an hour, anew.

    >>> RunningTime().advance(np.array([5, 7, 6, 9])).tolist()
    [5, 7, 7, 9]
    """

    def __init__(self) -> None:
        self.latest = -1

    def advance(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """The latest time so far, a record."""
        if len(time) == 0:
            return time
        out = np.maximum.accumulate(np.maximum(time, np.where(np.arange(len(time)) == 0, self.latest, time)))
        at = 0
        while (back := np.flatnonzero(out[at:] - time[at:] > _STEPPED_BACK_NS)).size:
            at += int(back[0])
            out[at:] = np.maximum.accumulate(time[at:])
        self.latest = int(out[-1])
        return out
