"""The background writer: writes that are not urgent go to the store in a thread of their own, and delay nothing."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from netclust.stream.logs import Log
from netclust.stream.store.store import StoreError

WAITING = 8
"""Jobs that may wait; more are not taken, since the next ones say the same of a later time."""


class BackgroundWriter:
    """A thread that does jobs one after another. What fails is logged, and tried again with the next of its kind."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._work, name="background-writer", daemon=True)
        self._thread.start()

    def do(self, job: Callable[[], None]) -> bool:
        """Queue a job; return False if too many wait."""
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            return False
        return True

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except StoreError as error:
                self._log.error("the store could not be written", why=str(error))

    def close(self, seconds: float) -> None:
        """Finish the jobs that wait, then end."""
        self._jobs.put(None)
        self._thread.join(seconds)
