"""JSON lines: one document of `netclust.stream.sinks.ecs` a line, in a file that logrotate may rotate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netclust.stream.alerts.alert_events import Event
from netclust.stream.sinks.base import Facts
from netclust.stream.sinks.ecs import encode_ecs
from netclust.stream.sinks.line_file import LineFile


class JsonLines:
    """Events appended to a file, each exactly once: it is cut back to the checkpoint on resume."""

    cuts_back = True

    def __init__(self, name: str, path: str | Path, *, observer: str = "") -> None:
        self.name = name
        self._file = LineFile(path)
        self._observer = observer

    @property
    def note(self) -> str:
        """What was odd when the file was opened."""
        return self._file.note

    def open(self, facts: Facts | None) -> None:
        """Begin, or cut back to the checkpoint."""
        self._file.open(facts)

    def write(self, events: Sequence[Event]) -> None:
        """Append them."""
        self._file.write_lines(b"".join(encode_ecs(event, self._observer) + b"\n" for event in events))

    def sync(self) -> Facts:
        """Make them durable."""
        return self._file.sync()

    def reopen(self) -> None:
        """Go on in a new file."""
        self._file.reopen()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
