"""One line that tells a person what an alert is about.

>>> from netclust.stream.alerts.alert_events import Count
>>> scan = Alert(
...     id="a-1", kind="known_attack", label="portscan", entity="10.0.0.7", entity_kind="source", records=812,
...     first_seen=0, last_seen=41 * 10**9, source_count=1, destination_count=1, port_count=799,
... )
>>> summary_of(scan)
'portscan from 10.0.0.7: 812 records to 1 host, 799 ports in 41 s'
>>> new = Alert(
...     id="a-2", kind="novel", label="novel", entity="10.0.0.9", entity_kind="source", records=3, source_count=1,
...     sources=[Count("10.0.0.9", 3)], destinations=[Count("192.0.2.1", 3)], destination_count=1,
...     ports=[Count("4444", 3)], port_count=1,
... )
>>> summary_of(new)
'new: 10.0.0.9 -> 192.0.2.1:4444, 3 records'
"""

from __future__ import annotations

from netclust.stream.alerts.alert_events import Alert

__all__ = ["MANY", "RATE_LIMIT", "counted", "summary_of"]

MANY = "many"
"""The entity of a collective alert: many sources to many destinations."""
RATE_LIMIT = "rate limit"
"""Label and entity of the alert that sums up what the rate limit held back."""


def summary_of(alert: Alert) -> str:
    """The line for one alert."""
    what = "new" if alert.kind == "novel" else alert.label
    records = counted(alert.records, "record")
    lasted = _lasted(alert)
    hosts = counted(alert.destination_count, "host")
    sources = counted(alert.source_count, "source")
    ports = f", {counted(alert.port_count, 'port')}" if alert.port_count else ""
    if alert.entity_kind == "destination":
        return f"{what} on {alert.entity}: {records} from {sources}{ports}{lasted}"
    if alert.entity_kind == "source":
        if alert.destination_count == 1 and alert.port_count <= 1 and alert.destinations:
            return f"{what}: {alert.entity} -> {_end(alert)}, {records}{lasted}"
        return f"{what} from {alert.entity}: {records} to {hosts}{ports}{lasted}"
    if alert.entity == MANY and alert.source_count:
        return f"{what}: {records} from {sources} to {hosts}{ports}{lasted}"
    if alert.entity == MANY:
        return f"{what}: {records} in many clusters{lasted}"
    return f"{what} ({alert.entity}): {records}{lasted}" if what != alert.entity else f"{what}: {records}{lasted}"


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "host"), counted(2, "host")
    ('1 host', '2 hosts')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _end(alert: Alert) -> str:
    address = alert.destinations[0].value
    if not alert.ports:
        return address
    return f"[{address}]:{alert.ports[0].value}" if ":" in address else f"{address}:{alert.ports[0].value}"


def _lasted(alert: Alert) -> str:
    if alert.first_seen < 0 or alert.last_seen <= alert.first_seen:
        return ""
    seconds = (alert.last_seen - alert.first_seen) / 1e9
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f" in {seconds / size:.0f} {unit}"
    return f" in {seconds:.0f} s" if seconds >= 10 else f" in {seconds:.2g} s"
