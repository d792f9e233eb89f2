"""Warnings of a shard's process in the log: a bus that does not answer, messages that cannot be used, silence.

Shards pass over what they cannot use and count it, and metrics are off unless they are asked for: without a line in the
log a wrong topic, or another number of partitions than the sensors', would look like a quiet network.

>>> from netclust.stream.sharding.partitions import Progress
>>> from netclust.stream.logs import Log
>>> import io, json
>>> out, progress = io.StringIO(), Progress()
>>> shard_warnings = ShardWarnings(Log("json", "info", out), progress, "memory://example/records", 4)
>>> progress.fails("partition 2", OSError("refused"))
>>> shard_warnings.look(); shard_warnings.look(); progress.works("partition 2"); shard_warnings.look()
>>> [json.loads(line)["message"] for line in out.getvalue().splitlines()]
['the bus does not answer: it is asked again', 'the bus answers again']
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter

from netclust.errors import NetclustError
from netclust.stream.bus.base import BusError
from netclust.stream.bus.factory import open_reader, parse_bus_url
from netclust.stream.logs import Log
from netclust.stream.sharding.partitions import Progress
from netclust.stream.sharding.shard import Shard

__all__ = ["ShardWarnings"]

LOOK_SECONDS = 1.0
AGAIN_SECONDS = 60.0
"""Of one kind and shard there is at most one line in so many seconds."""
SILENT_SECONDS = 60.0
ABOVE_SECONDS = 600.0

_OF_SHARDS = {
    "unreadable": "messages cannot be read, and are passed over",
    "wrong_lane": (
        "records came in another shard's partition and are passed over: do sensors ship to as many partitions?"
    ),
}
_OF_PROCESS = {
    "positions_lost": "messages were removed from the bus before they were read",
    "verdicts_refused": "the bus refuses verdicts for good: they are too large",
    "events_refused": "the bus refuses events for good: they are too large",
    "campaigns_refused": "the bus refuses campaigns for good: they are too large",
}


class ShardWarnings:
    """A watch over the counts of one process. `first`: the one that also looks for partitions that nobody reads."""

    def __init__(self, log: Log, progress: Progress, url: str, partitions: int, *, first: bool = False) -> None:
        self._log, self._progress, self._url, self._partitions = log, progress, url, partitions
        self._shards: dict[int, Shard] = {}
        self._reported: Counter[tuple[str, int]] = Counter()
        self._when: dict[tuple[str, int], float] = {}
        self._trouble = ""
        self._began = time.monotonic()
        self._silent = False
        self._above = 0.0 if first else float("inf")

    def watch(self, shard: Shard) -> None:
        """Watch a shard that begins to work here; what it counted before a restart was logged then."""
        for name in _OF_SHARDS:
            self._reported[name, shard.partition] = shard.counters[name]
        self._shards[shard.partition] = shard

    def begin(self) -> None:
        """Look again and again, until the process ends."""
        threading.Thread(target=self._work, name="complaints", daemon=True).start()

    def _work(self) -> None:
        while not self._progress.stop.wait(LOOK_SECONDS):
            self.look()

    def look(self, *, hurry: bool = False) -> None:
        """Log what is new; at the end (`hurry`) also what was logged a moment ago."""
        if hurry:
            self._when.clear()
        trouble = self._progress.trouble
        if trouble and not self._trouble:
            self._log.error("the bus does not answer: it is asked again", why=trouble)
        elif self._trouble and not trouble:
            self._log.info("the bus answers again")
        self._trouble = trouble
        for partition, shard in list(self._shards.items()):
            for name, message in _OF_SHARDS.items():
                more = {"why": shard.unreadable} if name == "unreadable" else {"partitions": self._partitions}
                self._warn(name, partition, shard.counters[name], message, shard=partition, **more)
            labels = shard.detector.linker.labels
            message = "records have labels that are left out: too many different ones, or no names"
            first = next(iter(labels.first_dropped.values()), "")
            self._warn("labels", partition, labels.dropped.total(), message, shard=partition, first=first)
        for name, message in _OF_PROCESS.items():
            self._warn(name, -1, self._progress.counters[name], message)
        self._warn_of_silence()
        self._warn_of_unread_partitions()

    def _warn(self, name: str, partition: int, count: int, message: str, **facts: object) -> None:
        key, now = (name, partition), time.monotonic()
        if count > self._reported[key] and now - self._when.get(key, -AGAIN_SECONDS) >= AGAIN_SECONDS:
            self._log.warning(message, count=count - self._reported[key], **facts)
            self._reported[key], self._when[key] = count, now

    def _warn_of_silence(self) -> None:
        """Warn if no shard of this process ever had a message. After a restart a network may be quiet."""
        silent = not self._progress.first and not self._shards and time.monotonic() - self._began > SILENT_SECONDS
        if silent and not self._silent and not self._trouble:
            self._silent = True
            self._log.warning(
                "nothing has come yet: does anybody ship to this topic?",
                input=str(parse_bus_url(self._url)), partitions=self._partitions, seconds=round(SILENT_SECONDS),
            )  # fmt: skip

    def _warn_of_unread_partitions(self) -> None:
        """Warn of messages above the last partition: their sensors ship to more partitions than there are."""
        if time.monotonic() < self._above:
            return
        self._above = time.monotonic() + ABOVE_SECONDS
        with contextlib.suppress(BusError, NetclustError):  # Kafka has no such partition, as it should not
            reader = open_reader(self._url, self._partitions)
            try:
                reader.open(None)
                if reader.take(0.2, 1):
                    self._above = float("inf")
                    self._log.warning(
                        "there are messages in a partition above the last: do sensors ship to as many partitions?",
                        lane=self._partitions, partitions=self._partitions,
                    )  # fmt: skip
            finally:
                reader.close()
