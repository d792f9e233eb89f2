"""Alerts for people at a terminal: one line when one opens, with its explanation below; few more while it lasts.

>>> from netclust.stream.alerts.alert_events import Alert, AlertEvent
>>> alert = Alert(id="a-1", kind="novel", label="novel", entity="10.0.0.7", entity_kind="source", records=12,
...               explanation="far from normal", last_seen=0)
>>> Terminal().write([AlertEvent(action="open", alert=alert)])
1970-01-01 00:00:00  low       novel  10.0.0.7 -> ?  12 records  a-1
    far from normal
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import OrderedDict
from collections.abc import Sequence
from typing import TextIO

from netclust.foundation.text import sanitize
from netclust.stream.alerts.alert_events import Alert, AlertEvent, Count, Event, Notice
from netclust.stream.sinks.base import Facts, SinkError
from netclust.stream.sinks.ecs import ecs_text, ecs_time, only_port

GROWTH = 10
"""An update is shown when the alert has grown by this factor since it was shown last."""

_MAX_SHOWN = 4096
_COLOURS = {"low": "cyan", "medium": "yellow", "high": "bold red", "critical": "bold white on red"}


class Terminal:
    """Writes to standard output, or to a stream; in colours if that is a terminal."""

    cuts_back = False

    def __init__(self, name: str = "terminal", stream: TextIO | None = None, *, width: int | None = None) -> None:
        self.name = name
        self._stream = stream
        self._width = width
        self._shown: OrderedDict[str, int] = OrderedDict()  # alert -> its records when it was shown

    def open(self, facts: Facts | None) -> None:
        """Nothing to open."""

    def write(self, events: Sequence[Event]) -> None:
        """Show them."""
        for event in events:
            lines = self._notice(event) if isinstance(event, Notice) else self._alert(event)
            self._show(lines)

    def sync(self) -> Facts:
        """Nothing to keep."""
        return {}

    def reopen(self) -> None:
        """Nothing to reopen."""

    def close(self) -> None:
        """Nothing to close."""

    def _notice(self, event: Notice) -> list[tuple[str, str]]:
        return [(f"{_clock(event.time)}  {'notice':8}  {event.topic}: {_plain(event.message)}", "dim")]

    def _alert(self, event: AlertEvent) -> list[tuple[str, str]]:
        alert = event.alert
        before = self._shown.get(alert.id)
        if event.action == "update" and before is not None and alert.records < GROWTH * max(1, before):
            return []
        if event.action == "close":
            self._shown.pop(alert.id, None)
        else:
            self._shown[alert.id] = alert.records
            if len(self._shown) > _MAX_SHOWN:
                self._shown.popitem(last=False)
        first = event.action == "open" or (event.action == "update" and before is None)
        phase = {"open": "", "update": "grew to ", "close": "closed at "}[event.action] if not first else ""
        why = f" ({alert.closed_by})" if event.action == "close" and alert.closed_by else ""
        records = f"{phase}{alert.records:,} record{'s' * (alert.records != 1)}{why}"
        what = _plain(alert.label or alert.kind)
        line = f"{_clock(alert.last_seen)}  {alert.severity:8}  {what}  {_who(alert)}  {records}  {_plain(alert.id)}"
        lines = [(line, "dim" if event.action == "close" else _COLOURS[alert.severity])]
        if first:
            lines += [(part, "") for part in self._wrapped(alert.explanation or alert.summary)]
        return lines

    def _wrapped(self, explanation: str) -> list[str]:
        width = self._width or min(120, max(40, shutil.get_terminal_size((100, 24)).columns))
        lines: list[str] = []
        for paragraph in ecs_text(explanation).split("\n"):
            plain = sanitize(paragraph)
            lines += textwrap.wrap(plain, width, initial_indent="    ", subsequent_indent="          ")
        return lines

    def _show(self, lines: list[tuple[str, str]]) -> None:
        stream = self._stream if self._stream is not None else sys.stdout
        try:
            if stream.isatty():
                _in_colours(stream, lines)
            else:
                stream.writelines(line + "\n" for line, _ in lines)
            stream.flush()
        except BrokenPipeError:
            raise SinkError("nobody reads the output any more", retry=False) from None
        except (OSError, ValueError) as error:
            raise SinkError(f"the output cannot be written: {error}") from None


def _in_colours(stream: TextIO, lines: list[tuple[str, str]]) -> None:
    from rich.console import Console

    console = Console(file=stream, markup=False, emoji=False, highlight=False, soft_wrap=True)
    for line, style in lines:
        console.print(line, style=style or None)


def _clock(nanoseconds: int) -> str:
    moment = ecs_time(nanoseconds)
    return f"{moment[:10]} {moment[11:19]}" if moment else "-" * 19


def _who(alert: Alert) -> str:
    """Who does it to whom; `+3` for three others."""
    if alert.entity_kind == "cluster" and not alert.sources and not alert.destinations:
        return _plain(alert.entity)
    source = alert.entity if alert.entity_kind == "source" else _first(alert.sources, alert.source_count)
    target = alert.entity if alert.entity_kind == "destination" else _first(alert.destinations, alert.destination_count)
    port = only_port(alert)
    ports = f" port {port}" if port else f" {alert.port_count:,} ports" if alert.port_count > 1 else ""
    return f"{_plain(source)} -> {_plain(target)}{ports}"


def _first(counts: Sequence[Count], different: int) -> str:
    if not counts:
        return "?"
    more = max(different, len(counts)) - 1
    return f"{counts[0].value}{f' +{more:,}' if more else ''}"


def _plain(value: str) -> str:
    return sanitize(ecs_text(value))
