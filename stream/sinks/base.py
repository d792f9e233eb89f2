"""What a sink of events is, and one that lives in memory.

A sink knows nothing of queues, retries or threads: `netclust.stream.sinks.runner` runs it. It raises `SinkError` for
what may work later (the runner tries again, the same events), and keeps nothing that `sync` does not make durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from netclust.stream.alerts.alert_events import Event

Facts = dict[str, Any]
"""What a checkpoint keeps of a sink, as JSON: the length of its file, for example."""


class SinkError(Exception):
    """The events could not be delivered now. `retry` False: never will be (the receiver refused them)."""

    def __init__(self, message: str, *, retry: bool = True) -> None:
        super().__init__(message)
        self.retry = retry


class Sink(Protocol):
    """Where events go. Called from one thread only."""

    name: str

    def open(self, facts: Facts | None) -> None:
        """Begin, or go on after a restart at what `sync` said for the checkpoint (a file is cut back to its length)."""
        ...

    def write(self, events: Sequence[Event]) -> None:
        """Deliver; all of them or SinkError. An event may be told twice: its `key` is the same."""
        ...

    def sync(self) -> Facts:
        """Make what was written durable; what a checkpoint shall keep."""
        ...

    def reopen(self) -> None:
        """A log was rotated away (SIGUSR1): go on in a new file of the old name."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class MemorySink:
    """Keeps events in a list, for tests and embedding. `fail` makes every write fail."""

    def __init__(self, name: str = "memory") -> None:
        self.name = name
        self.events: list[Event] = []
        self.fail = False

    def open(self, facts: Facts | None) -> None:
        """Cut back to the checkpoint."""
        if facts is not None:
            del self.events[int(facts["events"]) :]

    def write(self, events: Sequence[Event]) -> None:
        """Keep them."""
        if self.fail:
            raise SinkError("told to fail")
        self.events.extend(events)

    def sync(self) -> Facts:
        """How many there are."""
        return {"events": len(self.events)}

    def reopen(self) -> None:
        """Nothing to reopen."""

    def close(self) -> None:
        """Nothing to let go of."""
