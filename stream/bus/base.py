"""The bus: topics of partitions, each an ordered log of messages that can be read again from any position.

A topic has P partitions, one for each partition of the linker. A record is written to the partition that its key's
hash chooses. What a shard does depends only on the order within its partition, so a shard that is stopped and resumed
elsewhere from the same position writes the same again.

>>> bus = MemoryBus()
>>> writer = bus.writer("records", 2)
>>> writer.send([Outgoing(partition=1, number=1, body=b"hello")])
>>> writer.last(1), writer.last(0)
(1, 0)
>>> reader = bus.reader("records", 1)
>>> [(m.position, m.body) for m in reader.take(0.0, 10)]
[('1', b'hello')]
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from netclust.errors import InputError

__all__ = ["BusError", "Incoming", "MemoryBus", "MessageRefusedError", "Outgoing", "PartitionReader", "PartitionWriter"]


class BusError(Exception):
    """The bus could not be reached, or did not acknowledge, now: the same call may work later."""


class MessageRefusedError(InputError):
    """The bus will never take this message: it is too large. Others may be taken."""


@dataclass(frozen=True)
class Incoming:
    """A message of a partition. To go on behind it after a restart: `open(position)`."""

    position: str
    body: bytes
    number: int = 0  # as its writer numbered it; 0: not numbered (written by others)


@dataclass(frozen=True)
class Outgoing:
    """A message for a partition, numbered from 1 by its writer, so that a reader recognises what was sent twice."""

    partition: int
    number: int
    body: bytes


class PartitionReader(Protocol):
    """A reader of one partition, in order. Nothing is acknowledged to the bus: readers keep their positions."""

    def open(self, position: str | None) -> None:
        """Begin behind a position; None: with the oldest message that the bus still has. BusError, InputError."""
        ...

    def take(self, timeout: float, most: int) -> list[Incoming]:
        """The next messages, at most so many; [] if none came in so many seconds. BusError."""
        ...

    def waiting(self, position: str | None) -> int:
        """How many messages the bus has behind a position (None: in all). BusError, InputError.

        For onlookers: needs no `open`, takes nothing, and makes no topic that is missing.
        """
        ...

    def close(self) -> None:
        """Let go."""
        ...


class PartitionWriter(Protocol):
    """A writer to the partitions of one topic. Called from one thread only."""

    def open(self) -> None:
        """Reach the bus; make the topic where that is ours to do. BusError, InputError."""
        ...

    def last(self, partition: int) -> int:
        """Return the number of a partition's newest message (need not be sent again), or 0. BusError."""
        ...

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Return once all are acknowledged, in order within a partition; BusError: some may not have been."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


class MemoryBus:
    """Partitions in memory, for tests and embedding. `down` makes every call fail."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[str, int], list[Incoming]] = {}
        self.down = False
        self.changed = threading.Condition()

    def reader(self, topic: str, partition: int) -> PartitionReader:
        """Return a reader of a partition."""
        return _MemoryReader(self, topic, partition)

    def writer(self, topic: str, partitions: int) -> PartitionWriter:
        """Return a writer to a topic."""
        return _MemoryWriter(self, topic, partitions)

    def partition(self, topic: str, partition: int) -> list[Incoming]:
        """Return all messages of a partition."""
        if self.down:
            raise BusError("memory bus: told to be down")
        return self.partitions.setdefault((topic, partition), [])


class _MemoryReader:
    def __init__(self, bus: MemoryBus, topic: str, partition: int) -> None:
        self._bus, self._topic, self._partition, self._at = bus, topic, partition, 0

    def open(self, position: str | None) -> None:
        self._at = self._parsed(position)

    @staticmethod
    def _parsed(position: str | None) -> int:
        if position is not None and not position.isdigit():
            raise InputError(f"memory bus: {position[:40]!r} is no position")
        return int(position or 0)

    def take(self, timeout: float, most: int) -> list[Incoming]:
        with self._bus.changed:
            messages = self._bus.partition(self._topic, self._partition)
            if len(messages) <= self._at:
                self._bus.changed.wait(timeout)
            taken = messages[self._at : self._at + most]
            self._at += len(taken)
            return taken

    def waiting(self, position: str | None) -> int:
        return max(len(self._bus.partition(self._topic, self._partition)) - self._parsed(position), 0)

    def close(self) -> None:
        pass


class _MemoryWriter:
    def __init__(self, bus: MemoryBus, topic: str, partitions: int) -> None:
        self._bus, self._topic, self._partitions = bus, topic, partitions

    def open(self) -> None:
        self._bus.partition(self._topic, 0)

    def last(self, partition: int) -> int:
        messages = self._bus.partition(self._topic, partition)
        return messages[-1].number if messages else 0

    def send(self, messages: Sequence[Outgoing]) -> None:
        with self._bus.changed:
            for message in messages:
                undivided = (message.partition, self._partitions) == (-1, 0)
                if not (undivided or 0 <= message.partition < self._partitions):
                    raise InputError(
                        f"memory bus: topic {self._topic} has {self._partitions} partitions, "
                        f"not {message.partition + 1}"
                    )
                partition = self._bus.partition(self._topic, message.partition)
                partition.append(Incoming(str(len(partition) + 1), message.body, message.number))
            self._bus.changed.notify_all()

    def close(self) -> None:
        pass
