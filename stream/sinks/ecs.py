"""Events as JSON documents with the field names of the Elastic Common Schema; netclust's own are under `netclust`.

`event.schema.json` beside this file describes exactly these documents (see docs/alerts-format.md).

>>> from netclust.stream.alerts.alert_events import Alert, AlertEvent
>>> alert = Alert(id="a-1", kind="novel", label="", entity="10.0.0.7", entity_kind="source", last_seen=1_500_000_000)
>>> document = to_document(AlertEvent(action="open", alert=alert))
>>> document["@timestamp"], document["event"]["id"], document["source"]
('1970-01-01T00:00:01.500000Z', 'a-1:0', {'ip': '10.0.0.7'})
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from netclust.stream.alerts.alert_events import Alert, AlertEvent, Count, Event, Notice

ECS_VERSION = "8.17.0"
SCHEMA_PATH = Path(__file__).with_name("event.schema.json")
MAX_TEXT = 8192
"""Longer text is cut: what a record holds is not for us to bound."""

_LATEST = 253_402_300_800 * 10**9  # the year 10000
_PHASES = {"open": "start", "update": "info", "close": "end"}
_SETTINGS = ("feedback", "reload", "model")  # notices of something that people changed


def encode_ecs(event: Event, observer: str = "") -> bytes:
    """Return the document as JSON without line breaks; equal events give equal bytes."""
    return msgspec.json.encode(to_document(event, observer), order="deterministic")


def to_document(event: Event, observer: str = "") -> dict[str, Any]:
    """The document of an event. `observer` names who saw it; what is unknown is left out."""
    document = _of_alert(event) if isinstance(event, AlertEvent) else _of_notice(event)
    document["ecs"] = {"version": ECS_VERSION}
    document["observer"] = _known(
        {"name": ecs_text(observer), "product": "netclust", "type": "ids", "vendor": "netclust"}
    )
    return document


def event_schema() -> dict[str, Any]:
    """The published JSON Schema."""
    schema: dict[str, Any] = msgspec.json.decode(SCHEMA_PATH.read_bytes())
    return schema


def ecs_time(nanoseconds: int) -> str | None:
    """Return a time in UTC to the microsecond, None where it is unknown.

    >>> ecs_time(1_700_000_000_123_456_789), ecs_time(-1)
    ('2023-11-14T22:13:20.123456Z', None)
    """
    if not 0 <= nanoseconds < _LATEST:
        return None
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest // 1000:06d}Z"


def ecs_text(value: str) -> str:
    """Return text that is valid Unicode, and not too long.

    >>> ecs_text("a\\ud800b")
    'a?b'
    """
    return value[:MAX_TEXT].encode("utf-8", "replace").decode()


def is_address(value: str) -> bool:
    """Whether this is an IP address (without a zone)."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return "%" not in value


def _only(counts: Sequence[Count], different: int) -> str:
    """Return the value, if there is but one."""
    return counts[0].value if len(counts) == 1 and different <= 1 else ""


def ecs_endpoints(alert: Alert) -> tuple[str, str]:
    """Return source and destination: the entity's side is the entity, the other one is given if there is but one."""
    source = alert.entity if alert.entity_kind == "source" else _only(alert.sources, alert.source_count)
    destination = (
        alert.entity if alert.entity_kind == "destination" else _only(alert.destinations, alert.destination_count)
    )
    return source, destination


def only_port(alert: Alert) -> int | None:
    """The destination port, if there is but one."""
    port = _only(alert.ports, alert.port_count)
    return int(port) if port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536 else None


def _of_alert(event: AlertEvent) -> dict[str, Any]:
    alert = event.alert
    source, destination = ecs_endpoints(alert)
    told = {
        "action": f"alert-{event.action}",
        "category": ["intrusion_detection", "network"],
        "dataset": "netclust.alert",
        "end": ecs_time(alert.last_seen),
        "id": ecs_text(event.key),
        "kind": "alert",
        "module": "netclust",
        "reason": ecs_text(alert.explanation),
        "severity": alert.severity_score,
        "start": ecs_time(alert.first_seen),
        "type": [_PHASES[event.action]],
    }
    return _known(
        {
            "@timestamp": ecs_time(alert.last_seen),
            "destination": _known({**_end(destination), "port": only_port(alert)}),
            "event": _known(told),
            "message": ecs_text(alert.summary),
            "netclust": {"alert": _own(alert)},
            "network": _known(
                {"protocol": ecs_text(alert.service).lower(), "transport": ecs_text(alert.protocol).lower()}
            ),
            "related": _known({"ip": _addresses(alert)}),
            "rule": _known({"category": alert.kind, "name": ecs_text(alert.label), "ruleset": "netclust"}),
            "source": _end(source),
        }
    )


