"""The sink that keeps alerts and notices in the SQLite store."""

from __future__ import annotations

import time
from collections.abc import Sequence

from netclust.stream.alerts.alert_events import Event
from netclust.stream.sinks.base import Facts, SinkError
from netclust.stream.store.store import Store, StoreError, StoreFullError

__all__ = ["PRUNE_SECONDS", "StoreSink"]

PRUNE_SECONDS = 600.0
"""How often the bounds of the store are kept; at once when it is full."""

FILL_WHEN_FULL = 0.7


class StoreSink:
    """Writes to a store that others use as well. An event told twice changes nothing: nothing needs to be cut back."""

    def __init__(self, store: Store, name: str = "store") -> None:
        self.name = name
        self.store = store
        self._pruned = -PRUNE_SECONDS

    def open(self, facts: Facts | None) -> None:
        """The store is open already."""

    def write(self, events: Sequence[Event]) -> None:
        """Keep the events: all of them, or SinkError."""
        try:
            self._prune_if_due()
            try:
                self.store.save_events(events)
            except StoreFullError:
                self._prune(FILL_WHEN_FULL)  # its own bound may be what is in the way
                self.store.save_events(events)
        except StoreError as error:
            raise SinkError(str(error)) from error

    def _prune_if_due(self) -> None:
        if time.monotonic() - self._pruned >= PRUNE_SECONDS:
            self._prune()

    def _prune(self, fill: float = 0.9) -> None:
        self.store.prune(fill=fill)
        self._pruned = time.monotonic()

    def sync(self) -> Facts:
        """Every write is durable when it returns."""
        return {}

    def reopen(self) -> None:
        """A store is not rotated."""

    def close(self) -> None:
        """The store is closed by whoever opened it."""
