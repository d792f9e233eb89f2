"""Partitions of a bus that are followed: if the bus goes away, reading waits and continues where it stopped.

>>> from netclust.stream.bus.factory import Outgoing, open_writer
>>> partition = FollowedPartition("memory://followed/lines", 0, Patience(Counter()))
>>> partition.begin(None)
>>> open_writer("memory://followed/lines", 1).send([Outgoing(partition=0, number=1, body=b"hello")])
>>> [message.body for message in partition.take(0.0, 10)], partition.position
([b'hello'], '1')
"""

from __future__ import annotations

import threading
import time
from collections import Counter

from netclust.errors import InputError
from netclust.stream.bus.base import BusError, Incoming
from netclust.stream.bus.factory import open_reader

__all__ = ["FollowedPartition", "Patience"]

FIRST_WAIT = 0.25
LONGEST_WAIT = 5.0


class Patience:
    """When a bus that went away is asked again: one for all partitions of a source, as they go and come together."""

    def __init__(self, counters: Counter[str]) -> None:
        self.counters = counters
        self.trouble = ""
        self.stopped = threading.Event()
        self._wait = 0.0
        self._at = 0.0

    def pauses(self, seconds: float) -> bool:
        """Whether it is too early to ask again; then so many seconds were waited, or until it is time, or a stop."""
        left = self._at - time.monotonic()
        if left <= 0:
            return False
        self.stopped.wait(min(left, seconds))
        return True

    def failed(self, error: Exception) -> None:
        """It went away."""
        self.counters["unreachable"] += 1
        self.trouble = str(error) or type(error).__name__
        self._wait = min(2 * self._wait, LONGEST_WAIT) if self._wait else FIRST_WAIT
        self._at = time.monotonic() + self._wait

    def works(self) -> None:
        """It is there."""
        self.trouble, self._wait, self._at = "", 0.0, 0.0


class FollowedPartition:
    """One partition that is followed, with the position behind what was taken; None: nothing was."""

    def __init__(self, url: str, partition: int, patience: Patience) -> None:
        self._reader = open_reader(url, partition)
        self._patience = patience
        self._open = False
        self._lost = 0
        self.position: str | None = None

    def begin(self, position: str | None) -> None:
        """Go on behind a position. Nothing is connected to yet: a bus may come later than we."""
        self.position = position

    def take(self, timeout: float, most: int) -> list[Incoming]:
        """The next messages; none if none came in time, or while the bus is away."""
        if self._patience.pauses(timeout):
            return []
        try:
            if not self._open:
                self._reader.open(self.position)
                self._open = True
            messages = self._reader.take(timeout, most)
        except (BusError, InputError) as error:
            self._open = False
            self._patience.failed(error)
            return []
        self._patience.works()
        lost = int(getattr(self._reader, "lost", 0))
        self._patience.counters["lost_position"] += lost - self._lost
        self._lost = lost
        if messages:
            self.position = messages[-1].position
        return messages

    def close(self) -> None:
        """Let go."""
        self._reader.close()