def _of_notice(event: Notice) -> dict[str, Any]:
    setting = event.topic in _SETTINGS
    moment = ecs_time(event.time)
    told = {
        "action": f"notice-{event.topic}",
        "category": ["configuration"] if setting else ["network"],
        "dataset": "netclust.notice",
        "id": ecs_text(event.key),
        "kind": "metric" if event.topic in ("drift", "loss") else "state",
        "module": "netclust",
        "type": ["change"] if setting else ["info"],
    }
    facts = {ecs_text(name): _plain(value) for name, value in event.facts.items()}
    notice = _known({"topic": event.topic, "key": ecs_text(event.key), "facts": facts})
    return _known(
        {"@timestamp": moment, "event": told, "message": ecs_text(event.message), "netclust": {"notice": notice}}
    )


def _own(alert: Alert) -> dict[str, Any]:
    """What ECS has no name for."""
    own = _known(
        {
            "attributes": [_attribute(a.name, a.contribution, a.value, a.normal) for a in alert.attributes],
            "closed_by": alert.closed_by,
            "destinations": _counts(alert.destinations),
            "example": {ecs_text(name): _plain(value) for name, value in alert.example.items()},
            "first_record": ecs_text(alert.first_record),
            "last_record": ecs_text(alert.last_record),
            "ports": _counts(alert.ports),
            "record_ids": [ecs_text(i) for i in alert.record_ids],
            "score": _finite(alert.top_score),
            "source": ecs_text(alert.source),
            "labels": _counts(alert.labels),
            "sources": _counts(alert.sources),
        }
    )
    return own | {
        "clusters": list(alert.clusters),
        "destination_count": alert.destination_count,
        "entity": ecs_text(alert.entity),
        "entity_kind": alert.entity_kind,
        "id": ecs_text(alert.id),
        "kind": alert.kind,
        "label": ecs_text(alert.label),
        "port_count": alert.port_count,
        "records": alert.records,
        "severity": alert.severity,
        "source_count": alert.source_count,
        "state": alert.state,
        "update": alert.update,
    }


def _attribute(name: str, contribution: float, value: float | str | None, normal: float | str | None) -> dict[str, Any]:
    return _known(
        {
            "name": ecs_text(name),
            "contribution": _finite(contribution),
            "value": _words(value),
            "normal": _words(normal),
        }
    )


def _words(value: float | str | None) -> str | None:
    """A value as text: in one list there are numbers and names, and a search index allows a field one type.

    >>> _words(3.0), _words(0.25), _words("tcp")
    ('3', '0.25', 'tcp')
    """
    if value is None or isinstance(value, str):
        return value if value is None else ecs_text(value)
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else repr(value)


def _counts(counts: Sequence[Count]) -> list[dict[str, Any]]:
    return [{"value": ecs_text(c.value), "records": c.records} for c in counts]


def _end(address: str) -> dict[str, Any]:
    if not address:
        return {}
    return {"ip": address} if is_address(address) else {"address": ecs_text(address)}


def _addresses(alert: Alert) -> list[str]:
    """Every address, once: by kind, then by value."""
    values = {alert.entity, *(c.value for c in alert.sources), *(c.value for c in alert.destinations)}
    found = [ipaddress.ip_address(v) for v in values if is_address(v)]
    return [str(a) for a in sorted(set(found), key=lambda a: (a.version, int(a)))]


def _plain(value: float | int | str | None) -> float | int | str | None:
    """A value that JSON has: no infinities, no integer that readers cannot hold."""
    if isinstance(value, str):
        return ecs_text(value)
    if isinstance(value, int) and abs(value) >= 1 << 63:
        return float(value) if abs(value) < 1 << 1023 else None
    return _finite(value) if isinstance(value, float) else value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    """Without what is unknown or empty; a 0 stays."""
    return {name: value for name, value in fields.items() if value is not None and value not in ("", [], {})}
