"""Events as RFC 5424 syslog messages: over UDP, TCP (RFC 6587, octets counted), TLS (RFC 5425) or a Unix socket.

>>> from netclust.stream.alerts.alert_events import Notice
>>> format_message(Notice(topic="drift", time=0, key="n-1", message="scores drift"), 2048, observer="probe")
b'<132>1 1970-01-01T00:00:00.000000Z probe netclust - notice-drift [netclust@32473 id="n-1"] scores drift'
"""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from typing import Literal

from netclust.foundation.text import sanitize
from netclust.stream.alerts.alert_events import AlertEvent, Event
from netclust.stream.sinks.base import Facts, SinkError
from netclust.stream.sinks.cef import fit_cef, to_cef
from netclust.stream.sinks.connection import Address, SinkConnection, tls_context
from netclust.stream.sinks.ecs import ecs_text, ecs_time

Format = Literal["rfc5424", "cef"]

MAX_DATAGRAM = 2048  # what every receiver should take (RFC 5424 6.1)
MAX_COUNTED = 8192
MAX_VALUE = 120  # bytes of a value of the structured data, escaped

_LOCAL0 = 16
_SEVERITY = {"low": 5, "medium": 4, "high": 3, "critical": 2}  # notice, warning, error, critical
_BOM = b"\xef\xbb\xbf"


def format_message(event: Event, limit: int, *, observer: str = "", style: Format = "rfc5424") -> bytes:
    """One message of at most `limit` bytes; what does not fit is cut off the text at its end."""
    host = re.sub(r"[^!-~]", "", observer)[:255] or "-"
    if isinstance(event, AlertEvent):
        alert = event.alert
        level, moment, kind, message = (
            _SEVERITY[alert.severity],
            alert.last_seen,
            f"alert-{event.action}",
            alert.summary,
        )
        values = {
            "id": alert.id,
            "update": str(alert.update),
            "kind": alert.kind,
            "label": alert.label,
            "severity": str(alert.severity_score),
            "entity": alert.entity,
            "entityKind": alert.entity_kind,
            "records": str(alert.records),
            "firstSeen": ecs_time(alert.first_seen) or "",
            "lastSeen": ecs_time(alert.last_seen) or "",
        }
    else:
        moment, kind, message = event.time, f"notice-{event.topic}", event.message
        level = 4 if event.topic in ("drift", "loss") else 6
        values = {"id": event.key}
    head = f"<{_LOCAL0 * 8 + level}>1 {ecs_time(moment) or '-'} {host} netclust - {kind} "
    if style == "cef":
        start = f"{head}- ".encode()
        return start + to_cef(event, limit - len(start), observer).encode()
    pairs = "".join(f' {name}="{_quoted(value)}"' for name, value in values.items() if value)
    start = f"{head}[netclust@32473{pairs}] ".encode()
    shown = fit_cef(ecs_text(message), limit - len(start) - len(_BOM), sanitize)
    return start + (b"" if shown.isascii() else _BOM) + shown.encode()


def _quoted(value: str) -> str:
    """Return A value of structured data: of one line, short, and with its quotes, backslashes and brackets escaped.

    >>> _quoted('a"]')
    'a\\\\"\\\\]'
    """
    return fit_cef(ecs_text(value), MAX_VALUE, lambda part: re.sub(r'(["\\\]])', r"\\\1", sanitize(part)))


class Syslog:
    """Sends each event as one message. Receivers do not answer: TCP and TLS wait until the other kernel has it."""

    cuts_back = False
    batch_events = 64

    def __init__(
        self,
        name: str,
        address: str,
        *,
        style: Format = "rfc5424",
        observer: str = "",
        ca_file: str = "",
        timeout: float = 5.0,
    ) -> None:
        self.name = name
        target = Address.parse(address)
        context = tls_context(ca_file) if target.scheme == "tls" else None
        self._connection = SinkConnection(target, timeout, context)
        self._counted = target.scheme in ("tcp", "tls")
        self._style: Format = style
        self._observer = observer

    def open(self, facts: Facts | None) -> None:
        """Connects when there is something to say."""

    def write(self, events: Sequence[Event]) -> None:
        """Send them."""
        limit = MAX_COUNTED if self._counted else MAX_DATAGRAM
        messages = [format_message(e, limit, observer=self._observer, style=self._style) for e in events]
        try:
            if self._counted:
                self._connection.send_all(b"".join(b"%d %b" % (len(m), m) for m in messages))
            else:
                self._connection.send_each(messages)
        except (OSError, socket.gaierror) as error:
            self._connection.close()
            raise SinkError(f"{self._connection.address}: {error.strerror or error}") from None

    def sync(self) -> Facts:
        """Nothing to keep."""
        return {}

    def reopen(self) -> None:
        """Connect anew."""
        self._connection.close()

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
