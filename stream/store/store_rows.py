"""The rows of the store, as people and programs see them. Times are nanoseconds since the epoch, UTC, -1 if unknown.

**What is kept of traffic.** An alert as it is told: addresses, ports, attribute values, and the context of one example
record (its TLS server name or DNS question, too). Never payloads, never credentials: they do not get as far as an
alert. Where names are too much as well, give the store a `redaction`: of an example, it keeps scored attributes,
addresses, ports, times, VLAN and uid.

>>> from netclust.stream.alerts.alert_events import Alert
>>> from netclust.stream.config import SuppressConfig
>>> seen = {"service": "http", "source": "10.0.0.7", "name": "secret.example", "duration": 1.5}
>>> alert = Alert(id="a-1", kind="novel", label="novel", entity="10.0.0.7", entity_kind="source", example=seen)
>>> redaction(["service", "duration"])(alert).example
{'service': 'http', 'source': '10.0.0.7', 'duration': 1.5}
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from netclust.stream.alerts.alert_events import Alert
from netclust.stream.config import SuppressConfig
from netclust.stream.store.requests import iso

__all__ = ["AuditRow", "ClusterRow", "LabelRow", "LabelStatus", "Redaction", "SuppressionRow", "redaction"]

LabelStatus = Literal["pending", "applied", "refused"]
SEVERITIES = ("low", "medium", "high", "critical")

Redaction = Callable[[Alert], Alert]

KEPT_CONTEXT = frozenset(
    ("uid", "start", "end", "vlan", "part", "source", "source_port", "destination", "destination_port")
)


class ClusterRow(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster as it was last seen, and how many of the stored alerts are about it."""

    ident: int
    label: str
    records: int
    anomalous: int
    first_time: int
    last_time: int
    top_score: float
    stored: int
    alerts: int = 0


class LabelRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said of an alert (`target` its id), a cluster (its number) or a record (SOURCE:SEQ), or that an
    earlier label is undone (its number).

    It counts from arrival number `from_tick` on, once the daemon took it up. `undone_by` is the row that undoes it.
    `effect` is what it changed: `closed` alerts, and how many records were `pinned`.
    """

    label_seq: int
    created: int
    target_kind: Literal["alert", "cluster", "record", "undo"]
    target: str
    label: str
    by: str
    why: str
    from_tick: int | None
    covered: int | None
    linker_event: Any
    status: LabelStatus
    reason: str
    undone_by: int | None
    effect: Any = None


class SuppressionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that hides alerts, who made it and why, until when (-1: for good), and how many it has hidden."""

    number: int
    created: int
    by: str
    reason: str
    address: str
    source: str
    destination: str
    port: int | None
    cluster: int | None
    label: str
    attribute: str
    until: int
    from_tick: int | None
    removed_at: int | None
    removed_by: str
    removed_why: str
    removed_tick: int | None
    hidden: int

    @property
    def id(self) -> str:
        """What people call it."""
        return f"s-{self.number}"

    def active(self, now: int) -> bool:
        """Whether it hides anything at that time."""
        return self.removed_at is None and (self.until < 0 or now < self.until)

    def config(self) -> SuppressConfig:
        """As a rule of the configuration."""
        fields = {name: getattr(self, name) for name in SuppressConfig.__struct_fields__ if name != "until"}
        return SuppressConfig(**fields, until=iso(self.until))

    def shown(self, now: int) -> dict[str, Any]:
        """For JSON: with its id and whether it is active."""
        return {"id": self.id, "active": self.active(now), **msgspec.structs.asdict(self)}


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """A decision or a notice: what was asked, by whom, why, what came of it. Rows are added, never changed."""

    number: int
    created: int
    topic: str
    what: str
    by: str
    why: str
    result: str
    facts: Any
    key: str | None


def redaction(attributes: Iterable[str]) -> Redaction:
    """What leaves only these attributes, addresses, ports, times, VLAN and uid in an example."""
    kept = KEPT_CONTEXT | frozenset(attributes)

    def redact(alert: Alert) -> Alert:
        example, *examples = (
            {k: v for k, v in seen.items() if k in kept or k == "record"} for seen in (alert.example, *alert.examples)
        )
        return msgspec.structs.replace(alert, example=example, examples=examples)

    return redact


def finite(alert: Alert) -> Alert:
    """The alert with numbers that JSON can say: without any normal referent, a score is infinite."""
    numbers = [alert.top_score, *(a.contribution for a in (*alert.attributes, *alert.parts))]
    if all(map(math.isfinite, numbers)):
        return alert
    attributes, parts = (
        [msgspec.structs.replace(a, contribution=_finite(a.contribution)) for a in notes]
        for notes in (alert.attributes, alert.parts)
    )
    return msgspec.structs.replace(alert, top_score=_finite(alert.top_score), attributes=attributes, parts=parts)


def _finite(number: float) -> float:
    if math.isnan(number):
        return 0.0
    return min(max(number, -sys.float_info.max), sys.float_info.max)
