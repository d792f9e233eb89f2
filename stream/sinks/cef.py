"""Events in the Common Event Format, as ArcSight and others read it.

>>> from netclust.stream.alerts.alert_events import Alert, AlertEvent
>>> alert = Alert(id="a-1", kind="novel", label="no|vel", entity="10.0.0.7", entity_kind="source", records=3)
>>> to_cef(AlertEvent(action="open", alert=alert), 2000).split("|", 4)[4]  # doctest: +ELLIPSIS
'novel|no\\\\|vel|3|externalId=a-1 ... src=10.0.0.7'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from netclust._version import __version__
from netclust.foundation.text import sanitize
from netclust.stream.alerts.alert_events import Alert, AlertEvent, Event
from netclust.stream.sinks.ecs import ecs_endpoints, ecs_text, is_address, only_port

MAX_VALUE = 120
"""Bytes of a value other than the message, escaped."""

_SEVERITY = {"low": 3, "medium": 5, "high": 8, "critical": 10}


def to_cef(event: Event, limit: int, observer: str = "") -> str:
    """One line of CEF of at most `limit` bytes; what does not fit is cut off the message, which is last."""
    if isinstance(event, AlertEvent):
        alert = event.alert
        head = [alert.kind, alert.label, str(_SEVERITY[alert.severity])]
        fields, message = _fields(event.action, alert), alert.explanation or alert.summary
    else:
        head = ["notice", event.topic, "1"]
        fields, message = {"externalId": event.key, "rt": _milliseconds(event.time)}, event.message
    start = "CEF:0|" + "|".join(_header(part) for part in ["netclust", "netclust", __version__, *head])
    pairs = [
        f"{name}={fit_cef(str(v), MAX_VALUE, _extension)}"
        for name, v in ({**fields, "dvchost": observer}).items()
        if v != ""
    ]
    line = f"{start}|{' '.join(pairs)}"
    room = limit - len(line.encode()) - len(" msg=")
    fitting = fit_cef(message, room, _extension)
    return f"{line} msg={fitting}" if fitting else line


def _header(value: str) -> str:
    """Return A part of the header: of one line, and no bar or backslash as such.

    >>> _header("a|b")
    'a\\\\|b'
    """
    return fit_cef(value, MAX_VALUE, lambda part: sanitize(ecs_text(part)).replace("\\", "\\\\").replace("|", "\\|"))


def _extension(value: str) -> str:
    """Return A value of the extension: of one line, and no equals sign or backslash as such.

    >>> _extension("a=b")
    'a\\\\=b'
    """
    return sanitize(ecs_text(value)).replace("\\", "\\\\").replace("=", "\\=")


def fit_cef(value: str, room: int, escape: Callable[[str], str]) -> str:
    """Cut a text to the bytes that have room once it is escaped.

    >>> fit_cef("a=b=c", 4, _extension)
    'a\\\\=b'
    """
    low, high = 0, max(0, min(len(value), room))
    while low < high:
        middle = (low + high + 1) // 2
        if len(escape(value[:middle]).encode()) <= room:
            low = middle
        else:
            high = middle - 1
    return escape(value[:low])


def _fields(action: str, alert: Alert) -> dict[str, Any]:
    source, destination = ecs_endpoints(alert)
    port = only_port(alert)
    fields: dict[str, Any] = {
        "externalId": alert.id,
        "act": action,
        "cat": alert.kind,
        "cnt": alert.records,
        "rt": _milliseconds(alert.last_seen),
        "start": _milliseconds(alert.first_seen),
        "end": _milliseconds(alert.last_seen),
        "proto": alert.protocol,
        "app": alert.service,
        "cn1Label": "update",
        "cn1": alert.update,
        "cs1Label": "entity",
        "cs1": alert.entity,
        "cs2Label": "clusters",
        "cs2": ",".join(map(str, alert.clusters[:16])),
        "dpt": "" if port is None else port,
    }
    for address, short, number, label in (
        (source, "src", "c6a2", "Source IPv6 Address"),
        (destination, "dst", "c6a3", "Destination IPv6 Address"),
    ):
        if is_address(address):
            fields |= {f"{number}Label": label, number: address} if ":" in address else {short: address}
    return fields


def _milliseconds(nanoseconds: int) -> str:
    return str(nanoseconds // 10**6) if nanoseconds >= 0 else ""
