"""A sink that only gets what is severe enough."""

from __future__ import annotations

from collections.abc import Sequence

from netclust.stream.alerts.alert_events import AlertEvent, Event, Severity
from netclust.stream.sinks.base import Facts, Sink

_RANK: dict[Severity, int] = {"low": 0, "medium": 1, "high": 2, "critical": 3}


class AtLeast:
    """Passes on alerts of this severity or above. Notices count as low."""

    def __init__(self, sink: Sink, severity: Severity) -> None:
        self.name = sink.name
        self.sink = sink
        self.cuts_back: bool = getattr(sink, "cuts_back", False)
        self.batch_events: int | None = getattr(sink, "batch_events", None)
        self._least = _RANK[severity]
        tick = getattr(sink, "tick", None)
        if tick is not None:
            self.tick = tick

    @property
    def note(self) -> str:
        """What the sink says of itself."""
        return str(getattr(self.sink, "note", ""))

    def open(self, facts: Facts | None) -> None:
        """Open the sink."""
        self.sink.open(facts)

    def write(self, events: Sequence[Event]) -> None:
        """Pass on what is severe enough."""
        kept = [e for e in events if _severity_rank(e) >= self._least]
        if kept:
            self.sink.write(kept)

    def sync(self) -> Facts:
        """Sync the sink."""
        return self.sink.sync()

    def reopen(self) -> None:
        """Reopen the sink."""
        self.sink.reopen()

    def close(self) -> None:
        """Close the sink."""
        self.sink.close()


def _severity_rank(event: Event) -> int:
    """Return 0 for low to 3 for critical."""
    return _RANK[event.alert.severity] if isinstance(event, AlertEvent) else 0
